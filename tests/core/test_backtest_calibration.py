from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Drift, Forecaster, Mean, Naive, Panel, SeasonalNaive, WindowMean
from deepforecast.core.backtest import MAX_POOLED_ERRORS, MAX_WINDOWS, pooled_absolute_errors, series_errors
from deepforecast.core.state import LearnedState
from deepforecast.errors import DataError
from tests.frames import D, P, joined
from tests.helpers_models import FutureRegression, PooledRegression

RNG = np.random.default_rng(0)


def noisy(*lengths: int) -> pd.DataFrame:
    frame = joined(*(D(f"s{n}", length) for n, length in enumerate(lengths)))
    return frame.assign(y=frame.y + np.random.default_rng(0).normal(size=len(frame)))


@pytest.mark.parametrize("model", [Naive(), SeasonalNaive(season_length=7), WindowMean(window=4), Mean(), Drift()], ids=repr)
def test_errors_are_those_of_a_plain_loop(model: Forecaster) -> None:
    frame, horizon = noisy(40, 23, 12), 3
    found = series_errors(model, Panel.from_frame(frame), horizon).errors
    needed = {"SeasonalNaive": 7, "WindowMean": 4, "Drift": 2}.get(model.name, 1)
    for number, (_, one) in enumerate(frame.groupby("unique_id")):
        count = min((len(one) - horizon + 1) // 2, len(one) - horizon - needed + 1)
        fitted = model.clone().fit(one.iloc[: len(one) - horizon - count + 1])
        for window in range(count):
            cut = len(one) - horizon - count + 1 + window
            points = fitted.predict(horizon, frame=one.iloc[:cut])[model.name].to_numpy()
            errors = one.y.iloc[cut : cut + horizon].to_numpy() - points
            assert (found[number, found.shape[1] - count + window] == errors).all()
        assert np.isnan(found[number, : found.shape[1] - count]).all()
    assert found.shape == (3, 19, 3)


def test_the_number_of_windows() -> None:
    assert series_errors(Naive(), Panel.from_frame(noisy(400)), 2).errors.shape[1] == MAX_WINDOWS
    assert series_errors(Naive(), Panel.from_frame(noisy(400)), 2, 7).errors.shape[1] == 7
    assert series_errors(Naive(), Panel.from_frame(noisy(40)), 2, 300).errors.shape[1] == 19
    assert series_errors(Naive(), Panel.from_frame(noisy(3)), 2).errors.shape[1] == 1
    assert len(pooled_absolute_errors(Naive(), Panel.from_frame(noisy(*[30] * 200)), 2).scores) == MAX_POOLED_ERRORS
    assert len(pooled_absolute_errors(Naive(), Panel.from_frame(noisy(30, 30)), 2, 3).scores) == 6


def test_too_short_a_series_is_refused_by_name() -> None:
    panel = Panel.from_frame(noisy(40, 9, 10))
    with pytest.raises(DataError, match=r"intervals of SeasonalNaive require 7 values to fit and 3 more .*series s1 has 9\."):
        series_errors(SeasonalNaive(season_length=7), panel, 3)
    with pytest.raises(DataError, match="require 2 values to fit and 9 more"):
        pooled_absolute_errors(Naive(), panel, 9)
    with pytest.raises(DataError, match=r"Naive requires at least 10 values per series, but series s1 has 9"):
        Naive(horizon=9, intervals="conformal").fit(noisy(40, 9, 10))


def test_a_series_is_calibrated_alone_whatever_stands_beside_it() -> None:
    frame = noisy(40, 23, 12)
    whole = series_errors(WindowMean(window=4), Panel.from_frame(frame), 3)
    for number, (_, one) in enumerate(frame.groupby("unique_id")):
        alone = series_errors(WindowMean(window=4), Panel.from_frame(one), 3).errors[0]
        assert (whole.errors[number, -len(alone) :] == alone).all()


def test_one_fit_for_all_series_however_ragged() -> None:
    fits: list[int] = []

    class Counted(PooledRegression):
        def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
            fits.append(len(panel))
            return super()._fit(panel, monitor)

    frame = noisy(40, 23, 12).assign(x=lambda one: one.y)
    series_errors(Counted(), Panel.from_frame(frame, columns={"future": ["x"]}), 3)
    assert fits == [3]


def test_calibration_windows_are_not_filled_from_after_their_cutoff() -> None:
    frame = noisy(40)
    frame.loc[[20, 21, 22, 23], "y"] = np.nan
    model = Naive(missing="interpolate")
    found = series_errors(model, Panel.from_frame(frame), 3).errors[0]
    first = 19  # the cutoff of the first window
    for cut in (20, 21, 22, 23, 24):  # in the hole, where the value before it holds, and after it
        wanted = frame.y[cut : cut + 3] - frame.y[19]
        assert np.array_equal(found[cut - first], wanted, equal_nan=True)
    assert np.isfinite(found[24 - first]).all()
    fitted = Naive(horizon=3, missing="interpolate", intervals="conformal").fit(frame)
    assert np.array_equal(fitted.state_.calibration.errors[0], found, equal_nan=True)  # type: ignore[union-attr]


def test_what_is_known_ahead_is_refused_where_it_is_missing() -> None:
    frame = noisy(40).assign(x=lambda one: one.y)
    frame.loc[30, "x"] = np.nan
    panel = Panel.from_frame(frame, columns={"future": ["x"]})
    with pytest.raises(DataError, match="series s0\\. Column x is missing at 2024-01-31"):
        series_errors(FutureRegression(missing="interpolate"), panel, 3)


def test_pooled_errors_are_over_the_scale_before_the_cutoff() -> None:
    frame = noisy(20, 20, 20)
    frame.loc[frame.unique_id == "s1", "y"] *= 1000
    frame.loc[frame.unique_id == "s2", "y"] = 7.0
    found = pooled_absolute_errors(Naive(), Panel.from_frame(frame), 2, 3)
    wanted = []
    for _, one in frame.groupby("unique_id"):
        for cut in (16, 17, 18):
            scale = one.y.iloc[:cut].diff().abs().mean()
            errors = (one.y.iloc[cut : cut + 2] - one.y.iloc[cut - 1]).abs().to_numpy()
            wanted += [errors / scale] if scale else []
    assert len(wanted) == 6
    np.testing.assert_allclose(found.scores, np.sort(np.array(wanted), axis=0))
    np.testing.assert_allclose(found.scale, frame.groupby("unique_id").y.apply(lambda y: y.diff().abs().mean()))
    steps = P(1, 20).assign(y=[7.0] * 17 + [8.0] * 3)
    assert pooled_absolute_errors(Naive(), Panel.from_frame(steps), 2, 1).scores.tolist() == [[0.0, 0.0]]
    assert pooled_absolute_errors(Naive(), Panel.from_frame(steps.head(18)), 1, 1).scores.shape == (0, 1)


def test_series_that_do_not_move_give_the_pool_neither_errors_nor_room() -> None:
    frame = noisy(*[60] * 25)
    alone = pooled_absolute_errors(Naive(), Panel.from_frame(frame[frame.unique_id.str.len() == 2]), 2)
    dead = frame.assign(y=frame.y.where(frame.unique_id.str.len() == 2, 5.0))
    assert (pooled_absolute_errors(Naive(), Panel.from_frame(dead), 2).scores == alone.scores).all()
