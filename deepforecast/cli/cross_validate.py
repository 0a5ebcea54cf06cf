"""Evaluate models by rolling cross-validation: forecasts from several cutoffs, scored on the observations."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.arguments import add_output
from deepforecast.cli.backtest_options import add_backtest, parse_backtest
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser

USAGE = "DATA --model MODEL [MODEL ...] --horizon STEPS [options]"
EPILOG = """\
examples:
  deepforecast cross-validate sales.csv --model SeasonalNaive --model WindowMean:window=28 --horizon 14 --n-windows 4"""


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the options of the command."""
    add_backtest(parser, models_required=True)
    parser.add_argument(
        "--by",
        nargs="+",
        choices=("model", "series", "cutoff", "step"),
        default=["model"],
        help="rows of the score table: per model and, optionally, series, cutoff or step ahead",
    )
    parser.add_argument("--reference", metavar="MODEL", help="reference model of relative metrics such as owa")
    add_output(parser, "the forecasts (id, time, cutoff, target, one column per model)")


def run(values: argparse.Namespace) -> Outcome:
    """Cross-validate models."""
    from deepforecast import cross_validate, score
    from deepforecast.cli.json_output import to_records
    from deepforecast.cli.output_files import check_frame_target, csv_bytes, write_frame
    from deepforecast.cli.streams import print_notes
    from deepforecast.cli.table import format_frame

    check_frame_target(values.output)
    arguments = parse_backtest(values, values.models)
    forecasts = cross_validate(**arguments)
    scores = score(
        forecasts, metrics=values.metrics, train=arguments["frame"], by=values.by, season_length=values.season_length,
        columns=arguments["columns"], reference=values.reference,
    )  # fmt: skip
    facts: dict[str, Any] = {"scores": to_records(scores), "rows": len(forecasts), "output": values.output}
    text = format_frame(scores)
    if values.output == "-":
        print_notes(text.splitlines())
        return Outcome(facts, data=csv_bytes(forecasts, values.spreadsheet_safe))
    if values.output is not None:
        write_frame(forecasts, values)
        text += f"\n{len(forecasts):,} rows of forecasts written to {values.output}."
    return Outcome(facts, text)
