"""NHITS: the rates of its stacks, and their contributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deepforecast import NHITS
from deepforecast.datasets import generate
from deepforecast.errors import ParameterError

SMALL: dict[str, Any] = {"horizon": 6, "input_size": 12, "hidden_sizes": [8], "max_steps": 3}


@pytest.mark.parametrize(("pooling", "downsampling"), [([2, 1], [4, 2, 1]), ([1], [2, 1]), ([], [])])
def test_rates_of_different_stacks_are_refused(pooling: list[int], downsampling: list[int]) -> None:
    model = NHITS(**SMALL, n_pool_kernel_size=pooling, n_freq_downsample=downsampling)
    with pytest.raises(ParameterError, match=rf"one number per stack, got {len(pooling)} and {len(downsampling)} numbers"):
        model.fit(generate(1, 60))


def test_contributions_of_the_stacks_add_up_and_have_their_number_of_values() -> None:
    model = NHITS(**SMALL, n_pool_kernel_size=[4, 1], n_freq_downsample=[6, 3]).fit(generate(2, 80))
    contributions = model.explain().pivot(index=["unique_id", "ds"], columns="component", values="value")
    np.testing.assert_allclose(contributions.sum(axis=1), model.predict()["NHITS"], rtol=1e-5)
    coarse, fine = (contributions[name].to_numpy().reshape(2, 6) for name in ("stack_1", "stack_2"))
    np.testing.assert_allclose(np.ptp(coarse, axis=1), 0, atol=1e-4)  # one knot
    # Two knots, at 1 and 4: constant up to the first and from the second one on.
    np.testing.assert_allclose(fine[:, [0, 5]], fine[:, [1, 4]], atol=1e-4)
    np.testing.assert_allclose(np.diff(fine, n=2)[:, 1:3], 0, atol=1e-4)
    assert np.ptp(fine, axis=1).min() > 1e-3
