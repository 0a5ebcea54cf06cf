"""Patches are stretches of rows, counted back from the last."""

from __future__ import annotations

import pytest
import torch

from deepforecast.errors import ParameterError
from deepforecast.nn.transformer_body import Patching, default_patch_length


@pytest.mark.parametrize(("rows", "length", "stride"), [(12, 4, 2), (13, 4, 2), (12, 1, 1), (12, 5, 5), (3, 3, 2), (7, 4, 4)])
def test_they_are_the_stretches_that_end_there(rows: int, length: int, stride: int) -> None:
    patches, values = Patching(rows, length, stride), torch.arange(2.0 * rows * 3).view(2, rows, 3) + 1
    found = patches.unfold(values)
    assert found.shape == (2, patches.n_patches, 3 * length)
    assert patches.end_positions[-1] == rows - 1
    for patch, end in enumerate(patches.end_positions):
        one = found[:, patch].view(2, *((length, 3) if length == 1 else (3, length)))
        for back in range(length):
            here = one[:, length - 1 - back] if length == 1 else one[:, :, length - 1 - back]
            assert torch.equal(here, values[:, end - back] if end >= back else torch.zeros(2, 3))
    assert torch.equal(patches.select_ends(values), values[:, list(patches.end_positions)])


def test_every_row_is_in_one() -> None:
    for rows in range(1, 40):
        length = default_patch_length(rows)
        patches = Patching(rows, length, max(length // 2, 1))
        covered = {row for end in patches.end_positions for row in range(end - length + 1, end + 1)}
        assert covered >= set(range(rows))


def test_gaps_between_them_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"got stride=3 and patch_length=2\. Use stride=2"):
        Patching(12, 2, 3)
