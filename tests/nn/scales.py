"""Scales for tests of heads and losses."""

from __future__ import annotations

import torch

from deepforecast.nn.scaling import Scale


def scale(count: int, place: float = 0.0, spread: float = 1.0, naive: float = 1.0) -> Scale:
    """The same for each of `count` windows."""
    exact = torch.ones(count, 1, dtype=torch.float64)
    return Scale(place * exact, spread * exact, torch.full((count, 1), naive))
