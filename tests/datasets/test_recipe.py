from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pytest

from deepforecast.datasets import COVARIATES, Effects, Recipe
from deepforecast.errors import ParameterError, ParameterTypeError


def test_covariates_of_every_kind() -> None:
    kinds = set(COVARIATES.values())
    assert kinds == {(role, kind) for role in ("future", "past", "static") for kind in ("number", "category")}


def test_roles_follow_the_covariates() -> None:
    assert Recipe().columns == {"future": (), "past": (), "static": ()}
    assert Recipe(covariates="all").columns == {
        "future": ("price", "holiday", "promotion"),
        "past": ("visits", "stock"),
        "static": ("size", "region"),
    }


def test_sequences_become_tuples_so_that_recipes_can_be_compared_and_hashed() -> None:
    listed: Any = [["none", 0], ["flyer", 1]]
    names: Any = ["visits", "price", "price"]
    left = Recipe(covariates=names, seasons=[7, 30], effects=Effects(promotion=listed))  # type: ignore[arg-type]
    right = Recipe(covariates=("price", "visits"), seasons=(7, 30), effects=Effects(promotion=(("none", 0), ("flyer", 1))))
    assert left == right
    assert hash(left) == hash(right)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"missing": 1.0}, ParameterError, r"`missing` must be in \[0, 1\), got 1.0"),
        ({"ragged": -0.1}, ParameterError, r"`ragged` must be in \[0, 1\)"),
        ({"intermittent": float("nan")}, ParameterError, r"`intermittent` must be in"),
        ({"noise": -1.0}, ParameterError, "`noise` must be finite and at least 0"),
        ({"level": float("inf")}, ParameterError, "`level` must be finite"),
        ({"trend": "up"}, ParameterTypeError, "`trend` must be a number"),
        ({"missing": True}, ParameterTypeError, "`missing` must be a number"),
        ({"shifts": -1}, ParameterError, "`shifts` must be at least 0"),
        ({"shifts": 1.5}, ParameterTypeError, "`shifts` must be an integer"),
        ({"lag": 0}, ParameterError, "`lag` must be at least 1"),
        ({"seasons": "weekly"}, ParameterTypeError, "`seasons` must be 'auto' or a sequence"),
        ({"seasons": 7}, ParameterTypeError, "`seasons` must be 'auto' or a sequence"),
        ({"seasons": (1,)}, ParameterError, "`seasons` must be at least 2"),
        ({"covariates": ("prise",)}, ParameterError, r"among price, .*, got prise"),
        ({"covariates": "price"}, ParameterTypeError, "`covariates` must be 'all' or a sequence"),
        ({"effects": 3}, ParameterTypeError, "`effects` must be an Effects object"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Recipe(**options)


@pytest.mark.parametrize(
    ("effects", "text"),
    [
        ({"price": float("nan")}, "The effect of `price` must be finite"),
        ({"promotion": ()}, "at least one category"),
        ({"region": (("a", 1.0), ("a", 2.0))}, "no duplicates"),
        ({"stock": (("low", "x"),)}, "The effect of stock='low' must be a number"),
    ],
)
def test_effects_out_of_range(effects: dict[str, Any], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        Effects(**effects)


def test_numpy_numbers_are_numbers() -> None:
    assert Recipe(noise=np.float32(1.5), shifts=np.int64(2)).shifts == 2  # type: ignore[arg-type]


def test_usual_sizes_are_kept() -> None:
    """The contract's checks, the docs and saved results rest on them: a change is one of all these."""
    assert asdict(Effects()) == {
        "price": -6.0,
        "holiday": 20.0,
        "promotion": (("none", 0.0), ("flyer", 8.0), ("display", 16.0)),
        "visits": 4.0,
        "stock": (("full", 0.0), ("low", -10.0)),
        "size": 5.0,
        "region": (("north", 0.0), ("east", 6.0), ("south", 12.0), ("west", -6.0)),
    }
    usual = {one.name: getattr(Recipe(), one.name) for one in fields(Recipe) if one.name != "effects"}
    assert usual == {
        "level": 100.0, "level_spread": 10.0, "trend": 0.05, "seasons": "auto", "season_strength": 10.0, "shifts": 0,
        "shift": 30.0, "noise": 2.0, "missing": 0.0, "intermittent": 0.0, "ragged": 0.0, "covariates": (), "lag": 1,
    }  # fmt: skip
