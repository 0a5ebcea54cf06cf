"""Text to the values of declared parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest

from deepforecast import Naive
from deepforecast.cli.parameter_values import parse_value
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import param
from deepforecast.errors import ParameterError


class Odd(Forecaster):
    """Parameters of every kind."""

    season: int | Literal["auto"] = param(default="auto", help="season")
    rate: float | None = param(default=0.1, help="rate")
    both: int | float = param(default=1, help="both")
    shuffle: bool = param(default=True, help="shuffle")
    lags: list[int] | None = param(default=None, help="lags")
    pairs: int | tuple[float, ...] = param(default=1, help="pairs")
    words: list[str] = param(default=("a",), help="words")
    widths: Sequence[int] | None = param(default=None, help="widths")
    trainer: Mapping[str, Any] | None = param(default=None, help="trainer")
    inner: Forecaster | None = param(default=None, help="inner")
    name_of: str | None = param(default=None, help="name")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("season", "AUTO", "auto"),
        ("season", "7", 7),
        ("season", "-7", -7),
        ("season", "weekly", "weekly"),
        ("rate", "1e-3", 0.001),
        ("rate", "none", None),
        ("rate", "fast", "fast"),
        ("both", "2", 2),
        ("both", "2.5", 2.5),
        ("shuffle", "no", False),
        ("shuffle", "maybe", "maybe"),
        ("lags", "1,2, 7", [1, 2, 7]),
        ("lags", "[1, 2]", [1, 2]),
        ("lags", ["1", "2"], [1, 2]),
        ("lags", "1,x", [1, "x"]),
        ("lags", "[]", []),
        ("lags", "None", None),
        ("pairs", "7", 7),
        ("pairs", "0.5,2", [0.5, 2.0]),
        ("words", "7,b", ["7", "b"]),
        ("widths", ["64", "32"], [64, 32]),
        ("widths", "none", None),
        ("trainer", '{"devices": 2}', {"devices": 2}),
        ("inner", "naive:alias=x", Naive(alias="x")),
        ("name_of", "7", "7"),
        ("name_of", "", ""),
    ],
)
def test_text_is_read_as_the_parameter_is_declared(name: str, text: str | list[str], value: object) -> None:
    found = parse_value(text, Odd, name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("trainer", "{", "trainer must be a JSON object"),
        ("trainer", "[1]", "trainer must be a JSON object"),
        ("rate", ["1", "2"], "rate must be a single value, got '1 2'"),
        ("inner", "nave", "must be a registered name, got 'nave'. Did you mean Naive"),
    ],
)
def test_text_that_cannot_be_one_is_refused(name: str, text: str | list[str], said: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse_value(text, Odd, name)
    assert said in str(refused.value)
