"""Counts beside scipy's: the probability of whole numbers in their own units, whatever the scale of the window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from deepforecast.nn.heads.base import softplus_floor
from deepforecast.nn.heads.registry import HEADS, make_head
from tests.nn.scales import scale

NAMES = [name for name, one in HEADS.items() if one.is_count]
P = [1e-12, 1e-3, 0.2, 0.5, 0.8, 0.999, 1 - 1e-9]


def grid(width: int) -> Tensor:
    values = torch.tensor([-6.0, -1.0, 0.0, 3.0], dtype=torch.float64)
    return torch.cartesian_prod(*[values] * width).reshape(1, -1, width)


def theirs(name: str, raw: Tensor, spread: float) -> tuple[Any, Any]:
    """Scipy's distribution, and the share of further zeros."""
    rate = spread * softplus_floor(raw[..., 0]).numpy()
    if name == "poisson":
        return stats.poisson(rate), 0.0
    size = 1 / softplus_floor(raw[..., 1]).numpy()
    zeros = torch.sigmoid(raw[..., 2]).numpy() if name == "zero_inflated" else 0.0
    return stats.nbinom(size, size / (size + rate)), zeros


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spread", [0.02, 1.0, 50.0])
def test_the_loss_is_the_negative_log_probability(name: str, spread: float) -> None:
    raw = grid(HEADS[name].out_features)
    expected, zeros = theirs(name, raw, spread)
    for y in (0, 1, 7, 200):
        target = torch.full(raw.shape[:2], y / spread, dtype=torch.float64)
        with np.errstate(divide="ignore"):
            logarithm = expected.logpmf(y) + np.log1p(-zeros)
            logarithm = np.logaddexp(logarithm, np.log(zeros)) if y == 0 else logarithm
        found = make_head(name).loss(raw, target, scale(1, spread=spread))
        assert torch.allclose(found, torch.as_tensor(-logarithm), rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spread", [0.02, 1.0, 300.0])
def test_quantiles_are_the_least_whole_numbers_that_suffice(name: str, spread: float) -> None:
    raw = grid(HEADS[name].out_features)
    known, zeros = theirs(name, raw, spread)
    found = make_head(name).quantiles(raw, torch.tensor(P, dtype=torch.float64), torch.tensor([[spread]]))
    counts = found.numpy() * float(np.float32(spread))
    assert np.allclose(counts, counts.round(), atol=1e-6 * counts.max())
    for number, p in enumerate(P):
        y = counts[..., number].round()
        below, upto = (zeros + (1 - zeros) * known.cdf(value) for value in (y - 1, y))
        assert (upto >= p - 1e-12).all()
        assert ((below < p + 1e-12 * (p > 0.1)) | (y == 0)).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_mean_is_that_of_the_counts(name: str) -> None:
    raw = grid(HEADS[name].out_features)
    known, zeros = theirs(name, raw, 50.0)
    assert torch.allclose(50 * make_head(name).mean(raw), torch.as_tensor((1 - zeros) * known.mean()), rtol=1e-9)


def test_large_counts_keep_their_precision() -> None:
    """Beside float32, where the logarithm of the factorial alone is off by thousands."""
    raw = torch.tensor([[[1.0, -3.0]]], requires_grad=True)
    target, spread = torch.tensor([[1.0]]), 1e9
    found = make_head("negative_binomial").loss(raw, target, scale(1, spread=spread))
    known, _ = theirs("negative_binomial", raw.detach().double(), spread)
    assert found.item() == pytest.approx(-known.logpmf(10**9).item(), rel=1e-5)
    found.sum().backward()
    assert raw.grad is not None
    assert raw.grad.abs().max() < 100


def test_a_window_of_zeros_forecasts_zeros() -> None:
    for name in NAMES:
        one = make_head(name)
        raw, windows = torch.zeros(1, 2, one.out_features), scale(1, spread=0.0)
        assert one.loss(raw, torch.zeros(1, 2), windows).abs().max() < 2
        assert one.quantiles(raw, torch.tensor([0.1, 0.99]), windows.scale).abs().max() == 0


def test_nothing_but_further_zeros() -> None:
    found = make_head("zero_inflated").quantiles(torch.tensor([[2.0, 0.0, 1e4]]), torch.tensor(P, dtype=torch.float64))
    assert found.abs().max() == 0


def test_further_zeros_come_first() -> None:
    """Nine in ten are zero whatever the counts: the quantiles above are those of the counts, stretched."""
    share = torch.logit(torch.tensor(0.9, dtype=torch.float64)).item()
    raw = torch.tensor([[2.0, 0.0, share]], dtype=torch.float64)
    found = make_head("zero_inflated").quantiles(raw, torch.tensor([0.5, 0.9, 0.95], dtype=torch.float64))
    plain = make_head("negative_binomial").quantiles(raw[:, :2], torch.tensor([0.5], dtype=torch.float64))
    assert found.tolist() == [[0.0, 0.0, plain.item()]]
    assert plain.item() > 0
