"""Mixtures beside torch's, and their quantiles there and back."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, distributions

from deepforecast.errors import ParameterError
from deepforecast.nn.heads.distributions import MixtureHead
from tests.nn.scales import scale


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
