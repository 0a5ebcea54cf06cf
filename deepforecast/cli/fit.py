"""Fit one model to a data file and save it.

`deepforecast fit --model NAME --help` shows the parameters of that model."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from deepforecast.cli.arguments import add_data, add_static, parse_frequency
from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser
from deepforecast.errors import ParameterError, format_value

USAGE = "DATA --model NAME --save FILE [options]"
EPILOG = """\
examples:
  deepforecast fit sales.csv --model SeasonalNaive --horizon 14 --season-length 7 --save model.dfc
  deepforecast fit sales.csv --model Conformal --set model=Naive --horizon 14 --save model.dfc"""


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the options of the command and the parameters of the model."""
    parser.add_argument(
        "--model", required=True, action=SingleUse, metavar="NAME", help="model to fit; deepforecast models lists them"
    )
    save_help = "file of the fitted model; an existing model file is replaced, any other file is not"
    parser.add_targets(parser.add_argument("--save", required=True, metavar="FILE", help=save_help))
    add_data(parser)
    add_static(parser)
    name = find_model_name(arguments)
    if name is None:
        parser.missing_option = "--model NAME must be given, since the options depend on the model"
    else:
        from deepforecast.cli.flags import add_flags
        from deepforecast.cli.model_names import find_model

        model_name, colon, parameters = name.partition(":")
        if colon:
            hint = f"--model {format_value(model_name)} --set {format_value(parameters) or 'NAME=VALUE'}"
            raise ParameterError("--model must be a name without parameters in fit.", hint=f"Use {hint}.")
        add_flags(parser, find_model(name))


def run(values: argparse.Namespace) -> Outcome:
    """Fit and save a model."""
    from deepforecast.cli.data_files import read_inputs
    from deepforecast.cli.flags import DEFAULTS, parse_parameters
    from deepforecast.cli.model_names import find_model
    from deepforecast.cli.output_files import check_model_target, save_model

    check_model_target(values.save)
    cls = find_model(values.model)
    model = cls(**{**DEFAULTS, **parse_parameters(values, cls)})
    inputs, static = read_inputs(values)
    started = time.perf_counter()
    model.fit(inputs.frame, freq=parse_frequency(values.freq), columns=inputs.roles, static=static)
    seconds = time.perf_counter() - started
    save_model(model, values.save)
    series = model.state_.all_series
    failures = len(model.state_.fallback.reasons) if model.state_.fallback is not None else 0
    facts = {"model": repr(model), "series": len(series), "failed_series": failures, "rows": len(inputs.frame)}
    facts |= {"freq": series.calendar.freq, "seconds": seconds, "saved": values.save}
    return Outcome(facts, _text(facts))


class SingleUse(argparse.Action):
    """An option that may be given only once."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:
        """Store the value; raise if there is one already."""
        if getattr(namespace, self.dest) is not None:
            first = format_value(getattr(namespace, self.dest))
            hint = f"{option_string} must be given once, got {first} and {format_value(values)}"
            parser.error(f"{hint}. To wrap a model, use --model Conformal --set model=Naive")
        setattr(namespace, self.dest, values)


def find_model_name(arguments: Sequence[str]) -> str | None:
    """Return the value of `--model` before parsing, since the options depend on it."""
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == "--model":
            following = arguments[position + 1] if position + 1 < len(arguments) else ""
            return value if equals else None if following.startswith("-") or not following else following
    return None


def _text(facts: dict[str, object]) -> str:
    """One line on the fitted model, the data, the time and the saved file."""
    import os

    from deepforecast.cli.streams import one_line
    from deepforecast.cli.table import format_seconds, format_size

    path = str(facts["saved"])
    return one_line(
        f"{facts['model']} fitted to {facts['series']:,} series of {facts['rows']:,} rows, freq {facts['freq']}, in "
        f"{format_seconds(float(str(facts['seconds'])))}; saved to {path} ({format_size(os.path.getsize(path))})."
    )
