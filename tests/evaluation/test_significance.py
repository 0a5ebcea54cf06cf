"""Intervals, ranks and tests of pairs: equal to scipy and statsmodels where they have the same, right by counting where not."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from threadpoolctl import threadpool_limits

from deepforecast.errors import ParameterError, ParameterTypeError
from deepforecast.evaluation.significance import holm, mean_interval, pairwise, ranks, signed_rank

RANDOM = np.random.default_rng(0)
SKEWED = RANDOM.lognormal(0, 1, (3, 400))


@pytest.mark.parametrize("series", [60, 400, 3000], ids="{} series".format)
def test_intervals_are_those_of_drawing_with_replacement(series: int) -> None:
    values = RANDOM.lognormal(0, 1, series)
    found = mean_interval(values[None], n_resamples=4000)
    drawn = [RANDOM.choice(values, series).mean() for _ in range(4000)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.mean[0] == pytest.approx(values.mean())
    assert found.low[0] == pytest.approx(low, abs=0.06 * (high - low))
    assert found.high[0] == pytest.approx(high, abs=0.06 * (high - low))


@pytest.mark.parametrize("series", [500, 2500], ids=["drawn one by one", "in groups"])
def test_intervals_hold_their_level(series: int) -> None:
    held = 0
    for trial in range(200):
        values = np.random.default_rng(trial).gamma(2.0, size=(1, series))
        found = mean_interval(values, level=80, n_resamples=200, seed=trial)
        held += bool(found.low[0] <= 2.0 <= found.high[0])
    assert 0.7 <= held / 200 <= 0.9


def test_intervals_shrink_with_the_level_and_do_not_depend_on_the_unit() -> None:
    wide, narrow = mean_interval(SKEWED, level=95), mean_interval(SKEWED, level=50)
    assert (wide.low < narrow.low).all()
    assert (narrow.high < wide.high).all()
    shifted = mean_interval(SKEWED * 1e-9 + 3.0)
    assert shifted.low == pytest.approx(wide.low * 1e-9 + 3.0, rel=1e-14)
    huge = mean_interval(SKEWED * 1e200)
    assert huge.high == pytest.approx(wide.high * 1e200, rel=1e-5)


def test_the_same_seed_gives_the_same_interval_and_leaves_the_global_state() -> None:
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for values in (SKEWED, np.tile(SKEWED, 10)):
        one, again, other = mean_interval(values), mean_interval(values), mean_interval(values, seed=1)
        assert (one.low == again.low).all()
        assert (one.high == again.high).all()
        assert (one.low != other.low).all()
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


@pytest.mark.parametrize(("models", "series"), [(8, 1001), (13, 1001), (90, 400)])
def test_number_of_threads_does_not_change_a_bit(models: int, series: int) -> None:
    values = np.random.default_rng(0).lognormal(0, 1, (models, series))
    found = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            interval = mean_interval(values)
        found.append(interval.low.tobytes() + interval.high.tobytes())
    assert found[0] == found[1] == found[2]


def test_models_share_the_resamples() -> None:
    found = mean_interval(np.stack([SKEWED[0], SKEWED[0] + 1, SKEWED[0] * 2]))
    assert found.low[1] - 1 == pytest.approx(found.low[0], rel=1e-6)
    assert found.low[2] / 2 == pytest.approx(found.low[0], rel=1e-6)


@pytest.mark.parametrize("times", [1, 10], ids=["drawn one by one", "in groups"])
def test_series_without_a_value_are_left_out_for_that_model(times: int) -> None:
    values = np.tile(SKEWED[:2], times)
    values[1, ::2] = np.nan
    found = mean_interval(values)
    assert found.n_series.tolist() == [400 * times, 200 * times]
    assert found.mean[1] == pytest.approx(np.nanmean(values[1]))
    alone = mean_interval(values[1:, 1::2])
    wide = alone.high[0] - alone.low[0]
    assert found.low[1] == pytest.approx(alone.low[0], abs=0.15 * wide)
    assert found.high[1] == pytest.approx(alone.high[0], abs=0.15 * wide)


def test_two_series_are_needed_for_an_interval() -> None:
    found = mean_interval([[1.0, np.nan], [np.nan, np.nan], [1.0, 3.0]])
    assert found.n_series.tolist() == [1, 0, 2]
    np.testing.assert_array_equal(found.mean, [1.0, np.nan, 2.0])
    np.testing.assert_array_equal(found.low, [np.nan, np.nan, 1.0])
    np.testing.assert_array_equal(found.high, [np.nan, np.nan, 3.0])


def test_weights_make_it_the_metric_of_the_panel() -> None:
    size = RANDOM.uniform(1, 100, 400)
    found = mean_interval(SKEWED, weights=size)
    assert found.mean == pytest.approx((SKEWED * size).sum(axis=1) / size.sum())
    assert (found.low < found.mean).all()
    assert (found.mean < found.high).all()
    lonely = np.zeros(400)
    lonely[7] = 5.0
    assert mean_interval(SKEWED, weights=lonely).mean == pytest.approx(SKEWED[:, 7])
    equal = mean_interval(SKEWED, weights=np.full(400, 3.0))
    assert equal.low == pytest.approx(mean_interval(SKEWED).low, rel=1e-6)


def test_100_000_series_take_no_time() -> None:
    values = RANDOM.lognormal(0, 1, (5, 100_000))
    begin = time.process_time()
    found = mean_interval(values, n_resamples=1000)
    assert time.process_time() - begin < 3.0
    again = mean_interval(np.sort(values), n_resamples=1000)  # like series beside each other are not drawn together
    assert again.high - again.low == pytest.approx(found.high - found.low, rel=0.1)
    error = values.std(axis=1) / np.sqrt(100_000)
    assert (found.high - found.low) / error == pytest.approx(2 * 1.96, rel=0.1)


@pytest.mark.parametrize(
    ("values", "options", "said"),
    [
        ([1.0, 2.0], {}, r"\(models, series\)"),
        ([[]], {}, r"\(models, series\)"),
        ([[1.0, np.inf]], {}, "finite"),
        ([[1.0, 2.0]], {"level": 100}, "level"),
        ([[1.0, 2.0]], {"n_resamples": 0}, "n_resamples"),
        ([[1.0, 2.0]], {"weights": [1.0]}, "weights"),
        ([[1.0, 2.0]], {"weights": [1.0, -1.0]}, "weights"),
    ],
)
def test_what_cannot_be_is_refused(values: list[float], options: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        mean_interval(values, **options)  # type: ignore[arg-type]


def test_text_is_refused() -> None:
    with pytest.raises(ParameterTypeError, match="real numbers"):
        ranks([["a", "b"]])


def test_ranks_are_those_of_scipy() -> None:
    values = RANDOM.integers(0, 4, (6, 200)).astype(float)
    np.testing.assert_array_equal(ranks(values), stats.rankdata(values, axis=0))


def test_a_model_without_a_value_has_no_rank_and_takes_none() -> None:
    np.testing.assert_array_equal(ranks([[3.0], [np.nan], [1.0]]), [[2.0], [np.nan], [1.0]])


@pytest.mark.parametrize("count", [1, 6, 25, 50, 51, 400])
def test_signed_rank_is_that_of_scipy(count: int) -> None:
    difference = RANDOM.normal(0.3, 1, count)
    expected = stats.wilcoxon(difference, method="exact" if count <= 50 else "approx")
    assert signed_rank(difference) == pytest.approx(expected.pvalue, rel=1e-9)


def test_signed_rank_with_ties_and_zeros_is_that_of_scipy() -> None:
    difference = np.round(RANDOM.normal(0.1, 2, 300))
    assert (difference == 0).any()
    assert signed_rank(difference) == pytest.approx(stats.wilcoxon(difference, method="approx").pvalue, rel=1e-9)


def test_signed_rank_of_few_ties_counts_every_pattern_of_signs() -> None:
    difference = np.array([1.0, -1.0, 2.0, 2.0, 0.0, 3.0, -4.0, 5.0, 5.0])
    rank = stats.rankdata(np.abs(difference[difference != 0]))
    sums = np.array([np.dot(signs, rank) for signs in itertools.product([0, 1], repeat=len(rank))])
    above, middle = rank[difference[difference != 0] > 0].sum(), rank.sum() / 2
    assert signed_rank(difference) == pytest.approx(np.mean(np.abs(sums - middle) >= abs(above - middle) - 1e-9))


def test_no_difference_is_no_evidence() -> None:
    assert signed_rank(np.zeros(10)) == 1.0
    assert signed_rank([]) == 1.0


def test_holm_is_that_of_statsmodels() -> None:
    given = RANDOM.uniform(0, 0.2, 12) ** 2
    assert holm(given) == pytest.approx(multipletests(given, method="holm")[1])
    np.testing.assert_array_equal(holm([0.01, np.nan, 0.5]), [0.02, np.nan, 0.5])


def test_pairs() -> None:
    values = SKEWED.copy()
    values[1] = values[0] + RANDOM.normal(0.2, 0.5, 400)
    values[2, :100] = np.nan
    values[2, 100:200] = values[0, 100:200]
    found = pairwise(values)
    assert found.wins[0, 1] == np.mean(values[0] < values[1])
    assert found.wins[0, 2] == ((values[0] < values[2])[100:].sum() + 50) / 300
    off = ~np.eye(3, dtype=bool)
    assert (found.wins + found.wins.T)[off] == pytest.approx(1)
    assert found.n_series.tolist() == [[0, 400, 300], [400, 0, 300], [300, 300, 0]]
    assert found.p_value[0, 1] == signed_rank(values[0] - values[1]) == found.p_value[1, 0]
    assert np.isnan(np.diag(found.p_value)).all()
    above = np.triu_indices(3, 1)
    np.testing.assert_array_equal(found.corrected[above], holm(found.p_value[above]))
    np.testing.assert_array_equal(found.corrected, found.corrected.T)


def test_models_without_a_common_series_are_not_compared() -> None:
    found = pairwise([[1.0, np.nan], [np.nan, 1.0], [0.0, 0.0]])
    assert np.isnan([found.wins[0, 1], found.p_value[0, 1], found.corrected[0, 1]]).all()
    assert found.n_series[0, 1] == 0
    assert found.wins[2, 0] == 1.0


def test_equal_models_are_found_no_different_as_often_as_the_level_says() -> None:
    wrong = 0
    for trial in range(300):
        pair = np.random.default_rng(trial).normal(size=(2, 40))
        wrong += bool(pairwise(pair).p_value[0, 1] < 0.1)
    assert 0.05 <= wrong / 300 <= 0.15
