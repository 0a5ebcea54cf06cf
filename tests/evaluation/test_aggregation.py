"""From errors to groups: equal to a plain loop, whatever the order; what is left out is counted."""

from __future__ import annotations

import numpy as np
import pytest

from deepforecast.errors import ParameterError
from deepforecast.evaluation.aggregation import Groups, aggregate


def plain(
    errors: np.ndarray, codes: np.ndarray, forecasts: np.ndarray, weights: np.ndarray | None, root: bool, each: bool
) -> list:
    """Value, points, points left out and forecasts left out by group, by the definition."""
    rows = []
    for group in range(codes.max() + 2):
        parts, points, idle = [], 0, 0
        here = codes == group
        units = [here & (forecasts == unit) for unit in np.unique(forecasts[here])]
        used = ~np.isnan(errors)
        for unit in units if each else [here]:
            chosen = unit & used
            below = weights[chosen].sum() if weights is not None else chosen.sum()
            if below > 0:
                ratio = errors[chosen].sum() / below
                parts.append(np.sqrt(ratio) if root else ratio)
        value = np.mean(parts) if parts else np.nan
        points = 0 if np.isnan(value) else (here & used).sum()
        idle = sum(not (unit & used).any() for unit in units)
        rows.append((value, points, here.sum() - points, idle))
    return list(zip(*rows, strict=True))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("by", ["total", "series", "step", "cutoff"])
@pytest.mark.parametrize("each", [False, True])
def test_equal_to_a_plain_loop(missing: float, shuffled: bool, by: str, each: bool) -> None:
    random = np.random.default_rng(11)
    lengths = np.array([3, 5, 1, 4, 2, 6])
    forecasts = np.repeat(np.arange(6), lengths)
    step = np.concatenate([np.arange(length) for length in lengths])
    codes = {"total": np.zeros(21, dtype=int), "series": forecasts // 2, "step": step, "cutoff": forecasts % 2}[by]
    errors = random.uniform(1, 2, size=(2, 21))
    errors[random.random(errors.shape) < missing] = np.nan
    if missing:
        errors[0, forecasts == 2] = np.nan
    order = random.permutation(21) if shuffled else np.arange(21)
    errors, codes, forecasts = errors[:, order], codes[order], forecasts[order]
    groups = Groups(codes, codes.max() + 2, forecasts)  # the last group is empty
    for weights in (None, random.uniform(size=21)):
        for root in (False, True):
            found = aggregate(errors, groups, weights=weights, root=root, per_forecast=each)
            for row in range(2):
                value, points, left_out, idle = plain(errors[row], codes, forecasts, weights, root, each)
                np.testing.assert_allclose(found.value[row], value, rtol=1e-12)
                np.testing.assert_array_equal(found.points[row], points)
                np.testing.assert_array_equal(found.left_out[row], left_out)
                np.testing.assert_array_equal(found.forecasts_left_out[row], idle)


def test_without_forecasts_a_group_is_one() -> None:
    errors = np.array([1.0, 3.0, np.nan, 8.0])
    found = aggregate(errors, Groups(np.array([0, 1, 2, 1]), 4), per_forecast=True)
    np.testing.assert_array_equal(found.value, [1.0, 5.5, np.nan, np.nan])
    np.testing.assert_array_equal(found.left_out, [0, 0, 1, 0])
    np.testing.assert_array_equal(found.forecasts_left_out, [0, 0, 1, 0])


def test_nothing_to_divide_by_leaves_the_group_out() -> None:
    found = aggregate(np.array([1.0, 2.0, 3.0]), Groups(np.array([0, 0, 1]), 2), weights=np.array([0.0, 0.0, 2.0]))
    np.testing.assert_array_equal(found.value, [np.nan, 1.5])
    np.testing.assert_array_equal(found.points, [0, 1])
    np.testing.assert_array_equal(found.left_out, [2, 0])


def test_inputs_are_not_written_to() -> None:
    errors = np.array([1.0, np.nan])
    errors.flags.writeable = False
    assert aggregate(errors, Groups(np.array([0, 0]), 1)).value == 1.0


def test_no_points_at_all() -> None:
    found = aggregate(np.empty((2, 0)), Groups(np.empty(0, dtype=np.int64), 1))
    assert found.value.shape == (2, 1)
    assert np.isnan(found.value).all()


def test_refused() -> None:
    with pytest.raises(ParameterError, match=r"count - 1 = 1, got 0 to 2"):
        Groups(np.array([0, 2]), 2)
    with pytest.raises(ParameterError, match="got -1 to 0"):
        Groups(np.array([0, -1]), 2)
    with pytest.raises(ParameterError, match="one-dimensional"):
        Groups(np.array([[0]]), 1)
    with pytest.raises(ParameterError, match="one integer per point"):
        Groups(np.array([0, 0]), 1, forecasts=np.array([0]))
