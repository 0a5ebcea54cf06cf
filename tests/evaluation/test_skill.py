"""Skill and win rates against their definitions written out (fev: autogluon/fev, leaderboard)."""

from __future__ import annotations

import numpy as np
import pytest

from deepforecast.errors import ParameterError
from deepforecast.evaluation.skill import pairwise_win_rates, skill, win_rates

RANDOM = np.random.default_rng(0)
VALUES = RANDOM.uniform(0.5, 2.0, (4, 12))


def test_skill_is_one_less_the_geometric_mean_of_ratios() -> None:
    found = skill(VALUES, 2)
    for one in range(4):
        ratios = [VALUES[one, at] / VALUES[2, at] for at in range(12)]
        assert found.value[one] == pytest.approx(1 - np.prod(ratios) ** (1 / 12))
    assert found.value[2] == found.low[2] == found.high[2] == 0.0
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()


def test_skill_hangs_on_no_unit() -> None:
    assert skill(VALUES * np.geomspace(1e-6, 1e6, 12), 0).value == pytest.approx(skill(VALUES, 0).value)


def test_ratios_are_clipped_so_that_one_dataset_does_not_decide() -> None:
    found = skill([[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [1e9, 1.0, 1.0]], 0)
    assert found.value[1] == pytest.approx(1 - 0.01 ** (1 / 3))
    assert found.value[2] == pytest.approx(1 - 100 ** (1 / 3))
    assert skill([[0.0, 1.0], [0.0, 1.0]], 0).value.tolist() == [0.0, 0.0]


def test_datasets_a_model_lacks_do_not_count_for_it() -> None:
    values = VALUES.copy()
    values[1, 3:] = np.nan
    found = skill(values, 0)
    assert found.value[1] == pytest.approx(skill(VALUES[:, :3], 0).value[1])
    assert found.n_datasets.tolist() == [12, 3, 12, 12]
    assert skill([[1.0, 2.0], [np.nan, np.nan]], 0).value[1] != 0  # NaN, and no warning


def test_win_rates_are_shares_of_all_pairs() -> None:
    values = VALUES.copy()
    values[1] = values[0]  # ties
    wins, pairs = win_rates(values), pairwise_win_rates(values)
    for one in range(4):
        each = [
            1.0 if values[one, at] < values[other, at] else 0.5 if values[one, at] == values[other, at] else 0.0
            for at in range(12)
            for other in range(4)
            if other != one
        ]
        assert wins.value[one] == pytest.approx(np.mean(each))
    assert wins.value.mean() == pytest.approx(0.5)
    assert pairs.value[0, 1] == pairs.value[1, 0] == 0.5
    assert pairs.value[0, 2] + pairs.value[2, 0] == pytest.approx(1)
    assert np.isnan(np.diagonal(pairs.value)).all()


def test_a_bootstrap_interval_covers_and_is_seeded() -> None:
    one, two = win_rates(VALUES, seed=1), win_rates(VALUES, seed=1)
    assert (one.low == two.low).all()
    assert ((one.low <= one.value) & (one.value <= one.high)).all()
    assert np.isnan(win_rates(VALUES[:, :1]).low).all()  # of one dataset there is none
    # the share of heads in 400 tosses: the interval is that of the binomial
    tosses = np.stack([np.zeros(400), RANDOM.permutation(np.repeat([-1.0, 1.0], 200))]) + 1.0
    pair = pairwise_win_rates(tosses, n_resamples=4000)
    assert pair.high[0, 1] - pair.low[0, 1] == pytest.approx(2 * 1.96 * 0.5 / 20, rel=0.06)


@pytest.mark.parametrize(
    ("values", "reference", "told"),
    [
        ([[1.0, -1.0]], 0, "not negative"),
        ([[1.0, np.inf]], 0, "finite"),
        ([1.0, 2.0], 0, "must have shape"),
        ([[1.0, 2.0]], 1, "reference"),
        ([[1.0, 2.0]], -1, "reference"),
    ],
)
def test_bad_input_is_refused_by_name(values: object, reference: int, told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        skill(values, reference)  # type: ignore[arg-type]
