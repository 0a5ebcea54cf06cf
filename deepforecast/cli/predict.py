"""Forecast each series with a saved model, from its last observation or from the end of the series in --data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.arguments import TextFormat, add_levels, add_output, add_static, add_text_format
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser, parse_number
from deepforecast.errors import ParameterError, format_list

USAGE = "MODEL [options]"
EPILOG = """\
examples:
  deepforecast predict model.dfc --horizon 14 --level 80 95 --output forecast.csv"""


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the options of the command."""
    model = parser.add_argument(
        "model", metavar="MODEL", help="model file, written by deepforecast fit or by model.save in Python"
    )
    parser.add_argument("--horizon", type=int, metavar="STEPS", help="number of steps to forecast (default: that of the model)")
    add_levels(parser)
    parser.add_argument(
        "--quantiles", type=parse_number, nargs="+", action="extend", metavar="Q", help="quantile levels, e.g. 0.1 0.5 0.9"
    )
    history = parser.add_argument(
        "--data", metavar="FILE", help="series to forecast from, instead of those of the fit"
    )
    future = parser.add_argument(
        "--future-data", metavar="FILE", help="future covariates, one row per series and forecast step"
    )
    template = parser.add_argument(
        "--future-template",
        metavar="FILE",
        help="write the rows that --future-data needs, with empty columns, and exit",
    )
    parser.add_inputs(model, history, future)
    parser.add_targets(template)
    add_static(parser)
    add_text_format(parser)
    add_output(parser, "the forecasts")


def run(values: argparse.Namespace) -> Outcome:
    """Forecast with a saved model."""
    from deepforecast import load
    from deepforecast.cli.json_output import to_records
    from deepforecast.cli.output_files import check_frame_target, csv_bytes, write_frame
    from deepforecast.cli.table import format_frame

    check_frame_target(values.output)
    model = load(values.model)
    if values.horizon is None and model.horizon is None:
        raise ParameterError(
            f"--horizon must be given, since {type(model).__name__} was fitted without one.",
            hint="Pass --horizon STEPS."
        )
    future_columns = model.state_.series.columns.future
    if not model.state_.has_histories and (values.data is None or values.future_template is not None):
        raise ParameterError(
            f"--data must be given, and --future-template cannot be used, since {type(model).__name__} was saved without "
            "histories.",
            hint="Pass --data FILE with the series to forecast."
        )
    if values.future_template is not None:
        return _write_template(values, model, future_columns)
    if future_columns and values.future_data is None:
        raise ParameterError(
            f"--future-data must be given, since the model was fitted with future covariates ({format_list(future_columns)}).",
            hint="Pass --future-data FILE; --future-template FILE writes the rows it needs."
        )
    frame = model.predict(values.horizon, level=values.level, quantiles=values.quantiles, **_read_inputs(values, model))
    facts: dict[str, Any] = {"model": repr(model), "rows": len(frame), "output": values.output}
    if values.output not in (None, "-"):
        write_frame(frame, values)
        return Outcome(facts, f"{len(frame):,} rows written to {_format_path(values.output)}.")
    if values.json:
        return Outcome({**facts, "forecasts": to_records(frame)})
    if values.output is None and _is_interactive():
        return Outcome(facts, format_frame(frame))
    return Outcome(facts, data=csv_bytes(frame, values.spreadsheet_safe))


def _read_inputs(values: argparse.Namespace, model: Any) -> dict[str, Any]:
    """Read the frames, with ids and categories in the types the model was fitted with."""
    from dataclasses import replace

    from deepforecast.cli.data_files import all_roles, match_id_type, read_data, read_static

    columns = model.state_.series.columns
    text_format = TextFormat.from_arguments(values)
    categorical = tuple(name for name, categories in model.state_.categories.items() if categories is not None)
    text_format = replace(text_format, categorical=(*text_format.categorical, *categorical))
    roles = {**all_roles(columns), "static": (), "weight": None}  # forecasts need no weights
    frames: dict[str, Any] = {}
    if values.data is not None:
        frames["frame"] = read_data(
            values.data, {**roles, "static": columns.static}, text_format, fitted=True, ignored=columns.all
        ).frame
    if values.future_data is not None:
        future_roles = {**roles, "past": ()}
        frames["future"] = read_data(
            values.future_data, future_roles, text_format, target=False, fitted=True, ignored=columns.all
        ).frame
    if values.static_data is not None:
        frames["static"] = read_static(values.static_data, columns, text_format, fitted=True)
    return {name: match_id_type(frame, model.state_.series) for name, frame in frames.items()}


def _write_template(values: argparse.Namespace, model: Any, future_columns: Sequence[str]) -> Outcome:
    """Write the id and time columns of the future covariates, with empty values."""
    from deepforecast.cli.output_files import check_frame_target, to_pandas, write_frame

    check_frame_target(values.future_template)
    frame = to_pandas(model.future_frame(values.horizon)).assign(**dict.fromkeys(future_columns, ""))
    values.output = values.future_template
    write_frame(frame, values)
    facts = {"rows": len(frame), "output": values.output}
    return Outcome(
        facts,
        f"{len(frame):,} rows written to {_format_path(values.output)}: fill in {format_list(future_columns) or 'nothing'}.",
    )


def _is_interactive() -> bool:
    from deepforecast.cli import streams

    return streams.is_terminal(streams.standard_output())


def _format_path(path: str) -> str:
    from deepforecast.cli.streams import one_line

    return one_line(path)
