"""Losses of points, beside the formulas of the metrics on unscaled values."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from deepforecast.nn.heads.registry import make_head
from deepforecast.nn.names import LOSS_FACTS, implementation
from deepforecast.nn.scaling import Scale
from tests.nn.scales import scale

LOSSES = {name: implementation(facts.implementation) for name, facts in LOSS_FACTS.items()}


def drawn(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    point, target = torch.randn(2, 8, 5, generator=generator, dtype=torch.float64)
    return point, target


def test_plain_losses() -> None:
    point, target = drawn()
    away = (target - point).abs()
    assert torch.allclose(LOSSES["mae"](point, target, scale(8)), away)
    assert torch.allclose(LOSSES["mse"](point, target, scale(8)), away**2)
    assert torch.allclose(LOSSES["huber"](point, target, scale(8)), torch.where(away < 1, away**2 / 2, away - 0.5))


def test_scaled_losses_are_the_metrics_of_unscaled_values() -> None:
    point, target = drawn()
    windows = scale(8, place=40.0, spread=3.0, naive=0.25)
    y, forecast = windows.unstandardize(target), windows.unstandardize(point)
    mase = (y - forecast).abs() / (0.25 * 3.0)
    smape = 2 * (y - forecast).abs() / (y.abs() + forecast.abs())
    assert torch.allclose(LOSSES["mase"](point, target, windows), mase, rtol=1e-6)
    assert torch.allclose(LOSSES["smape"](point, target, windows), smape, rtol=1e-5)
    assert torch.allclose(LOSSES["owa"](point, target, windows), 100 * smape / 13.5 + mase / 1.9, rtol=1e-5)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e12, 1e200])
def test_scaled_losses_do_not_hang_on_the_size_of_the_series(size: float) -> None:
    point, target = (one.float() for one in drawn())
    for name in ("mase", "smape", "owa"):
        expected = LOSSES[name](point, target, scale(8, place=5.0, spread=2.0))
        assert torch.allclose(LOSSES[name](point, target, scale(8, place=5 * size, spread=2 * size)), expected, rtol=1e-6)


def test_without_a_naive_error_the_error_counts_as_it_is() -> None:
    point, target = (one.float() for one in drawn())
    for naive in (0.0, 1e-9):
        assert torch.equal(LOSSES["mase"](point, target, scale(8, naive=naive)), (target - point).abs())


@pytest.mark.parametrize(("place", "spread", "point"), [(0.0, 0.0, 1.0), (7.0, 0.0, 1.0), (-7.0, 1e-300, 1.0), (0.0, 1.0, 0.0)])
def test_smape_of_nothing_is_nothing(place: float, spread: float, point: float) -> None:
    """Zero beside zero, and windows that do not vary, whose forecast is their place whatever the network says."""
    said = torch.full((1, 3), point, requires_grad=True)
    found = LOSSES["smape"](said, torch.zeros(1, 3), scale(1, place=place, spread=spread))
    found.sum().backward()
    assert found.abs().max() < 1e-6
    assert said.grad is not None
    assert said.grad.isfinite().all()
    assert said.grad.abs().max() < 1e-6


def test_smape_has_a_bounded_slope_at_zero() -> None:
    said = torch.tensor([[1e-12, -1e-20, 1e-3]], requires_grad=True)
    LOSSES["smape"](said, torch.zeros(1, 3), scale(1)).sum().backward()
    assert said.grad is not None
    assert said.grad.abs().max() <= 2e4


def test_windows_of_several_scales_are_each_measured_by_their_own() -> None:
    point, target = (one.float() for one in drawn())
    places, naive = torch.arange(8.0).double()[:, None], 1 + torch.arange(8.0)[:, None]
    found = LOSSES["owa"](point, target, Scale(places, torch.ones(8, 1).double(), naive))
    for row in range(8):
        alone = LOSSES["owa"](point[row : row + 1], target[row : row + 1], scale(1, place=row, naive=1.0 + row))
        assert torch.allclose(found[row : row + 1], alone)


@pytest.mark.parametrize("kind", LOSSES)
def test_a_head_says_whether_its_loss_asks_for_the_naive_error(kind: str) -> None:
    one, (point, target) = make_head("point", loss=kind), drawn()
    near, far = (one.loss(point.unsqueeze(-1), target, scale(8, place=9.0, naive=naive)) for naive in (1.0, 4.0))
    assert bool((near != far).any()) == one.needs_naive_error
