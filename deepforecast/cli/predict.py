"""Forecast with a saved model, every series from its own end (or from the end of the histories in --data)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.arguments import Reading, add_levels, add_output, add_reading, add_static
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser, number
from deepforecast.errors import ParameterError, format_list

USAGE = "MODEL [options]"
EPILOG = """\
examples:
  deepforecast predict model.dfc --horizon 14 --level 80 95 --output forecast.csv"""


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """The options of the command."""
    model = parser.add_argument("model", metavar="MODEL", help="file written by deepforecast fit, or by model.save in Python")
    parser.add_argument("--horizon", type=int, metavar="STEPS", help="steps to forecast; that of the model if not given")
    add_levels(parser)
    parser.add_argument("--quantiles", type=number, nargs="+", action="extend", metavar="Q", help="quantiles, e.g. 0.1 0.5 0.9")
    data = parser.add_argument(
        "--data", metavar="FILE", help="forecast from the end of these histories, in place of those of the fit"
    )
    future = parser.add_argument(
        "--future-data", metavar="FILE", help="the columns known ahead: a row for each series and step to come"
    )
    template = parser.add_argument(
        "--future-template",
        metavar="FILE",
        help="write the rows that --future-data has to have, without its columns, and leave",
    )
    parser.reads(model, data, future)
    parser.writes(template)
    add_static(parser)
    add_reading(parser)
    add_output(parser, "the forecasts")


def run(values: argparse.Namespace) -> Outcome:
    """Load, read, forecast, write."""
    from deepforecast import load
    from deepforecast.cli.plain import records
    from deepforecast.cli.table import frame_text
    from deepforecast.cli.writing import check_frame_target, csv_bytes, write_frame

    check_frame_target(values.output)
    model = load(values.model)
    if values.horizon is None and model.horizon is None:
        raise ParameterError(f"A forecast has a horizon; {type(model).__name__} was fitted without one. Say --horizon STEPS.")
    known = model.state_.series.columns.future
    if values.future_template is not None:
        return _template(values, model, known)
    if known and values.future_data is None:
        raise ParameterError(
            f"The model was fitted with columns known ahead ({format_list(known)}), so a forecast needs them. Say --future-data FILE; "
            "--future-template FILE writes the rows it has to have."
        )
    frame = model.predict(values.horizon, level=values.level, quantiles=values.quantiles, **_inputs(values, model))
    facts: dict[str, Any] = {"model": repr(model), "rows": len(frame), "output": values.output}
    if values.output not in (None, "-"):
        write_frame(frame, values)
        return Outcome(facts, f"{len(frame):,} rows written to {_name(values.output)}.")
    if values.json:
        return Outcome({**facts, "forecasts": records(frame)})
    if values.output is None and _for_people():
        return Outcome(facts, frame_text(frame))
    return Outcome(facts, data=csv_bytes(frame, values.spreadsheet_safe))


def _inputs(values: argparse.Namespace, model: Any) -> dict[str, Any]:
    """Frames from files, their ids and categories in the types the model was fitted with."""
    from dataclasses import replace

    from deepforecast.cli.reading import like_ids, read, read_static, roles_of

    columns = model.state_.series.columns
    reading = Reading.of(values)
    named = tuple(name for name, held in model.state_.categories.items() if held is not None)
    reading = replace(reading, categorical=(*reading.categorical, *named))
    said = {**roles_of(columns), "static": ()}
    found: dict[str, Any] = {}
    if values.data is not None:
        found["frame"] = read(values.data, {**said, "static": columns.static}, reading, fitted=True).frame
    if values.future_data is not None:
        ahead = {**said, "past": ()}
        found["future"] = read(values.future_data, ahead, reading, target=False, fitted=True, known=columns.all).frame
    if values.static_data is not None:
        found["static"] = read_static(values.static_data, columns, reading, fitted=True)
    return {name: like_ids(frame, model.state_.series) for name, frame in found.items()}


def _template(values: argparse.Namespace, model: Any, known: Sequence[str]) -> Outcome:
    """The keys of the columns known ahead, those columns empty."""
    from deepforecast.cli.writing import as_pandas, check_frame_target, write_frame

    check_frame_target(values.future_template)
    frame = as_pandas(model.future_frame(values.horizon)).assign(**dict.fromkeys(known, ""))
    values.output = values.future_template
    write_frame(frame, values)
    facts = {"rows": len(frame), "output": values.output}
    return Outcome(facts, f"{len(frame):,} rows written to {_name(values.output)}: fill in {format_list(known) or 'nothing'}.")


def _for_people() -> bool:
    from deepforecast.cli import streams

    return streams.is_terminal(streams.output())


def _name(path: str) -> str:
    from deepforecast.cli.streams import one_line

    return one_line(path)
