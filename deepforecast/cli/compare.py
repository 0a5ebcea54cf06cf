"""Rank models on one data file by rolling cross-validation.

If a model fails, its row shows the error, the other models are still compared, and the exit code is 1."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.arguments import add_output
from deepforecast.cli.backtest_options import add_backtest, parse_backtest
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser

USAGE = "DATA --horizon STEPS [options]"
EPILOG = """\
examples:
  deepforecast compare sales.csv --horizon 14 --level 80 95 --report report.html --plot board.png
  deepforecast compare sales.csv --models SeasonalNaive AutoETS WindowMean:window=28 --horizon 14"""
FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
NO_MODELS_NOTE = "Without --models the baselines are compared. Pass e.g. --models AutoETS AutoTheta LinearModel for others."


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the options of the command."""
    add_backtest(parser, models_required=False)
    report = parser.add_argument("--report", metavar="FILE", help="write a self-contained HTML report")
    plot = parser.add_argument("--plot", metavar="FILE", help="plot the leaderboard to a .png, .svg or .pdf file")
    parser.add_targets(report, plot)
    add_output(parser, "the forecasts (id, time, cutoff, target, one column per model)")


def run(values: argparse.Namespace) -> Outcome:
    """Compare models."""
    from deepforecast import compare
    from deepforecast.cli.json_output import to_records
    from deepforecast.cli.output_files import check_frame_target, check_target

    check_frame_target(values.output)
    check_target(values.report, ".html")
    check_target(values.plot, *FIGURE_SUFFIXES)
    arguments = parse_backtest(values, values.models or baselines())
    board = compare(**arguments, metrics=values.metrics, season_length=values.season_length, on_failure=values.on_failure)
    written = _write(board, values)
    facts: dict[str, Any] = {"leaderboard": to_records(board.table), "failed": board.failed, "written": written}
    return _outcome(board, facts, values)


def baselines() -> list[str]:
    """Return the names of all baseline models."""
    from deepforecast.cli.models import model_family
    from deepforecast.core.registry import names

    return [name for name in names() if model_family(name) == "baselines"]


def _write(board: Any, values: argparse.Namespace) -> list[str]:
    """Write the requested files; return their paths."""
    from deepforecast.cli.output_files import figure_bytes, write_bytes, write_frame

    if values.report is not None:
        board.report(values.report)
    if values.plot is not None:
        write_bytes(values.plot, figure_bytes(board.plot(), values.plot))
    if values.output not in (None, "-"):
        write_frame(board.forecasts, values)
    return [path for path in (values.report, values.plot, values.output) if path not in (None, "-")]


def _outcome(board: Any, facts: dict[str, Any], values: argparse.Namespace) -> Outcome:
    """The leaderboard as text, or on stderr if the forecasts go to standard output; status 1 if a model failed."""
    from deepforecast.cli.output_files import csv_bytes
    from deepforecast.cli.streams import one_line, print_notes
    from deepforecast.cli.table import terminal_width

    text = board.text(terminal_width())
    if not values.models:
        text += "\n" + NO_MODELS_NOTE
    status = 1 if facts["failed"] else 0
    if facts["written"]:
        text += "\n" + one_line(f"Written: {', '.join(facts['written'])}.")
    if values.output == "-":
        print_notes(text.splitlines())
        return Outcome(facts, data=csv_bytes(board.forecasts, values.spreadsheet_safe), status=status)
    return Outcome(facts, text, status=status)
