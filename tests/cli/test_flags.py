"""Declared parameters as options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from deepforecast import Naive
from deepforecast.cli.flags import DEFAULTS, add_flags, describe_parameter, parse_parameters
from deepforecast.cli.parser import Parser
from deepforecast.core import registry
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import declared_params, param
from deepforecast.errors import ParameterError


class Odd(Forecaster):
    """Parameters of every kind.

    And more.
    """

    learning_rate: float = param(default=1e-3, above=0, below=1, help="step size, in 100 % of")
    shuffle: bool = param(default=True, help="shuffle")
    lags: list[int] = param(default=(1, 7), at_least=1, help="lags")
    trainer: Mapping[str, Any] | None = param(default=None, help="passed on")
    inner: Forecaster = param(help="model inside")
    freq: Literal["D", "W"] = param(default="D", help="an option of the command has this name")
    degree: Literal[0, 1] = param(default=0, help="of the trend")
    window: int | Literal["auto"] = param(default="auto", at_least=1, help="of the mean")
    days: str | dict[str, Any] | None = param(default=None, help="a name or a table")


def parser() -> Parser:
    made = Parser("deepforecast fit", "DATA", "")
    made.add_argument("--freq")
    add_flags(made, Odd)
    return made


def test_kind_range_and_default_are_said() -> None:
    said = {name: describe_parameter(one) for name, one in declared_params(Odd).items()}
    assert said["learning_rate"] == "step size, in 100 % of (a number above 0 and below 1; default 0.001)"
    assert said["shuffle"] == "shuffle (true or false; default True)"
    assert said["bounds"].endswith("None: no bounds (a list, each number or none; default none)")
    assert said["lags"] == "lags (a list of values of at least 1; default (1, 7))"
    assert said["trainer"] == "passed on (JSON; default none)"
    assert said["inner"] == "model inside (a model; required)"
    assert said["degree"] == "of the trend (0 or 1; default 0)"
    assert said["window"] == "of the mean (auto or an integer of at least 1; default auto)"
    assert said["missing"].endswith("(auto, interpolate, ffill or zero; default auto)")


def test_help_formats() -> None:
    text = " ".join(parser().format_help().split())
    assert "step size, in 100 % of" in text
    assert "--shuffle, --no-shuffle" in text
    assert "inner: model inside (a model; required); freq: an option of the command has this name" in text


def test_only_what_was_given_is_passed_on() -> None:
    values = parser().parse(["--no-shuffle", "--lags", "1", "2", "--set", "inner=Naive", "--freq", "h", "--set", "freq=W"])
    assert parse_parameters(values, Odd) == {"shuffle": False, "lags": [1, 2], "inner": Naive(), "freq": "W"}
    assert values.freq == "h"


@pytest.mark.parametrize(("text", "value"), [("DE", "DE"), ("none", None), ('{"x": [1]}', {"x": [1]})])
def test_a_parameter_that_takes_text_or_a_dict_has_a_flag(text: str, value: Any) -> None:
    assert parse_parameters(parser().parse(["--days", text]), Odd) == {"days": value}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "lags"], "must be given as name=value"),
        (["--set", "=3"], "must be given as name=value"),
        (["--set", "lag=3"], "Odd has no parameter lag. Did you mean lags"),
        (["--set", "lags=3", "--lags", "4"], "lags is given more than once"),
        (["--set", "lags=3", "--set", "lags=4"], "lags is given more than once"),
        (["--trainer", "{}"], "Odd has no option --trainer. Use --set NAME=VALUE, here --set trainer=VALUE."),
        (["--learning-rte", "1"], "Odd has no option --learning-rte. Did you mean --learning-rate?"),
    ],
)
def test_wrong_parameters_are_refused(arguments: list[str], said: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse_parameters(parser().parse(arguments), Odd)
    assert said in str(refused.value)


@pytest.mark.parametrize("name", registry.names())
def test_the_help_of_each_model_lists_all_it_declares(run, name: str) -> None:
    ran = run("fit", "--model", name, "--help")
    text = " ".join(ran.out.split())
    assert (ran.status, ran.err) == (0, "")
    assert f"parameters of {name}:" in text
    for parameter, one in declared_params(registry.get(name)).items():
        flag = f"--{parameter.replace('_', '-')}"
        assert f"{flag} " in text or f"{flag}, --no-" in text or f"{parameter}: " in text
        assert " ".join(one.help.removesuffix(".").split()) in text
        default = DEFAULTS.get(parameter, one.default)
        assert one.required or f"default {'none' if default is None else default})" in text
