"""Normalisations by name, over the last axis."""

from __future__ import annotations

import pytest
import torch

from deepforecast.errors import ParameterError
from deepforecast.nn.layers import NORMALIZATIONS, BatchNorm, normalization
from tests.nn.bodies import seeded

DRAWN = torch.Generator().manual_seed(0)
HIDDEN = 5 + 3 * torch.randn(6, 7, 4, generator=DRAWN)


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_by_name(name: str | None) -> None:
    for hidden in (HIDDEN, HIDDEN[:, 0], HIDDEN[:1, 0]):
        assert normalization(name, 4)(hidden).shape == hidden.shape
    found = normalization(name, 4)(HIDDEN)
    mean, square = {
        None: (HIDDEN.mean(-1), HIDDEN.square().mean(-1)),
        "layer": (torch.zeros(6, 7), torch.ones(6, 7)),
        "rms": (found.mean(-1), torch.ones(6, 7)),
        "batch": (found.mean(-1), found.square().mean(-1)),
    }[name]
    torch.testing.assert_close(found.mean(-1), mean, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.square().mean(-1), square, atol=1e-4, rtol=1e-4)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ParameterError, match="one of None, 'layer', 'batch', 'rms', got group"):
        normalization("group", 4)


def test_batch_normalisation_in_training_and_after() -> None:
    norm = BatchNorm(4)
    found = norm(HIDDEN)
    torch.testing.assert_close(found.mean((0, 1)), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.var((0, 1), correction=0), torch.ones(4), atol=1e-4, rtol=0)
    for _ in range(200):
        norm(HIDDEN)
    norm.eval()
    held = (HIDDEN - HIDDEN.mean((0, 1))) / HIDDEN.var((0, 1)).sqrt()
    torch.testing.assert_close(norm(HIDDEN), held, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(norm(HIDDEN[:1, :1]), held[:1, :1], atol=1e-4, rtol=1e-4)


def test_a_single_row_in_training_is_normalised_by_what_was_seen_before() -> None:
    norm = seeded(lambda: BatchNorm(4))
    norm(HIDDEN)
    seen = {name: held.clone() for name, held in norm.named_buffers()}
    row = HIDDEN[0, 0]
    expected = (row - seen["running_mean"]) / (seen["running_var"] + norm.eps).sqrt()
    torch.testing.assert_close(norm(row[None]), expected[None])
    assert all(torch.equal(held, seen[name]) for name, held in norm.named_buffers())
