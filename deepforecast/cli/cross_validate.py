"""Forecast the past from its own past: every model at several cutoffs, scored against what came true."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.arguments import (
    Reading,
    add_data,
    add_levels,
    add_output,
    add_static,
    add_windows,
    backtest_options,
    columns_of,
    frequency_of,
    refit_of,
)
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser

USAGE = "DATA --model MODEL [MODEL ...] --horizon STEPS [options]"
EPILOG = """\
examples:
  deepforecast cross-validate sales.csv --model SeasonalNaive --model WindowMean:window=28 --horizon 14 --windows 4"""


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """The options of the command."""
    add_data(parser)
    add_static(parser)
    add_models(parser, required=True)
    add_windows(parser)
    parser.add_argument("--step", type=int, metavar="ROWS", help="rows between cutoffs; the horizon if not given")
    add_levels(parser)
    add_metrics(parser)
    parser.add_argument(
        "--by",
        nargs="+",
        choices=("model", "series", "cutoff", "step"),
        default=["model"],
        help="rows of the scores: for each model and, if asked, series, cutoff or step ahead",
    )
    add_output(parser, "the forecasts (id, time, cutoff, target, a column for each model)")


def add_models(parser: Parser, required: bool) -> None:
    """The models of a comparison."""
    parser.add_argument(
        "--model", "--models", dest="models", metavar="MODEL", nargs="+", action="extend", required=required,
        help="Name, Name:parameter=value,... or Name(parameter=value); several, or the option several times"
        + ("" if required else "; all baselines if not given"),
    )  # fmt: skip


def add_metrics(parser: Parser) -> None:
    """The metrics of a score."""
    parser.add_argument(
        "--metrics",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="e.g. mase smape rmse coverage; a name that is not known lists all",
    )


def run(values: argparse.Namespace) -> Outcome:
    """Read, forecast, score."""
    from deepforecast import cross_validate, score
    from deepforecast.cli.model_names import build
    from deepforecast.cli.plain import records
    from deepforecast.cli.reading import read, read_static
    from deepforecast.cli.streams import notes
    from deepforecast.cli.table import frame_text
    from deepforecast.cli.writing import check_frame_target, csv_bytes, write_frame

    check_frame_target(values.output)
    check_metrics(values.metrics)
    models = [build(text) for text in values.models]
    reading = Reading.of(values)
    data = read(values.data, columns_of(values), reading)
    static = None if values.static_data is None else read_static(values.static_data, data.columns, reading)
    needs_horizon(values, models)
    forecasts = cross_validate(
        models, data.frame, horizon=values.horizon, n_windows=values.windows, step_size=values.step,
        refit=refit_of(values.refit),
        level=values.level, freq=frequency_of(values.freq), columns=data.roles, static=static, options=backtest_options(values),
    )  # fmt: skip
    scores = score(forecasts, metrics=values.metrics, train=data.frame, by=values.by, columns=data.roles)
    facts: dict[str, Any] = {"scores": records(scores), "rows": len(forecasts), "output": values.output}
    text = frame_text(scores)
    if values.output == "-":
        notes(text.splitlines())
        return Outcome(facts, data=csv_bytes(forecasts, values.spreadsheet_safe))
    if values.output is not None:
        write_frame(forecasts, values)
        text += f"\n{len(forecasts):,} rows of forecasts written to {values.output}."
    return Outcome(facts, text)


def needs_horizon(values: argparse.Namespace, models: Sequence[Any]) -> None:
    """Refuse in the words of a command line what the library would refuse in those of Python."""
    from deepforecast.errors import ParameterError

    if values.horizon is None and any(model.horizon is None for model in models):
        raise ParameterError("A backtest has a horizon, the same for all models. Say --horizon STEPS.")


def check_metrics(names: Sequence[str] | None) -> None:
    """Refuse an unknown metric before the models run."""
    from deepforecast.evaluation.metrics import get

    for name in names or ():
        get(name)
