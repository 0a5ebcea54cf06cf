"""Cheap masks: the share asked for, the mean as it was, by torch's generator, in training alone."""

from __future__ import annotations

import pytest
import torch

from deepforecast.nn.layers import Dropout, dropout_mask
from tests.nn.bodies import seeded


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9])
def test_the_share_is_that_asked_for(share: float) -> None:
    found = seeded(lambda: dropout_mask(torch.ones(500, 401), share))
    assert (found == 0).float().mean().item() == pytest.approx(share, abs=4 * (share * (1 - share) / found.numel()) ** 0.5)
    assert found.max().item() == pytest.approx(1 / (1 - share), rel=1e-3)
    assert found.dtype == torch.float32


def test_neighbours_are_drawn_by_themselves() -> None:
    gone = (seeded(lambda: dropout_mask(torch.ones(4000, 8), 0.3)) == 0).double()
    together = torch.corrcoef(gone.T) - torch.eye(8, dtype=torch.float64)
    assert together.abs().max() < 0.07


def test_training_alone_and_the_generator_decide() -> None:
    layer, x = Dropout(0.5), torch.ones(64, 3, requires_grad=True)
    one, other = (seeded(lambda: layer(x), seed) for seed in (0, 1))
    assert torch.equal(one, seeded(lambda: layer(x), 0))
    assert not torch.equal(one, other)
    one.sum().backward()
    assert torch.equal(x.grad, one.detach())
    assert layer.eval()(x) is x
    assert Dropout(0.0)(x) is x
