"""What regressors learn from: rows are left out in place, each with what belongs to it."""

from __future__ import annotations

import numpy as np
import pytest

from deepforecast.models.regression import _samples
from deepforecast.models.regression._samples import Sample


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_rows_that_are_kept_keep_their_order_and_all_that_is_theirs(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_samples, "CHUNK_ROWS", at_once)
    number = np.arange(11.0)
    rows, after, series = np.stack([number, -number], axis=1), np.arange(11), np.arange(11) // 6
    sample = Sample(rows, 10 * number, 100 * number, ["a", "b"], [], after, series)
    good = np.array([0, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0], dtype=bool)
    found = sample.compact(good)
    assert found.rows[:, 0].tolist() == (-found.rows[:, 1]).tolist() == number[good].tolist()
    assert found.target.tolist() == (10 * number[good]).tolist()
    assert found.weight is not None
    assert found.weight.tolist() == (100 * number[good]).tolist()
    assert found.n_following.tolist() == number[good].tolist()
    assert found.series_index.tolist() == series[good].tolist()
    assert np.shares_memory(found.rows, sample.rows)
