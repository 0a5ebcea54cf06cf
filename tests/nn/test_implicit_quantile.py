"""The implicit quantile head: one distribution, whatever is asked of it."""

from __future__ import annotations

import pytest
import torch

from deepforecast.errors import ParameterError
from deepforecast.nn.heads.quantiles import ImplicitQuantileHead


def made() -> tuple[ImplicitQuantileHead, torch.Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        one = ImplicitQuantileHead(8, 16)
        return one, 3 * torch.randn(50, one.out_features)


def test_a_quantile_is_the_same_whichever_others_are_asked_for() -> None:
    one, raw = made()
    p = torch.tensor([0.2, 0.9, 0.437], dtype=torch.float64)
    alone = torch.cat([one.quantiles(raw, each.view(1)) for each in p], dim=-1)
    assert torch.equal(one.quantiles(raw, p), alone)


def test_the_quantiles_are_those_the_network_gives_in_rising_order() -> None:
    one, raw = made()
    known = torch.linspace(0, 1, 201, dtype=torch.float64)
    as_given = one.values(raw.double(), known)
    assert (as_given.diff(dim=-1) < 0).any()  # some cross
    found = one.quantiles(raw, known[1:-1])
    assert torch.allclose(found, as_given.sort(-1).values[:, 1:-1])


def test_a_far_place_is_the_mean() -> None:
    one, raw = made()
    away = one.mean(raw)
    raw[:, 0] += 1e6
    assert torch.allclose(one.mean(raw), away + 1e6, rtol=1e-6)


def test_its_sizes_are_whole_numbers() -> None:
    with pytest.raises(ParameterError, match="`features` must be at least 1"):
        ImplicitQuantileHead(0)
