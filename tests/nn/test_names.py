"""The facts of names are those of the torch code."""

from __future__ import annotations

from typing import get_args

import pytest

from deepforecast.nn import names
from deepforecast.nn.heads.registry import HEADS
from deepforecast.nn.scaling import SCALER_FUNCTIONS
from deepforecast.nn.scores import SCORES


def test_each_name_has_facts_and_code() -> None:
    assert set(get_args(names.HeadName)) == set(names.HEAD_FACTS) == set(HEADS)
    assert get_args(names.LossName) == tuple(names.LOSS_FACTS)
    assert all(callable(names.implementation(facts.implementation)) for facts in names.LOSS_FACTS.values())
    assert set(get_args(names.Scaler)) == set(names.SCALER_FACTS) == set(SCALER_FUNCTIONS)
    assert set(get_args(names.Score)) <= set(SCORES)
    assert get_args(names.LocationHeadName) == names.LOCATION_HEADS


@pytest.mark.parametrize("name", list(HEADS))
def test_heads_have_their_facts(name: str) -> None:
    head, facts = HEADS[name], names.HEAD_FACTS[name]
    assert (head.support, head.is_count, head.has_distribution) == facts[1:4]
    assert head().facts[1:4] == facts[1:4]
    assert head.name == name


def test_heads_with_a_location_are_real() -> None:
    assert {names.HEAD_FACTS[name].support for name in names.LOCATION_HEADS} == {"real"}
