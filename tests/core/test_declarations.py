from __future__ import annotations

import inspect
import re
from typing import Any, Literal

import pytest

import deepforecast
from deepforecast.core import params, registry
from deepforecast.core.declarations import describe_type
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import param
from deepforecast.core.registry import MODELS


class Toy(Forecaster):
    """Forecast nothing.

    >>> 1 + 1
    2
    """

    rate: float = param(default=0.5, above=0, at_most=1, help="smoothing rate")
    kind: Literal["a", "b"] | None = param(default="a", help="variant. Or None for neither")
    widths: list[int] | None = param(default=None, at_least=1, help="layer widths")
    steps: int | Literal["auto"] = param(default="auto", at_least=1, group="training", help="steps")
    model: Any = param(help="anything")


def entries(doc: str) -> list[str]:
    """The parameters that a docstring lists, in order."""
    sections = re.findall(r"^(?:Other )?Parameters\n-+\n(.*?)(?=\n\n|\Z)", doc, re.MULTILINE | re.DOTALL)
    return [line.partition(" : ")[0] for section in sections for line in section.splitlines() if not line.startswith(" ")]


def test_parameters_are_listed_between_text_and_examples() -> None:
    doc = inspect.getdoc(Toy) or ""
    assert doc.startswith("Forecast nothing.\n\nParameters\n----------\nhorizon : int >= 1, optional\n")
    assert doc.endswith("Examples\n--------\n>>> 1 + 1\n2")
    assert "rate : float in (0, 1], default 0.5\n    Smoothing rate.\n" in doc
    assert "\n\nOther Parameters\n----------------\nsteps : int >= 1 or \"auto\", default \"auto\"\n    Steps.\n\n" in doc


def test_own_parameters_precede_inherited_ones_and_horizon_is_first() -> None:
    listed = entries(inspect.getdoc(Toy) or "")
    assert listed[:5] == ["horizon", "rate", "kind", "widths", "model"]
    assert listed[-1] == "steps"
    assert sorted(listed) == sorted(params.declared_params(Toy))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kind", '{"a", "b"} or None, default "a"'),
        ("widths", "list of int >= 1, optional"),
        ("model", "object"),
        ("steps", 'int >= 1 or "auto", default "auto"'),
    ],
)
def test_types_are_described_as_numpydoc_does(name: str, text: str) -> None:
    assert describe_type(params.declared_params(Toy)[name]) == text


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_of_a_model_is_documented(name: str) -> None:
    cls = registry.get(name)
    assert sorted(entries(cls.__doc__ or "")) == sorted(params.declared_params(cls))
    assert all(declared.help for declared in params.declared_params(cls).values())


def test_training_options_of_networks_are_listed_last() -> None:
    listed = entries(deepforecast.LSTM.__doc__ or "")
    assert listed.index("hidden_size") < listed.index("input_size") < listed.index("alias") < listed.index("max_steps")
