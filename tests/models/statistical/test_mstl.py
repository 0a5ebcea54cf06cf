"""`decompose` is statsmodels' STL and MSTL on a panel; the model carries its seasons on and lets another one do the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.seasonal import MSTL as TheirMSTL
from statsmodels.tsa.seasonal import STL

from deepforecast import (
    MSTL,
    SES,
    AutoETS,
    Conformal,
    Drift,
    Naive,
    SeasonalNaive,
    cross_validate,
    datasets,
    decompose,
)
from deepforecast.data.panel import fill_missing
from deepforecast.errors import CapabilityError, DataError, ParameterError, ParameterTypeError
from deepforecast.models.statistical._interpolation import fill_with_seasons
from deepforecast.models.statistical.decomposition import Loess


def hourly(weeks: int = 5, seed: int = 0, name: str = "a") -> pd.DataFrame:
    rng, n = np.random.default_rng(seed), weeks * 168
    day, week = np.tile(rng.normal(size=24), weeks * 7), np.tile(rng.normal(size=168), weeks)
    y = 50 + 8 * day + 3 * week + np.cumsum(rng.normal(size=n)) * 0.1 + rng.normal(size=n)
    return pd.DataFrame({"unique_id": name, "ds": pd.date_range("2024-01-01", periods=n, freq="h"), "y": y})


def daily(n: int = 70, seed: int = 0, name: str = "a") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = 20 + 0.1 * np.arange(n) + np.tile(rng.normal(size=7), n // 7 + 1)[:n] * 4 + rng.normal(size=n)
    return pd.DataFrame({"unique_id": name, "ds": pd.date_range("2024-01-01", periods=n), "y": y})


@pytest.mark.parametrize("robust", [False, True])
def test_decompose_is_stl_of_statsmodels_series_by_series(robust: bool) -> None:
    frame = pd.concat([daily(90, 1, "a"), daily(71, 2, "b")], ignore_index=True)
    found = decompose(frame, seasonal_window=7, seasonal_degree=1, robust=robust)
    assert found.columns.tolist() == ["unique_id", "ds", "y", "trend", "season_7", "remainder"]
    for name, rows in found.groupby("unique_id"):
        theirs = STL(frame.loc[frame["unique_id"] == name, "y"].to_numpy(), period=7, robust=robust).fit()
        np.testing.assert_allclose(rows["trend"], theirs.trend, atol=1e-9)
        np.testing.assert_allclose(rows["season_7"], theirs.seasonal, atol=1e-9)
        np.testing.assert_allclose(rows["remainder"], theirs.resid, atol=1e-9)


def test_decompose_of_several_seasons_is_mstl_of_statsmodels() -> None:
    frame = hourly()
    found = decompose(frame)
    theirs = TheirMSTL(frame["y"].to_numpy(), periods=(24, 168), stl_kwargs={"seasonal_deg": 0}).fit()
    np.testing.assert_allclose(found["trend"], theirs.trend, atol=1e-9)
    np.testing.assert_allclose(found[["season_24", "season_168"]], theirs.seasonal, atol=1e-9)
    total = found[["trend", "season_24", "season_168", "remainder"]].sum(axis=1)
    np.testing.assert_allclose(total, frame["y"], rtol=1e-13)


def test_decompose_takes_every_setting_of_stl() -> None:
    frame = daily(120)
    options = Loess(low_pass_window=11, trend_degree=0, low_pass_degree=0, seasonal_jump=2, trend_jump=3, low_pass_jump=2)
    found = decompose(frame, 7, seasonal_window=13, trend_window=21, options=options)
    theirs = STL(
        frame["y"].to_numpy(), period=7, seasonal=13, trend=21, low_pass=11, seasonal_deg=0, trend_deg=0, low_pass_deg=0,
        seasonal_jump=2, trend_jump=3, low_pass_jump=2,
    ).fit()  # fmt: skip
    np.testing.assert_allclose(found["trend"], theirs.trend, atol=1e-9)
    once = decompose(frame, 7, seasonal_window=7, seasonal_degree=1, options=Loess(inner=1, outer=3))
    plain = STL(frame["y"].to_numpy(), period=7, robust=True).fit(inner_iter=1, outer_iter=3)
    np.testing.assert_allclose(once["trend"], plain.trend, atol=1e-9)


def test_decompose_interpolates_what_is_missing_and_says_so() -> None:
    whole = daily()
    holed = whole.assign(y=whole["y"].where(~whole.index.isin([20, 21, 40])))
    with pytest.warns(match="interpolates.*3 rows of series a"):
        found = decompose(holed)
    assert found["remainder"].isna().sum() == 3
    assert found[["trend", "season_7"]].notna().all(axis=None)
    quietly = decompose(holed, missing="interpolate")
    pd.testing.assert_frame_equal(quietly, found)
    straight = decompose(holed.assign(y=holed["y"].interpolate()))
    apart = [np.abs(one["season_7"] - decompose(whole)["season_7"]).mean() for one in (found, straight)]
    assert apart[0] < apart[1]
    gaps = decompose(holed.dropna(), missing="ffill")
    assert len(gaps) == len(whole)


def test_a_season_goes_on_through_gaps_and_beyond_the_values_seen() -> None:
    """Exact for seasons on a line, wherever the gap is; and a series is filled as if it stood alone."""
    rng, parts = np.random.default_rng(4), []
    cases = [(96, [12], slice(60, 96)), (96, [12], slice(0, 30)), (96, [12], slice(30, 66)), (140, [3, 7], slice(60, 100))]
    cases += [(24 * 28, [24, 168], slice(300, 500)), (140, [4, 6], slice(80, 140))]
    for n, lengths, gap in cases:
        whole = 5 + 0.3 * np.arange(n) + sum(np.resize(rng.normal(size=length) * 10, n) for length in lengths)
        y = whole.copy()
        y[gap] = np.nan
        found = fill_with_seasons(y, np.array([0, n]), lengths, 2)
        np.testing.assert_allclose(found, whole, atol=1e-8)
        np.testing.assert_array_equal(found[~np.isnan(y)], whole[~np.isnan(y)])
        parts.append(y[:90] + rng.normal(size=90))
    together = fill_with_seasons(np.concatenate(parts), 90 * np.arange(len(parts) + 1), [3, 7], 2)
    for y, found in zip(parts, together.reshape(-1, 90), strict=True):
        np.testing.assert_array_equal(fill_with_seasons(y, np.array([0, 90]), [3, 7], 2), found)


def test_what_has_no_season_to_fill_by_is_filled_on_straight_lines() -> None:
    short = np.array([1.0, 5.0, 2.0, np.nan, 3.0, np.nan, 4.0, 6.0, np.nan])
    holed = np.where(np.arange(40) % 7 < 6, 0.1, np.nan)  # and never seen on one day of the week
    y, bounds = np.concatenate([short, holed, np.full(20, np.nan)]), np.array([0, 9, 49, 69])
    found = fill_with_seasons(y, bounds, [7], 2)
    np.testing.assert_array_equal(found, fill_missing(y, bounds, "interpolate"))
    week = np.where(np.arange(42) % 7 == 6, np.nan, np.resize([0.0, 1.0, 5.0, 9.0, 3.0, 2.0, 0.0], 42))
    np.testing.assert_allclose(fill_with_seasons(week, np.array([0, 42]), [7], 2)[6::7], 1.0, atol=1e-9)


def test_mstl_keeps_its_season_through_a_long_gap() -> None:
    season = 10 * np.sin(np.arange(12) * np.pi / 6)
    stamps = pd.date_range("2010-01-01", periods=108, freq="MS")
    y = 50 + np.tile(season, 9)
    held = pd.DataFrame({"unique_id": "a", "ds": stamps, "y": y})
    frame = held.head(96).assign(y=np.where(np.arange(96) < 60, y[:96], np.nan))
    with pytest.warns(match="missing"):
        found = MSTL(horizon=12, season_length=12, trend_model=Naive()).fit(frame).predict()
    np.testing.assert_allclose(found["MSTL"], y[96:], atol=1e-6)


def test_decompose_refuses_by_name() -> None:
    frame = daily()
    short = pd.concat([frame, daily(13, 1, "short")])
    with pytest.raises(DataError, match=r"too short: short \(13 rows\)"):
        decompose(short)
    with pytest.raises(ParameterError, match="season"):
        decompose(frame, 1)
    with pytest.raises(ParameterError, match="integer time"):
        decompose(frame.assign(ds=np.arange(len(frame))))
    for wrong in (0, "weekly"):
        with pytest.raises(ParameterError, match="season_length"):
            decompose(frame, wrong)
    for wrong in (2.5, True, [7, 2.5]):
        with pytest.raises(ParameterTypeError, match="season_length"):
            decompose(frame, wrong)
    for name, value in {"seasonal_window": 8, "trend_window": 7, "seasonal_degree": 2, "missing": "so"}.items():
        with pytest.raises(ParameterError, match="missing" if name == "missing" else name.replace("seasonal_degree", "degree")):
            decompose(frame, **{name: value})
    with pytest.raises(ParameterError, match="2 seasons"):
        decompose(hourly(), seasonal_window=[7, 9, 11])
    with pytest.raises(ParameterError, match="jump"):
        decompose(frame, options=Loess(trend_jump=0))
    with pytest.raises(DataError, match=r"Every series must have at least one value in column y; all values are missing"):
        decompose(pd.concat([frame, daily(20, 1, "void").assign(y=np.nan)]))


def test_decompose_does_without_a_season_too_long_for_a_series() -> None:
    frame = pd.concat([hourly(3, 1, "long"), hourly(1, 2, "short")])
    with pytest.warns(match="decompose: season_length=168 requires at least 336 values per series; .*: short"):
        found = decompose(frame)
    assert (found.loc[found["unique_id"] == "short", "season_168"] == 0).all()
    assert (found.loc[found["unique_id"] == "long", "season_168"] != 0).any()


def test_decompose_gives_back_the_library_it_was_given() -> None:
    import polars as pl

    found = decompose(pl.from_pandas(daily()))
    assert isinstance(found, pl.DataFrame)
    np.testing.assert_array_equal(found["trend"], decompose(daily())["trend"])


@pytest.mark.parametrize("inner", [Naive(), Drift()], ids=repr)
def test_forecasts_are_the_rest_plus_the_last_cycle_of_each_season(inner: Any) -> None:
    frame = hourly()
    model = MSTL(horizon=200, season_length=[24, 168], trend_model=inner).fit(frame)
    parts = decompose(frame)
    rest = frame.assign(y=parts["trend"] + parts["remainder"])
    theirs = inner.clone().fit(rest).predict(200, level=80).iloc[:, 2:]
    ahead = np.arange(200)
    season = sum(parts[f"season_{m}"].to_numpy()[-m:][ahead % m] for m in (24, 168))
    middle = theirs.iloc[:, :1].to_numpy()
    wider = model.state_.learned["deviation_factor"][0]  # for the seasons taken out, see below
    assert 1.01 < wider < 3.0
    theirs = middle + (theirs - middle) * np.array([1.0, wider, wider])
    np.testing.assert_allclose(model.predict(level=80).iloc[:, 2:], theirs + np.asarray(season)[:, None], rtol=1e-10)
    shares = model.explain().pivot(index="ds", columns="component", values="value")
    assert {"level", "season_24", "season_168"} <= set(shares.columns)
    np.testing.assert_allclose(shares.sum(axis=1), model.predict()["MSTL"], rtol=1e-12)
    paths = model.simulate(400, 24)
    np.testing.assert_allclose(paths.groupby("ds")["MSTL"].mean(), model.predict(24)["MSTL"], atol=4)


def test_the_rest_is_autoets_without_a_season_if_nothing_is_said() -> None:
    frame = daily()
    usual, said = MSTL(horizon=7), MSTL(horizon=7, trend_model=AutoETS(season_length=1))
    pd.testing.assert_frame_equal(usual.fit(frame).predict(level=80), said.fit(frame).predict(level=80))
    values = usual.fitted_values()["MSTL"].to_numpy()
    assert np.isnan(values[:14]).all()
    assert np.abs(values[14:] - frame["y"].to_numpy()[14:]).std() < frame["y"].std()
    assert np.isfinite(usual.residual_diagnostics()["p_value"]).all()


@pytest.mark.parametrize("lengths", [7, [3, 7]])
def test_fitted_values_hang_on_earlier_rows_alone(lengths: int | list[int]) -> None:
    """Each cycle begins as predict(frame=...) of the rows before it; a smoother that looks to both sides foresees nothing."""
    frame = pd.concat([daily(70, 1, "a"), daily(45, 2, "b")], ignore_index=True)
    model = MSTL(season_length=lengths, trend_model=SES()).fit(frame)
    seen = model.fitted_values()
    cycle = np.min(lengths)
    for name, rows in seen.groupby("unique_id"):
        values = rows["MSTL"].to_numpy()
        assert np.isnan(values[:14]).all()
        for row in range(14, len(rows), cycle):
            before = frame[frame["unique_id"] == name].head(row)
            assert values[row] == pytest.approx(model.predict(1, frame=before)["MSTL"].item(), abs=1e-9)
    moved = frame.assign(y=np.where(frame.index == 33, frame["y"] + 100, frame["y"]))
    np.testing.assert_array_equal(model.fitted_values(moved)["MSTL"][:34], seen["MSTL"][:34])
    alone = model.fitted_values(frame[frame["unique_id"] == "b"])["MSTL"]
    np.testing.assert_array_equal(alone, seen.loc[seen["unique_id"] == "b", "MSTL"])


def test_what_is_left_over_of_white_noise_is_no_smaller_than_it() -> None:
    rng, stamps = np.random.default_rng(0), pd.date_range("2020-01-01", periods=36, freq="MS")
    parts = [pd.DataFrame({"unique_id": f"{n:02}", "ds": stamps, "y": rng.normal(size=36)}) for n in range(40)]
    found = MSTL(season_length=12).fit(pd.concat(parts)).fitted_values()
    assert np.sqrt(np.nanmean((found["y"] - found["MSTL"]) ** 2)) > 1.0


def test_auto_takes_the_seasons_of_the_frequency() -> None:
    model = MSTL(horizon=3, trend_model=Naive()).fit(hourly())
    assert sorted(name for name in model.state_.learned.by_series if name.startswith("season_")) == ["season_168", "season_24"]
    weekly = MSTL(horizon=3, trend_model=Naive()).fit(daily())
    assert weekly.state_.learned["season_7"].shape == (1, 7)
    yearly = daily(30).assign(ds=pd.date_range("1990-01-01", periods=30, freq="YS"))
    found = MSTL(horizon=3, trend_model=Naive()).fit(yearly).predict()["MSTL"]
    assert (found == yearly["y"].iloc[-1]).all()


def test_a_history_that_begins_with_the_known_rows_goes_on_and_others_are_decomposed() -> None:
    frame = daily(100)
    model = MSTL(horizon=5, trend_model=Naive()).fit(frame.head(80))
    season = model.state_.learned["season_7"].copy()
    longer = model.predict(frame=frame)
    other = model.predict(frame=frame.tail(60))
    model.update(frame.iloc[80:90]).update(frame.iloc[90:])
    pd.testing.assert_frame_equal(model.predict(), longer, rtol=1e-12)
    np.testing.assert_array_equal(model.state_.learned["season_7"], np.roll(season, -20 % 7, axis=1))
    pd.testing.assert_frame_equal(model.predict(frame=frame), longer, rtol=1e-12)
    pd.testing.assert_frame_equal(other, MSTL(horizon=5, trend_model=Naive()).fit(frame.tail(60)).predict())
    assert (other["MSTL"] - longer["MSTL"]).abs().max() > 1e-6
    changed = frame.assign(y=frame["y"].where(frame.index != 3, 0.0))
    assert (model.predict(frame=changed)["MSTL"] - longer["MSTL"]).abs().max() > 1e-6


def test_missing_values_reach_the_model_of_the_rest() -> None:
    frame = daily()
    holed = frame.assign(y=frame["y"].where(frame.index != 69))
    with pytest.warns(match="missing"):
        found = MSTL(horizon=7, trend_model=Naive()).fit(holed)
    assert np.isnan(found.state_.learned.history.y[69])  # type: ignore[union-attr]
    assert found.state_.learned["rest.age"][0] == 1


def test_series_too_short_for_a_season_are_refused_or_warned_of() -> None:
    with pytest.raises(DataError, match=r"14 values.*13"):
        MSTL(horizon=3, trend_model=Naive()).fit(daily(13))
    with pytest.raises(DataError, match=r"336 values"):
        MSTL(horizon=3, season_length=[24, 168], trend_model=Naive()).fit(hourly(1))
    with pytest.warns(match="season_length=168"):
        found = MSTL(horizon=3, trend_model=Naive()).fit(hourly(1)).predict()
    assert np.isfinite(found["MSTL"]).all()


def test_a_model_of_the_rest_that_does_not_fit_is_refused() -> None:
    for inner in (Conformal(Naive(), horizon=3), Naive(intervals="conformal")):
        with pytest.raises(ParameterError, match="trend_model"):
            MSTL(horizon=3, trend_model=inner).fit(daily())

    class Positive(Naive):
        capabilities = replace(Naive.capabilities, domain="positive")

    falling = daily().assign(y=lambda frame: 1.0 + 9 * (frame.index % 7 == 0) * np.linspace(1, 0, 70))
    with pytest.raises(DataError, match="must be positive for Positive of the seasonally adjusted series"):
        MSTL(horizon=3, trend_model=Positive()).fit(falling)
    with pytest.raises(CapabilityError, match="fitted"):
        MSTL(horizon=3, trend_model=SeasonalNaive(season_length=1)).fit(daily()).fitted_values()


def test_air_passengers_are_forecast_well() -> None:
    frame = datasets.load("air_passengers")
    found = MSTL(horizon=12, trend_model=Drift()).fit(frame.head(132)).predict()["MSTL"].to_numpy()
    actual = frame["y"].tail(12).to_numpy()
    assert np.abs(found - actual).mean() < 0.7 * np.abs(frame["y"].iloc[120:132].to_numpy() - actual).mean()


@pytest.mark.parametrize(("season", "rows", "window"), [(12, 240, 11), (12, 60, 11), (4, 200, 7), (12, 240, 1001)])
def test_bands_count_the_seasons_taken_out(season, rows, window):
    """Of white noise the seasons leave the share that their degrees of freedom do, which the trace of the smoother tells."""
    y = np.random.default_rng(0).normal(size=(100, rows))
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(100), rows), "ds": np.tile(np.arange(rows), 100), "y": y.ravel()})
    parts = decompose(frame, season_length=season, seasonal_window=window, freq=1)
    kept = np.var(frame["y"] - parts[f"season_{season}"]) / np.var(y)
    model = MSTL(season_length=season, seasonal_window=window, trend_model=Naive()).fit(frame, freq=1)
    wider = model.state_.learned["deviation_factor"][0] ** 2
    assert 1 - (wider - 1) / (wider + 1) == pytest.approx(kept, abs=0.04)


def test_the_trace_of_a_smoother_as_wide_as_can_be_is_that_of_a_mean_or_a_line():
    from deepforecast.models.statistical._seasons import smoother_trace

    assert smoother_trace(20, 100_001, 0) == pytest.approx(1)
    assert smoother_trace(20, 100_001, 1) == pytest.approx(2)


@pytest.mark.slow
def test_coverage_of_a_walk_with_a_season():
    shocks = np.random.default_rng(4).normal(size=(2000, 132))
    y = np.cumsum(shocks, axis=1) + 5 * np.sin(np.arange(132) * np.pi / 6)
    ids, times = np.repeat(np.arange(2000), 120), np.tile(np.arange(120), 2000)
    frame = pd.DataFrame({"unique_id": ids, "ds": times, "y": y[:, :120].ravel()})
    found = MSTL(horizon=12, season_length=12).fit(frame, freq=1).predict(level=[80, 95])
    for level, first, last in ((80, 4.0, 8.0), (95, 2.0, 5.0)):
        low, high = (found[f"MSTL-{side}-{level}"].to_numpy().reshape(-1, 12) for side in ("lo", "hi"))
        inside = 100 * np.mean((y[:, 120:] >= low) & (y[:, 120:] <= high), axis=0)
        assert abs(inside[0] - level) < first
        assert abs(inside[11] - level) < last, inside


@pytest.mark.parametrize("refit", [True, False])
def test_covariates_survive_an_update(refit: bool) -> None:
    frame = datasets.generate(n_series=2, length=120, seed=3)
    frame["x"] = np.random.default_rng(0).normal(size=len(frame))
    rolled = cross_validate([MSTL()], frame, horizon=7, refit=refit, columns={"future": ["x"]})
    assert rolled["MSTL"].notna().all()
