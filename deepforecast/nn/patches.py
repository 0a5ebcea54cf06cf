"""Rows in patches: what a Transformer looks at is a stretch of rows, not each of them, and there are fewer to look at."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from deepforecast.errors import ParameterError


@dataclass(frozen=True)
class Patching:
    """Stretches of `length` rows, one ending every `stride` rows, the last at the last row; before the first row stand zeros.

    >>> Patching(n_rows=96, length=16, stride=8).count, Patching(5, 2, 2).end_positions
    (12, (0, 2, 4))
    """

    n_rows: int
    length: int = 1
    stride: int = 1

    def __post_init__(self) -> None:
        if self.stride > self.length:
            raise ParameterError(
                f"Patches leave out no row: they begin at most patch_length rows apart; got stride={self.stride} and "
                f"patch_length={self.length}. Say stride={self.length}, or a larger patch_length."
            )

    @property
    def count(self) -> int:
        """How many there are."""
        return -(-self.n_rows // self.stride)

    @property
    def first_end(self) -> int:
        """The row the first of them ends at."""
        return self.n_rows - 1 - (self.count - 1) * self.stride

    @property
    def end_positions(self) -> tuple[int, ...]:
        """The rows they end at."""
        return tuple(range(self.first_end, self.n_rows, self.stride))

    def unfold(self, values: Tensor) -> Tensor:
        """(B, rows, C) -> (B, count, C * length)."""
        if self.length == 1:
            return values
        return F.pad(values, (0, 0, self.length - 1 - self.first_end, 0)).unfold(1, self.length, self.stride).flatten(2)

    def select_ends(self, values: Tensor) -> Tensor:
        """Of each the row it ends at: (B, rows, ...) -> (B, count, ...)."""
        return values[:, self.first_end :: self.stride]


def default_patch_length(n_rows: int) -> int:
    """How long patches are if nobody says: 16 rows, or as many as leave a window at least four of them.

    >>> default_patch_length(336), default_patch_length(24), default_patch_length(3)
    (16, 6, 1)
    """
    return max(min(16, n_rows // 4), 1)
