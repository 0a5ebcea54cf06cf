"""Learned quantiles, fixed and implicit: they do not cross, and end at the last trained probability."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from deepforecast.errors import CapabilityError, ParameterError
from deepforecast.nn.heads.base import Head
from deepforecast.nn.heads.quantiles import ImplicitQuantileHead, QuantileHead, interpolate_quantiles, pinball
from deepforecast.nn.heads.registry import make_head
from tests.nn.scales import scale


def fitted(one: Head, drawn: Tensor, steps: int = 300, rate: float = 0.2) -> Tensor:
    """What one window has to say of values drawn from one distribution: found by gradient descent. (width,)"""
    raw = torch.zeros(1, 1, one.out_features, requires_grad=True)
    found = torch.optim.Adam([raw, *one.parameters()], lr=rate)
    pace = torch.optim.lr_scheduler.LinearLR(found, 1.0, 0.0, steps)
    for _ in range(steps):
        found.zero_grad()
        one.loss(raw.expand(1, drawn.numel(), -1), drawn.view(1, -1), scale(1)).mean().backward()
        found.step()
        pace.step()
    return raw.detach().view(-1)


def skewed(count: int = 2000) -> Tensor:
    """Evenly spread draws of an exponential distribution."""
    return -torch.log1p(-(torch.arange(count, dtype=torch.float64) + 0.5) / count).float()


def test_for_zeros_they_are_the_normal_distributions() -> None:
    one = QuantileHead([0.01, 0.1, 0.3, 0.8])
    known = torch.tensor(one.probabilities, dtype=torch.float64)
    assert torch.allclose(one.values(torch.zeros(one.out_features, dtype=torch.float64)), torch.special.ndtri(known), atol=1e-6)


def test_each_step_moves_the_quantiles_beyond_it() -> None:
    one = QuantileHead([0.1, 0.3, 0.5, 0.7, 0.9])
    still, moved = one.values(torch.zeros(5)), one.values(torch.tensor([0.0, 1.0, 0.0, 2.0, 0.0]))
    assert moved[2] == still[2]
    assert torch.allclose(moved[0] - still[0], moved[1] - still[1])
    assert moved[1] < still[1]
    assert torch.allclose(moved[3] - still[3], moved[4] - still[4])
    assert moved[3] > still[3]


@given(st.integers(0, 10**6), st.sampled_from([0.1, 10.0, 1e3]))
def test_they_never_cross(seed: int, size: float) -> None:
    one = QuantileHead([number / 100 for number in range(1, 100)])  # so many that sums of them are rounded
    raw = size * torch.randn(20, one.out_features, generator=torch.Generator().manual_seed(seed))
    found = one.quantiles(raw, torch.tensor(one.probabilities, dtype=torch.float64))
    assert (found.diff(dim=-1) >= 0).all()


@pytest.mark.parametrize("name", ["quantiles", "implicit_quantile"])
def test_the_true_quantiles_are_learned(name: str) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        one, drawn = make_head(name), skewed()
        raw = fitted(one, drawn) if name == "quantiles" else fitted(one, drawn[::4], rate=0.05)
        p = torch.tensor([0.1, 0.3, 0.5, 0.8, 0.9], dtype=torch.float64)
        found = one.eval().quantiles(raw, p)
    tolerance = 0.01 if name == "quantiles" else 0.1
    assert torch.allclose(found, -torch.log1p(-p), atol=tolerance), found + torch.log1p(-p)


def test_between_the_learned_lie_straight_lines() -> None:
    one, raw = QuantileHead([0.1, 0.9]), torch.tensor([0.3, 1.0, -0.5])
    low, middle, high = one.values(raw.double())
    found = one.quantiles(raw, torch.tensor([0.1, 0.3, 0.5, 0.6, 0.9], dtype=torch.float64))
    expected = torch.stack([low, (low + middle) / 2, middle, middle + (high - middle) / 4, high])
    assert torch.allclose(found, expected)


def test_outside_of_the_learned_is_refused_by_name() -> None:
    one = QuantileHead([0.1, 0.9])
    assert one.probability_range == (0.1, 0.9)
    with pytest.raises(CapabilityError, match=r"The model cannot forecast quantiles outside of 0\.1 to 0\.9"):
        one.quantiles(torch.zeros(2, 3), torch.tensor([0.5, 0.95], dtype=torch.float64))


def test_the_median_alone_is_learned_by_the_absolute_error() -> None:
    one, raw = QuantileHead([0.5]), torch.tensor([[[1.5], [2.0]]])
    assert torch.allclose(one.loss(raw, torch.tensor([[1.0, 4.0]]), scale(1)), torch.tensor([[0.5, 2.0]]))
    assert one.quantiles(raw, torch.tensor([0.5])).flatten().tolist() == [1.5, 2.0]


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


def test_straight_lines() -> None:
    values, known = torch.tensor([[0.0, 1.0, 5.0]], dtype=torch.float64), torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
    p = torch.tensor([[0.1, 0.2, 0.35, 0.5, 0.6, 0.9, 0.99]], dtype=torch.float64)
    assert torch.allclose(
        interpolate_quantiles(values, known, p), torch.tensor([[0.0, 0.0, 0.5, 1.0, 2.0, 5.0, 5.0]], dtype=torch.float64)
    )


def test_pinball_is_twice_the_textbooks_and_the_absolute_error_at_the_median() -> None:
    generator = torch.Generator().manual_seed(0)
    point, target = torch.randn(2, 8, 5, generator=generator, dtype=torch.float64)
    p = torch.tensor([0.1, 0.5, 0.95], dtype=torch.float64)
    away = (target - point).unsqueeze(-1)
    expected = torch.maximum(p * away, (p - 1) * away).mean(-1)
    assert torch.allclose(pinball(point.unsqueeze(-1).expand(8, 5, 3), target, 2 * p - 1), 2 * expected)
    assert torch.allclose(pinball(point.unsqueeze(-1), target, torch.zeros(1, dtype=torch.float64)), away.squeeze(-1).abs())
