"""The batches of a run: which windows validation looks at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deepforecast import DLinear
from tests.training.runs import FRAME


def test_validation_looks_at_all_windows_of_few_and_at_as_many_of_many() -> None:
    model = DLinear(horizon=4, input_size=12, max_steps=1, validation_size=20).fit(FRAME)
    every = model.datamodule(FRAME).validation
    count = 3 * (20 - 4 + 1)
    assert every.window_numbers.tolist() == list(range(count))
    whole = np.concatenate([batch.target.numpy() for batch in every])
    few = replace(every, max_windows=10, batch_size=4)
    looks = [np.concatenate([batch.target.numpy() for batch in few]) for _ in range(2)]
    assert len(few) == 3
    assert len(set(few.window_numbers.tolist())) == len(looks[0]) == 10
    np.testing.assert_array_equal(*looks)
    np.testing.assert_array_equal(looks[0], whole[few.window_numbers])
