"""Bad inputs for the seven baselines: constants, extremes, short series, wrong arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Forecaster, Mean, Naive, Naive2, SeasonalMean, SeasonalNaive, WindowMean
from deepforecast.errors import DataError, DataWarning, NotFittedError, ParameterError

H = 5
LEVELS = [80, 95]


def forecast(model: Forecaster, frame: pd.DataFrame, steps: int = H, level: Any = LEVELS) -> pd.DataFrame:
    return model.fit(frame, freq="D").predict(steps, level=level)


def bands(model: Forecaster, found: pd.DataFrame) -> np.ndarray:
    return np.asarray(found[[f"{model.name}-{side}-{level}" for level in LEVELS for side in ("lo", "hi")]])


@pytest.mark.parametrize("constant", [7.0, -7.0, 1e9, 1e-9, 0.1, 1e9 + 0.3, 3e9 + 4, 1e200, 1e-300, -0.3, 1 / 3])
@pytest.mark.parametrize("rows", [3, 9, 60, 1001])
def test_constant_is_forecast_exactly_with_zero_width_intervals(
    model: Forecaster, daily: Any, constant: float, rows: int
) -> None:
    level = None if rows == 3 else LEVELS  # a single season is too short for the bands of some
    found = forecast(model, daily(A=np.full(rows, constant), B=np.arange(1.0, rows + 1)), level=level)
    here = np.asarray(found[found["unique_id"] == "A"].iloc[:, 2:])
    assert (here == constant).all()


def test_zeros_are_forecast_as_zeros(model: Forecaster, daily: Any) -> None:
    assert (forecast(model, daily(A=np.zeros(60))).iloc[:, 2:] == 0).all(axis=None)


def test_constant_with_missing_values(patient: Forecaster, daily: Any) -> None:
    y = np.full(60, 0.1)
    y[[0, 10, 11, 30, 59]] = np.nan
    with pytest.warns(DataWarning, match="missing"):
        assert (forecast(patient, daily(A=y)).iloc[:, 2:] == 0.1).all(axis=None)


def test_seasonality_at_a_high_level_is_exact(daily: Any) -> None:
    week = np.arange(1.0, 8)
    for y in (1e9 + np.tile(week, 9), np.tile(1_000_000_000 + np.arange(1, 8), 9), 3e9 + 4 * np.sin(np.arange(63.0) % 7)):
        for model in (SeasonalNaive(season_length=7), SeasonalMean(season_length=7)):
            found = forecast(model, daily(A=y), 14)
            assert (found[model.name].to_numpy() == np.tile(np.asarray(y[:7], dtype=float), 2)).all()
            assert (bands(model, found) == found[[model.name]].to_numpy()).all()
        assert forecast(Naive(), daily(A=y), 1)["Naive"][0] == y[-1]


def test_naive2_at_a_high_level(daily: Any) -> None:
    y = 3e9 + 4 * np.sin(np.arange(63.0) % 7)
    np.testing.assert_allclose(forecast(Naive2(season_length=7), daily(A=y), 7)["Naive2"], y[:7], rtol=1e-15)


@pytest.mark.parametrize("scale", [1e200, 1e-300])
def test_huge_and_tiny_values(model: Forecaster, daily: Any, scale: float) -> None:
    y = scale * (20 + np.random.default_rng(0).normal(size=60))
    found = forecast(model, daily(A=y, B=y / scale, C=-y))
    assert np.isfinite(found.iloc[:, 2:]).all(axis=None)
    assert (np.ptp(bands(model, found[found["unique_id"] == "A"]), axis=1) > scale).all()


def test_forecast_beyond_float64_is_refused_naming_the_series(model: Forecaster, daily: Any) -> None:
    """Changes of 3e308 do not fit; no warning, no infinite number."""
    frame = daily(A=[1.0, 2.0, 3.0] * 9, B=1.7e308 * np.tile([1.0, -1.0], 14))
    with pytest.raises(DataError, match="series B"):
        forecast(model, frame)


def test_series_of_very_different_levels_in_one_panel(model: Forecaster, daily: Any) -> None:
    base = 3 + np.random.default_rng(0).random(60)
    found = forecast(model, daily(A=1e-6 * base, B=base, C=1e8 * base))
    for name, level in (("A", 1e-6), ("B", 1.0), ("C", 1e8)):
        points = found.loc[found["unique_id"] == name, model.name] / level
        assert points.between(base.min() - 2, base.max() + 2).all()


@pytest.mark.parametrize(
    "y",
    [
        np.append(np.full(119, 7.0), 9.0),
        np.eye(1, 120, 60)[0],
        np.random.default_rng(0).poisson(0.12, 120).astype(float),
        np.tile([1.0, -1.0], 60),
        -3 - np.random.default_rng(0).random(120),
        np.arange(120.0),
        np.append(np.random.default_rng(0).random(119), 1e9),
    ],
    ids=["step", "single value", "sparse counts", "alternating", "negative", "linear", "outlier"],
)
def test_odd_series(model: Forecaster, daily: Any, y: np.ndarray) -> None:
    found = forecast(model, daily(A=y))
    width = np.ptp(y)
    assert found[model.name].between(y.min() - width, y.max() + width).all()
    assert np.isfinite(found.iloc[:, 2:]).all(axis=None)


def test_linear_series_is_continued(daily: Any) -> None:
    from deepforecast import Drift

    np.testing.assert_allclose(forecast(Drift(), daily(A=np.arange(60.0)))["Drift"], np.arange(60.0, 65), rtol=1e-14)


def test_perfect_season_is_continued_exactly(daily: Any) -> None:
    season = np.random.default_rng(0).random(7)
    found = forecast(SeasonalNaive(season_length=7), daily(A=np.tile(season, 9)[:-2]), 9)
    assert (found.iloc[:, 2:].to_numpy() == np.tile(season, 2)[5:14, None]).all()


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6])
@pytest.mark.filterwarnings("ignore:.* lie far outside the history")
def test_short_series_and_the_minimum_length(model: Forecaster, daily: Any, plain: Any, rows: int) -> None:
    """Refused with series, needed and actual number; a level with the reason; and never NaN."""
    needed = {"Naive": 1, "Naive2": 1, "Mean": 1, "Drift": 2}.get(model.name, 3)
    for_level = {"Naive": 2, "Naive2": 2, "Mean": 2, "Drift": 3}.get(model.name, 4)
    y = np.random.default_rng(rows).random(rows)
    frame = daily(long=np.arange(1.0, 40), short=y)
    if rows < needed:
        with pytest.raises(
            DataError, match=f"{model.name} requires at least {needed} values per series, but series short has {rows}"
        ):
            model.fit(frame, freq="D")
        return
    found = forecast(model, frame, level=None)
    np.testing.assert_allclose(found.loc[found["unique_id"] == "short", model.name], plain(model, y, H)[0], rtol=1e-12)
    assert len(found) == 2 * H
    if rows >= for_level:
        assert np.isfinite(model.predict(H, level=80).iloc[:, 2:]).all(axis=None)
        return
    model.update(daily(after=rows, short=[1.0]))  # sigma stays that of the fit
    for banded in (lambda: model.predict(H, level=80), lambda: model.simulate(2, H)):
        with pytest.raises(DataError, match="series short are not: the values of column y are too few to estimate") as few:
            banded()
        assert f"variance: at least {for_level} are required, and fit had {rows}. Fit longer" in str(few.value)


@pytest.mark.parametrize("rows", [9, 11])
def test_fewer_values_than_a_season_are_refused(rows: int) -> None:
    april = pd.date_range("2023-04-01", periods=rows, freq="MS")
    frame = pd.DataFrame({"ds": april, "y": np.arange(1.0, rows + 1)})
    for model in (SeasonalNaive(), SeasonalMean()):
        with pytest.raises(DataError, match=f"at least 12 values .* {rows}"):
            model.fit(frame)


@pytest.mark.parametrize("rows", [12, 13, 17, 23, 24, 35])
def test_seasonal_phase_is_never_shifted(rows: int) -> None:
    stamps = pd.date_range("2023-04-01", periods=rows, freq="MS")
    frame = pd.DataFrame({"ds": stamps, "y": stamps.month.astype(float)})
    for model in (SeasonalNaive(), SeasonalMean()):
        found = model.fit(frame).predict(30)
        assert (found[model.name] == found["ds"].dt.month).all()


@pytest.mark.parametrize("model", [SeasonalNaive(season_length=4), SeasonalMean(season_length=4)], ids=lambda model: model.name)
def test_season_position_without_a_value_is_refused(model: Forecaster, daily: Any) -> None:
    y = np.where(np.arange(20) % 4 == 2, np.nan, 1.0)
    frame = daily(A=np.arange(20.0), B=y)
    match = r"must have a value at each of the 4 steps of the season \(season_length\); .*series: B \(1 of 4 steps in B\)"
    with pytest.raises(DataError, match=match):  # and nothing is said of forecasting through missing values
        model.fit(frame)
    fitted = model.fit(daily(A=np.arange(20.0), B=np.arange(20.0)))
    for call in (lambda: fitted.predict(2, frame=frame), lambda: fitted.fine_tune(frame)):
        with pytest.raises(DataError, match=match):
            call()
    both = r"missing for series: A, B \(2 of 4 steps in A\)"
    with pytest.raises(DataError, match=both):
        model.fit(daily(A=np.where(np.arange(20) % 4 < 2, np.nan, 1.0), B=y))
    filled = model.clone(missing="interpolate").fit(frame).predict(2)
    assert (filled.loc[filled["unique_id"] == "B", model.name] == 1).all()


def test_naive2_refuses_missing_values_naming_them(daily: Any) -> None:
    frame = daily(A=np.arange(1.0, 20), B=[1.0, np.nan, 3.0])
    with pytest.raises(DataError, match=r"Naive2 cannot handle missing values, but column y .* series B, first at 2024-01-02"):
        Naive2(season_length=7).fit(frame)
    found = Naive2(season_length=7, missing="interpolate").fit(frame).predict(2)
    assert (found.loc[found["unique_id"] == "B", "Naive2"] == 3).all()


def test_series_without_a_value_is_refused(model: Forecaster, daily: Any) -> None:
    with pytest.raises(DataError, match=r"Every series must have at least one value in column y; all values are missing"):
        model.fit(daily(A=np.arange(1.0, 20), B=[np.nan] * 5))


@pytest.mark.parametrize("value", [0, -1, 1.5, "weekly", None, True])
@pytest.mark.parametrize("cls", [SeasonalNaive, SeasonalMean, Naive2, WindowMean])
def test_invalid_season_length_and_window_are_refused(cls: type[Forecaster], value: Any) -> None:
    name = "window" if cls is WindowMean else "season_length"
    with pytest.raises(ParameterError, match=name):
        cls(**{name: value})


@pytest.mark.parametrize("model", [SeasonalNaive(season_length=100), SeasonalMean(season_length=100), WindowMean(window=100)])
def test_season_length_and_window_longer_than_the_series(model: Forecaster, daily: Any) -> None:
    with pytest.raises(DataError, match="at least 100 values per series, but series A has 60"):
        model.fit(daily(A=np.arange(60.0)))


@pytest.mark.parametrize("cls", [SeasonalNaive, SeasonalMean, Naive2, WindowMean])
def test_integer_time_has_no_season(cls: type[Forecaster]) -> None:
    name = "window" if cls is WindowMean else "season_length"
    frame = pd.DataFrame({"ds": np.arange(40), "y": np.arange(1.0, 41)})
    with pytest.raises(ParameterError, match=f"{cls.__name__}: {name}='auto' .* Pass {name}"):
        cls().fit(frame, freq=1)
    assert len(cls(**{name: 4}).fit(frame, freq=1).predict(3)) == 3


@pytest.mark.parametrize("horizon", [0, -1, 2.5, "5", True])
def test_invalid_horizon_is_refused(model: Forecaster, daily: Any, horizon: Any) -> None:
    fitted = model.fit(daily(A=np.arange(1.0, 20)))
    for call in (lambda: fitted.predict(horizon), lambda: fitted.explain(horizon), lambda: fitted.simulate(2, horizon)):
        with pytest.raises(ParameterError, match="horizon"):
            call()
    with pytest.raises(ParameterError, match="`horizon` must be set"):
        fitted.predict()


@pytest.mark.filterwarnings("ignore:.* lie far outside the history")
def test_horizon_much_longer_than_the_series(model: Forecaster, daily: Any) -> None:
    found = forecast(model, daily(A=20 + np.random.default_rng(0).normal(size=60)), 500)
    assert len(found) == 500
    assert np.isfinite(found.iloc[:, 2:]).all(axis=None)


@pytest.mark.parametrize("level", [0, [100], [-1], [101], ["80"], [np.nan], True])
def test_invalid_level_is_refused(model: Forecaster, daily: Any, level: Any) -> None:
    fitted = model.fit(daily(A=np.arange(1.0, 20)))
    with pytest.raises(ParameterError, match="level"):
        fitted.predict(3, level=level)


def test_intervals_are_nested_around_the_point(model: Forecaster, daily: Any) -> None:
    fitted = model.fit(daily(A=20 + np.random.default_rng(0).normal(size=60)))
    found = fitted.predict(9, level=[95, 50, 80, 80, 99.5])
    order = ["lo-99.5", "lo-95", "lo-80", "lo-50", None, "hi-50", "hi-80", "hi-95", "hi-99.5"]
    columns = [model.name if one is None else f"{model.name}-{one}" for one in order]
    assert set(found.columns) == {"unique_id", "ds", *columns}
    assert (np.diff(np.asarray(found[columns]), axis=1) > 0).all()
    assert list(fitted.predict(9, level=[])) == ["unique_id", "ds", model.name]


def test_the_median_is_the_mean(model: Forecaster, daily: Any) -> None:
    """A normal distribution: the point does not depend on which of them is asked for."""
    frame = daily(A=20 + np.random.default_rng(0).normal(size=60))
    points = [model.clone(point=point).fit(frame).predict(4)[model.name] for point in ("mean", "median", "auto")]
    assert points[0].equals(points[1])
    assert points[0].equals(points[2])


def test_predict_before_fit_raises_not_fitted(model: Forecaster, daily: Any) -> None:
    calls = {"predict": (3,), "simulate": (2, 3), "explain": (3,), "update": (daily(A=[1.0]),)}
    for name, arguments in calls.items():
        with pytest.raises(NotFittedError, match=r"fit\(frame\)"):
            getattr(model, name)(*arguments)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "a"])
def test_seed(daily: Any, seed: Any) -> None:
    with pytest.raises(ParameterError, match="seed"):
        Mean().fit(daily(A=[1.0, 2.0, 3.0])).simulate(2, 3, seed=seed)


def test_thousand_series_of_one_observation(daily: Any) -> None:
    ids = pd.Series([f"s{number:04d}" for number in range(1000)])
    frame = pd.DataFrame({"unique_id": ids, "ds": pd.Timestamp("2024-01-01"), "y": 1.0})
    with pytest.raises(
        DataError, match=r"at least 7 values .* s0000, s0001, s0002, s0003, s0004 … \(1000 in all\) have 1 each"
    ):
        SeasonalNaive(season_length=7).fit(frame, freq="D")
    assert (Naive().fit(frame, freq="D").predict(2)["Naive"] == 1).all()
