from __future__ import annotations

import json

import pytest

from deepforecast import Conformal, SeasonalNaive
from deepforecast.testing import plain_values
from deepforecast.testing.assertions import RuleBroken


def test_a_wrapped_model_comes_back() -> None:
    model = Conformal(SeasonalNaive(season_length=7, alias='it\'s "so"'), horizon=3)
    classes = plain_values.collect_classes(model)
    assert set(classes) == {"Conformal", "SeasonalNaive"}
    assert plain_values.evaluate(repr(model), classes) == model
    assert plain_values.from_plain(json.loads(json.dumps(plain_values.to_plain(model))), classes) == model


@pytest.mark.parametrize("value", [1, 2.5, "x", None, True, [1, (2, "a")], {"a": [1], "b": {"c": (1,)}}, ()])
def test_plain_values_come_back(value: object) -> None:
    again = plain_values.from_plain(json.loads(json.dumps(plain_values.to_plain(value))), {})
    assert (again, type(again)) == (value, type(value))
    assert plain_values.evaluate(repr(value), {}) == value


@pytest.mark.parametrize("text", ["open('x')", "__import__('os')", "SeasonalNaive.fit(3)", "(lambda: 1)()"])
def test_text_runs_no_code(text: str) -> None:
    with pytest.raises(RuleBroken, match=r"the classes of its parameters \(SeasonalNaive\), got"):
        plain_values.evaluate(text, {"SeasonalNaive": SeasonalNaive})


def test_names_are_no_values() -> None:
    with pytest.raises(ValueError, match="malformed"):
        plain_values.evaluate("[x for x in y]", {})
