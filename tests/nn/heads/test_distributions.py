"""Densities compared with those of torch, and quantiles with their inverse."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import special, stats
from torch import Tensor, distributions

from deepforecast.errors import ParameterError
from deepforecast.nn.heads.base import SOFTPLUS_FLOOR, make_monotone, softplus_floor
from deepforecast.nn.heads.distributions import MixtureHead, bisect, log_gamma_half_step, student_t_quantile
from deepforecast.nn.heads.registry import HEADS, make_head
from tests.nn.scales import scale

EXACT = torch.float64
P = torch.tensor([1e-12, 1e-5, 0.03, 0.3, 0.5, 0.7, 0.97, 1 - 1e-5], dtype=EXACT)


def grid(width: int) -> Tensor:
    """Raw numbers (1, H, width)."""
    values = torch.tensor([-8.0, -1.0, 0.0, 2.5], dtype=EXACT)
    return torch.cartesian_prod(*[values] * width).view(1, -1, width)


def theirs(name: str, raw: Tensor) -> distributions.Distribution:
    first, second = raw[..., 0], softplus_floor(raw[..., 1])
    if name == "student_t":
        return distributions.StudentT(2 + softplus_floor(raw[..., 2]), first, second)
    kinds = {"normal": distributions.Normal, "laplace": distributions.Laplace, "lognormal": distributions.LogNormal}
    return kinds[name](first, second)


@pytest.mark.parametrize("name", ["normal", "laplace", "student_t", "lognormal"])
def test_the_loss_is_the_negative_log_density(name: str) -> None:
    raw = grid(HEADS[name].out_features)
    for value in (1e-3, 0.4, 1.0, 30.0):
        target = torch.full(raw.shape[:2], value, dtype=EXACT)
        expected = -theirs(name, raw).log_prob(target)
        assert torch.allclose(make_head(name).loss(raw, target, scale(1)), expected, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("name", ["normal", "laplace", "student_t", "lognormal"])
def test_quantiles_and_mean_are_theirs(name: str) -> None:
    raw = grid(HEADS[name].out_features)[:, ::3]
    first, second = raw[..., :1].numpy(), softplus_floor(raw[..., 1:2]).numpy()
    known = {
        "normal": lambda: stats.norm(first, second),
        "laplace": lambda: stats.laplace(first, second),
        "student_t": lambda: stats.t(2 + softplus_floor(raw[..., 2:]).numpy(), first, second),
        "lognormal": lambda: stats.lognorm(second, scale=torch.tensor(first).exp().numpy()),
    }[name]()
    found = make_head(name).quantiles(raw, P)
    assert torch.allclose(torch.as_tensor(known.cdf(found)), P, rtol=1e-6, atol=0)
    assert torch.allclose(make_head(name).mean(raw), torch.as_tensor(known.mean()).squeeze(-1), rtol=1e-9)


def test_deviations_have_a_floor() -> None:
    assert softplus_floor(torch.tensor(-1e4)).item() == pytest.approx(SOFTPLUS_FLOOR)
    assert softplus_floor(torch.tensor(50.0)).item() == pytest.approx(50.0)


def test_half_step_of_the_gamma_function() -> None:
    a = torch.tensor([1.0, 1.3, 2.0, 7.5, 100.0, 1e4], dtype=EXACT)
    expected = torch.lgamma(a + 0.5) - torch.lgamma(a)
    assert torch.allclose(log_gamma_half_step(a), expected, rtol=1e-9, atol=1e-9)
    assert torch.allclose(log_gamma_half_step(a.float()).double(), expected, rtol=3e-7, atol=3e-7)
    far = torch.tensor([1e8, 1e20], dtype=EXACT)
    assert torch.allclose(log_gamma_half_step(far.float()).double(), 0.5 * far.log(), rtol=1e-6)


@pytest.mark.parametrize("name", ["normal", "laplace", "student_t", "lognormal", "mixture"])
def test_single_precision_is_enough(name: str) -> None:
    one = make_head(name)
    raw = grid(2) if one.out_features == 2 else grid(3).repeat(1, 1, one.out_features // 3)
    target = torch.full(raw.shape[:2], 0.7, dtype=EXACT)
    assert torch.allclose(one.loss(raw.float(), target.float(), scale(1)).double(), one.loss(raw, target, scale(1)), rtol=1e-4)


def test_the_smallest_positive_values_are_bounded() -> None:
    raw = torch.zeros(1, 2, 2)
    found = make_head("lognormal").loss(raw, torch.tensor([[0.0, 1e-12]]), scale(1))
    assert found[0, 0] == found[0, 1]


def mixture_of_torch(one: MixtureHead, raw: Tensor) -> distributions.MixtureSameFamily:
    shares, places, deviations = one.components(raw)
    return distributions.MixtureSameFamily(distributions.Categorical(logits=shares), distributions.Normal(places, deviations))


def drawn(one: MixtureHead) -> Tensor:
    return 2 * torch.randn(1, 40, one.out_features, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_density_mean_and_quantiles(n: int) -> None:
    one = MixtureHead(n)
    raw = drawn(one)
    expected = mixture_of_torch(one, raw)
    for value in (-30.0, -0.5, 0.0, 2.0):
        target = torch.full((1, 40), value, dtype=torch.float64)
        assert torch.allclose(one.loss(raw, target, scale(1)), -expected.log_prob(target), rtol=1e-9, atol=1e-9)
    assert torch.allclose(one.mean(raw), expected.mean)
    p = torch.tensor([1e-6, 0.1, 0.5, 0.8, 1 - 1e-6], dtype=torch.float64)
    back = torch.stack([expected.cdf(value) for value in one.quantiles(raw, p).unbind(-1)], dim=-1)
    assert torch.allclose(back, p.expand_as(back), rtol=1e-8)
    far = one.quantiles(raw, torch.tensor([1e-12, 1 - 1e-12], dtype=torch.float64))
    assert torch.allclose(expected.cdf(far[..., 0]), torch.tensor(1e-12, dtype=torch.float64), rtol=1e-3, atol=1e-15)


def test_the_upper_tail_mirrors_the_lower() -> None:
    one = MixtureHead(3)
    raw = drawn(one)
    shares, places, deviations = raw.chunk(3, dim=-1)
    mirrored = torch.cat([shares, -places - 2 * one.initial_means, deviations], dim=-1)
    p = torch.tensor([2.0**-40, 0.25], dtype=torch.float64)
    assert torch.allclose(one.quantiles(mirrored, p), -one.quantiles(raw, 1 - p), rtol=1e-12)


def test_its_parts_start_apart() -> None:
    _, places, _ = MixtureHead(3).components(torch.zeros(9))
    assert (places.diff() > 0.5).all()


def test_it_has_at_least_one_part() -> None:
    with pytest.raises(ParameterError, match="`n` must be at least 1"):
        MixtureHead(0)


def test_what_falls_by_rounding_is_levelled_in_the_order_of_probabilities() -> None:
    p, values = torch.tensor([0.9, 0.1, 0.5]), torch.tensor([1.9, 1.0, 2.0])
    assert make_monotone(values, p).tolist() == pytest.approx([2.0, 1.0, 2.0])


def test_student_quantiles_there_and_back() -> None:
    p = torch.tensor([1e-12, 0.2, 0.5, 0.9], dtype=EXACT)
    for freedom in (2.1, 30.0, 1e9):
        found = student_t_quantile(p, torch.tensor(freedom, dtype=EXACT))
        assert np.allclose(special.stdtr(freedom, found.numpy()), p.numpy(), rtol=1e-9, atol=0)


def test_bisection() -> None:
    p = torch.tensor([0.1, 0.5, 0.999], dtype=EXACT)
    found = bisect(torch.special.ndtr, p, p - 50, p + 50)
    assert torch.allclose(found, torch.special.ndtri(p), rtol=1e-12, atol=1e-12)
