"""The batches of a run: which windows validation looks at."""

from __future__ import annotations

import numpy as np
import pytest

from deepforecast import DLinear
from deepforecast.training import sampler
from tests.training.runs import FRAME


def test_validation_looks_at_all_windows_of_few_and_at_as_many_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    model = DLinear(horizon=4, input_size=12, max_steps=1, validation_size=20).fit(FRAME)
    every = model.datamodule(FRAME).validation
    count = 3 * (20 - 4 + 1)
    assert every.window_numbers.tolist() == list(range(count))
    whole = np.concatenate([batch.target.numpy() for batch in every])
    monkeypatch.setattr(sampler, "MAX_VALIDATION_WINDOWS", 10)
    few = model.datamodule(FRAME).validation
    few.batch_size = 4
    looks = [np.concatenate([batch.target.numpy() for batch in few]) for _ in range(2)]
    assert len(few) == 3
    assert len(set(few.window_numbers.tolist())) == len(looks[0]) == 10
    np.testing.assert_array_equal(*looks)
    np.testing.assert_array_equal(looks[0], whole[few.window_numbers])
