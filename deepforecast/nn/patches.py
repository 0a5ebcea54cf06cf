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
    """Patches of `length` time steps every `stride` steps.

    The last patch ends at the last step of the window; the start of the window is zero-padded.

    Parameters
    ----------
    input_size : int
        Time steps per window.
    length : int, default 1
        Time steps per patch.
    stride : int, default 1
        Distance between patches, at most `length`.

    Examples
    --------
    >>> Patching(input_size=96, length=16, stride=8).n_patches, Patching(5, 2, 2).end_positions
    (12, (0, 2, 4))
    """

    input_size: int
    length: int = 1
    stride: int = 1

    def __post_init__(self) -> None:
        """Raise `ParameterError` if the stride is longer than a patch."""
        if self.stride > self.length:
            raise ParameterError(
                f"`stride` must be at most `patch_length`, or time steps would be skipped, got stride={self.stride} and "
                f"patch_length={self.length}.",
                hint=f"Use stride={self.length} or a larger patch_length.",
                parameter="stride",
            )

    @property
    def n_patches(self) -> int:
        """Number of patches per window."""
        return -(-self.input_size // self.stride)

    @property
    def first_end(self) -> int:
        """Index of the last time step of the first patch."""
        return self.input_size - 1 - (self.n_patches - 1) * self.stride

    @property
    def end_positions(self) -> tuple[int, ...]:
        """Indices of the last time steps of the patches."""
        return tuple(range(self.first_end, self.input_size, self.stride))

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


def default_patch_length(input_size: int) -> int:
    """Return a quarter of the window, at most 16 and at least 1.

    Examples
    --------
    >>> default_patch_length(336), default_patch_length(24), default_patch_length(3)
    (16, 6, 1)
    """
    return max(min(16, input_size // 4), 1)
