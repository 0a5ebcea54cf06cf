"""Counts and the Tweedie distribution compared with scipy, whatever the scale of the window."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch
from scipy import special, stats
from torch import Tensor

from deepforecast.nn.heads.base import softplus_floor
from deepforecast.nn.heads.counts import MAX_COUNT, count_quantile
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


GRID = torch.cartesian_prod(*[torch.tensor([-6.0, -1.0, 0.0, 3.0], dtype=torch.float64)] * 2).reshape(1, -1, 2)
GOLDEN = {0.0: 0.135335283236613, 0.5: 0.476926876972594, 1.0: 0.357501679004871, 3.0: 0.056509295998458}
TERMS = np.arange(1, 4000)


def parts(raw: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Rate of the number of amounts, and mean of an amount."""
    mean, dispersion = softplus_floor(raw[..., 0]).numpy(), softplus_floor(raw[..., 1]).numpy()
    return 2 * np.sqrt(mean) / dispersion, 0.5 * dispersion * np.sqrt(mean)


@pytest.mark.parametrize("y", [0.0, 1e-6, 0.1, 1.0, 20.0])
def test_the_loss_is_the_negative_log_density_of_the_sum(y: float) -> None:
    found = make_head("tweedie").loss(GRID, torch.full(GRID.shape[:2], y, dtype=torch.float64), scale(1))
    for number, (rate, size) in enumerate(zip(*(one.reshape(-1) for one in parts(GRID)), strict=True)):
        if rate > 1000:
            continue  # more terms than are summed here
        logs = stats.poisson.logpmf(TERMS, rate) + stats.gamma.logpdf(y, TERMS, scale=size) if y else -rate
        assert found[0, number].item() == pytest.approx(-np.logaddexp.reduce(np.atleast_1d(logs)), rel=1e-9, abs=1e-9)


def test_quantiles_are_those_of_the_sum() -> None:
    p = np.array([1e-9, 1e-3, 0.2, 0.5, 0.8, 0.999, 1 - 1e-9])
    found = make_head("tweedie").quantiles(GRID, torch.tensor(p)).numpy()[0]
    for values, rate, size in zip(found, *(one.reshape(-1) for one in parts(GRID)), strict=True):
        if rate > 1000:
            continue
        amounts = stats.gamma.cdf(values[:, None], TERMS, scale=size) @ stats.poisson.pmf(TERMS, rate)
        below = np.exp(-rate) + amounts
        assert (values[p <= np.exp(-rate)] == 0).all()
        np.testing.assert_allclose(below[values > 0], p[values > 0], rtol=1e-9)
        assert (np.diff(values) >= 0).all()


def test_draws_have_its_zeros_moments_and_quantiles() -> None:
    raw = torch.tensor([0.3, -0.5], dtype=torch.float64)
    rate, size = parts(raw)
    rng = np.random.default_rng(0)
    drawn = rng.gamma(np.maximum(number := rng.poisson(rate, 60_000), 1e-9)) * size * (number > 0)
    one = make_head("tweedie")
    wanted = np.quantile(drawn, [0.3, 0.5, 0.9])
    np.testing.assert_allclose(one.quantiles(raw, torch.tensor([0.3, 0.5, 0.9])).numpy(), wanted, rtol=0.03)
    assert one.mean(raw).item() == pytest.approx(drawn.mean(), rel=0.02)
    uniform = torch.rand(60_000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    own = one.quantiles(raw, uniform).numpy()
    assert (own == 0).mean() == pytest.approx(np.exp(-rate), abs=0.006)
    mean, dispersion = (softplus_floor(part).item() for part in raw)
    assert own.var() == pytest.approx(dispersion * mean**1.5, rel=0.04)


def test_golden() -> None:
    """Of mean 1 and dispersion 1, from 200 terms of the sum in 50 digits."""
    raw = torch.full((1, 1, 2), np.log(np.e ** (1 - 1e-6) - 1), dtype=torch.float64)
    for y, density in GOLDEN.items():
        found = make_head("tweedie").loss(raw, torch.full((1, 1), y, dtype=torch.float64), scale(1)).item()
        assert np.exp(-found) == pytest.approx(density, rel=1e-9)


def test_a_multiple_of_it_is_one_too() -> None:
    """Levels depend on no unit: the variance of 3 y is sqrt(3) times the dispersion times the mean's power."""
    raw = torch.tensor([[0.4, -0.2]], dtype=torch.float64)
    mean, dispersion = softplus_floor(raw[0, 0]), softplus_floor(raw[0, 1])
    back = torch.stack([3 * mean, 3**0.5 * dispersion]) - 1e-6
    larger = (back.exp() - 1).log().unsqueeze(0)
    p = torch.tensor([0.2, 0.6, 0.95])
    assert torch.allclose(3 * make_head("tweedie").quantiles(raw, p), make_head("tweedie").quantiles(larger, p), rtol=1e-9)


def test_the_gradient_is_that_of_the_loss() -> None:
    raw = GRID.clone().requires_grad_()
    for y in (0.0, 0.3, 5.0):
        target = torch.full(GRID.shape[:2], y, dtype=torch.float64)
        assert torch.autograd.gradcheck(lambda given, target=target: make_head("tweedie").loss(given, target, scale(1)), raw)


def test_many_quantiles_take_little_time() -> None:
    raw = torch.randn(24_000, 2, generator=torch.Generator().manual_seed(0))
    begin = time.process_time()
    make_head("tweedie").quantiles(raw, torch.tensor([0.1, 0.5, 0.9]))
    assert time.process_time() - begin < 2.0  # ten times what it may take


@pytest.mark.parametrize("guess", [0.0, 3.0, 40.0, 1e6, np.nan, -5.0])
def test_counts_are_found_from_any_guess(guess: float) -> None:
    p = np.array([1e-12, 0.01, 0.5, 0.9, 1 - 1e-12, 1 - 2**-53])
    rate = np.full(6, 9.5)
    found = count_quantile(special.pdtr, p, np.full(6, guess), rate)
    assert (special.pdtr(found, rate) >= p).all()
    assert ((found == 0) | (special.pdtr(found - 1, rate) < p)).all()


def test_counts_end_somewhere() -> None:
    """A cumulated probability that never gets there, as rounding may make one."""
    found = count_quantile(lambda count: np.full_like(count, 0.5), np.array([0.9, 0.4]), np.array([3.0, 3.0]))
    assert found.tolist() == [MAX_COUNT, 0.0]
