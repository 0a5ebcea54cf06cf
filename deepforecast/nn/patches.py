"""Patches of consecutive time steps as tokens of a Transformer (Nie et al. 2023, PatchTST,
arXiv:2211.14730).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from deepforecast.errors import ParameterError


@dataclass(frozen=True)
class Patching:
    """Patches of `length` time steps every `stride` steps, the last one ending at the last step;
    the start is zero-padded.

    Parameters
    ----------
    n_rows : int
        Time steps per window.
    length : int, default 1
        Time steps per patch.
    stride : int, default 1
        Distance between patches, at most `length`.

    Examples
    --------
    >>> Patching(n_rows=96, length=16, stride=8).count, Patching(5, 2, 2).end_positions
    (12, (0, 2, 4))
    """

    n_rows: int
    length: int = 1
    stride: int = 1

    def __post_init__(self) -> None:
        if self.stride > self.length:
            raise ParameterError(
                f"`stride` must not exceed `patch_length`, or time steps would be skipped; got stride={self.stride} and "
                f"patch_length={self.length}. Use stride={self.length} or a larger patch_length."
            )

    @property
    def count(self) -> int:
        """Number of patches."""
        return -(-self.n_rows // self.stride)

    @property
    def first_end(self) -> int:
        """Index of the last time step of the first patch."""
        return self.n_rows - 1 - (self.count - 1) * self.stride

    @property
    def end_positions(self) -> tuple[int, ...]:
        """Indices of the last time steps of the patches."""
        return tuple(range(self.first_end, self.n_rows, self.stride))

    def unfold(self, values: Tensor) -> Tensor:
        """Cut (batch, steps, columns) into (batch, patches, columns * length)."""
        if self.length == 1:
            return values
        return (
            F.pad(values, (0, 0, self.length - 1 - self.first_end, 0))
            .unfold(1, self.length, self.stride)
            .flatten(2)
        )

    def select_ends(self, values: Tensor) -> Tensor:
        """Select the last time step of each patch, (batch, steps, ...) -> (batch, patches, ...)."""
        return values[:, self.first_end :: self.stride]


def default_patch_length(n_rows: int) -> int:
    """Return min(16, n_rows // 4), at least 1.

    Examples
    --------
    >>> default_patch_length(336), default_patch_length(24), default_patch_length(3)
    (16, 6, 1)
    """
    return max(min(16, n_rows // 4), 1)
