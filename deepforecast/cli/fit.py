"""Fit one model to a data file and save it.

`deepforecast fit --model NAME --help` shows the parameters of that model."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.arguments import add_data, add_static, frequency_of
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser
from deepforecast.errors import ParameterError, format_value

USAGE = "DATA --model NAME --save FILE [options]"
EPILOG = """\
examples:
  deepforecast fit sales.csv --model SeasonalNaive --horizon 14 --season-length 7 --save model.dfc
  deepforecast fit sales.csv --model Conformal --set model=Naive --horizon 14 --save model.dfc"""


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """The options of the command, and those of the model that is named."""
    parser.add_argument(
        "--model", required=True, action=Once, metavar="NAME", help="which model; deepforecast models lists them"
    )
    save_help = "file of the fitted model; a model file that exists is replaced, any other file is not"
    parser.writes(parser.add_argument("--save", required=True, metavar="FILE", help=save_help))
    add_data(parser)
    add_static(parser)
    name = named(arguments)
    if name is None:
        parser.lacking = "--model NAME is required, and only with it are the options of that model known"
    else:
        from deepforecast.cli.flags import add_flags
        from deepforecast.cli.model_names import find

        only, colon, said = name.partition(":")
        if colon:
            way_out = f"--model {format_value(only)} --set {format_value(said) or 'NAME=VALUE'}"
            raise ParameterError(f"In fit a model is named by its name alone, and its parameters are options: {way_out}.")
        add_flags(parser, find(name))


def run(values: argparse.Namespace) -> Outcome:
    """Read, fit, save."""
    from deepforecast.cli.flags import parameters
    from deepforecast.cli.model_names import find
    from deepforecast.cli.reading import read_all
    from deepforecast.cli.writing import check_model_target, save_model

    check_model_target(values.save)
    cls = find(values.model)
    model = cls(**parameters(values, cls))
    data, static = read_all(values)
    started = time.perf_counter()
    model.fit(data.frame, freq=frequency_of(values.freq), columns=data.roles, static=static)
    seconds = time.perf_counter() - started
    save_model(model, values.save)
    series = model.state_.series
    facts = {"model": repr(model), "series": len(series), "rows": len(data.frame), "freq": series.calendar.freq}
    facts |= {"seconds": seconds, "saved": values.save}
    return Outcome(facts, _text(facts))


class Once(argparse.Action):
    """An option that stands once on a command line."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:
        """Keep the value, unless there is one."""
        if getattr(namespace, self.dest) is not None:
            hint = f"{option_string} is said once; got {format_value(getattr(namespace, self.dest))} and {format_value(values)}"
            parser.error(f"{hint}. A model that wraps another is told so: --model Conformal --set model=Naive")
        setattr(namespace, self.dest, values)


def named(arguments: Sequence[str]) -> str | None:
    """The value of `--model`, looked up before the command line is parsed: the options depend on it."""
    for at, one in enumerate(arguments):
        name, equals, value = one.partition("=")
        if name == "--model":
            following = arguments[at + 1] if at + 1 < len(arguments) else ""
            return value if equals else None if following.startswith("-") or not following else following
    return None


def _text(facts: dict[str, object]) -> str:
    import os

    from deepforecast.cli.streams import one_line
    from deepforecast.cli.table import seconds, size

    path = str(facts["saved"])
    return one_line(
        f"{facts['model']} fitted to {facts['series']:,} series of {facts['rows']:,} rows, freq {facts['freq']}, in "
        f"{seconds(float(str(facts['seconds'])))}; saved to {path} ({size(os.path.getsize(path))})."
    )
