"""UnobservedComponents is statsmodels' own: estimates bit for bit, forecasts and bands from our matrices to rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.datasets import macrodata
from statsmodels.tsa.statespace.structural import UnobservedComponents as Theirs

from deepforecast import UnobservedComponents, datasets, load
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, TrainingError, TrainingWarning
from deepforecast.models.statistical import _component_fit
from deepforecast.models.statistical._component_fit import cycle_starts
from deepforecast.models.statistical._time_series_components import _series_arrays

FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "local level": ({"level": "local level", "season_length": 1}, {"level": "local level"}),
    "seasonal": ({}, {"level": "local linear trend", "seasonal": 12}),
    "fixed season": (
        {"level": "smooth trend", "stochastic_season": False},
        {"level": "smooth trend", "seasonal": 12, "stochastic_seasonal": False},
    ),
    "waves": (
        {"level": "random walk with drift", "trigonometric": [12], "harmonics": 2},
        {"level": "random walk with drift", "freq_seasonal": [{"period": 12, "harmonics": 2}]},
    ),
    "cycle": (
        {"level": "local level", "season_length": 1, "cycle": True, "stochastic_cycle": True, "damped_cycle": True},
        {
            "level": "local level",
            "cycle": True,
            "stochastic_cycle": True,
            "damped_cycle": True,
            "cycle_period_bounds": (18, 90),  # the history
        },
    ),
    "autoregressive": (
        {"level": "fixed intercept", "season_length": 1, "autoregressive": 2},
        {"level": "fixed intercept", "autoregressive": 2},
    ),
}


def monthly(count: int = 3, n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    parts = []
    for number in range(count):
        season = np.tile(rng.normal(size=12) * 4, n // 12 + 1)[:n]
        noise = np.cumsum(rng.normal(size=n)) + np.convolve(rng.normal(size=n + 2), [1, 0.6, 0.2], "valid")
        stamps = pd.date_range("2015-01-01", periods=n, freq="MS")
        parts.append(pd.DataFrame({"unique_id": f"s{number:02d}", "ds": stamps, "y": 50 + 0.1 * np.arange(n) + season + noise}))
    return pd.concat(parts, ignore_index=True)


def theirs_of(y: np.ndarray, given: dict[str, Any], **more: Any) -> Any:
    model = Theirs(y, use_exact_diffuse=True, **given, **more)
    starts = cycle_starts(model) if model.cycle else [None]
    fits = [model.fit(start, disp=False, maxiter=200, warn_convergence=False, cov_type="none") for start in starts]
    best = max(fits, key=lambda result: result.llf)
    model.update(best.params)
    return best


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS)
def test_forecasts_equal_statsmodels(form: str) -> None:
    ours, given = FORMS[form]
    count = {"local level": 20, "cycle": 1}.get(form, 3)
    frame = monthly(count)
    model = UnobservedComponents(horizon=18, **ours).fit(frame)
    found = model.predict(level=95)
    for number, (name, rows) in enumerate(frame.groupby("unique_id")):
        theirs = theirs_of(rows["y"].to_numpy(), given)
        np.testing.assert_array_equal(model.state_.learned["params"][number], theirs.params)
        wanted = theirs.get_forecast(18)
        part = found[found["unique_id"] == name]
        np.testing.assert_allclose(part["UnobservedComponents"], wanted.predicted_mean, rtol=1e-9)
        bands = part[["UnobservedComponents-lo-95", "UnobservedComponents-hi-95"]]
        np.testing.assert_allclose(bands, wanted.conf_int(alpha=0.05), rtol=1e-7)


@pytest.mark.filterwarnings("ignore")
def test_a_column_known_ahead_enters_as_in_statsmodels() -> None:
    frame = monthly(1, 96)
    x = np.random.default_rng(1).normal(size=96)
    frame = frame.assign(y=frame["y"] + 3 * x, x=x)
    history, future = frame.head(90), frame.tail(6).drop(columns="y")
    model = UnobservedComponents(horizon=6, level="local level").fit(history, columns={"future": ["x"]})
    theirs = theirs_of(history["y"].to_numpy(), {"level": "local level", "seasonal": 12}, exog=x[:90, None])
    wanted = theirs.get_forecast(6, exog=x[90:, None])
    found = model.predict(future=future, level=80)
    np.testing.assert_allclose(found["UnobservedComponents"], wanted.predicted_mean, rtol=1e-10)
    np.testing.assert_allclose(found.iloc[:, 3:], wanted.conf_int(alpha=0.2), rtol=1e-8)
    parts = model.explain(future=future).pivot(index="ds", columns="component", values="value")
    np.testing.assert_allclose(parts["regressors"], model.state_.learned["effects"][0, 0] * x[90:], rtol=1e-12)
    np.testing.assert_allclose(parts.sum(axis=1), found["UnobservedComponents"], rtol=1e-12)
    moved = model.update(frame.tail(6).head(3)).predict(3, future=future.tail(3))
    longer = Theirs(frame["y"].to_numpy()[:93], exog=x[:93, None], level="local level", seasonal=12, use_exact_diffuse=True)
    again = longer.filter(theirs.params).forecast(3, exog=x[93:, None])
    np.testing.assert_allclose(moved["UnobservedComponents"], again, rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_missing_values_are_filtered_through_as_in_statsmodels() -> None:
    frame = monthly(1)
    frame["y"] = frame["y"].where(~frame.index.isin([0, 1, 30, 31, 32, 89]))
    found = UnobservedComponents(horizon=12).fit(frame).predict(level=80)
    wanted = theirs_of(frame["y"].to_numpy(), {"level": "local linear trend", "seasonal": 12}).get_forecast(12)
    np.testing.assert_allclose(found["UnobservedComponents"], wanted.predicted_mean, rtol=1e-9)
    np.testing.assert_allclose(found.iloc[:, 3:], wanted.conf_int(alpha=0.2), rtol=1e-7)


def test_update_is_the_filter_of_statsmodels() -> None:
    frame = monthly(2, 100)
    early = frame[frame.groupby("unique_id").cumcount() < 90]
    late = frame[frame.groupby("unique_id").cumcount() >= 90].copy()
    late.loc[late.index[3], "y"] = np.nan
    model = UnobservedComponents(horizon=6).fit(early)
    with pytest.warns(match="missing"):
        found = model.clone().set_params(horizon=6).fit(early).update(late).predict()
    for number, name in enumerate(("s00", "s01")):
        y = pd.concat([early, late]).query("unique_id == @name")["y"].to_numpy()
        theirs = Theirs(y, level="local linear trend", seasonal=12, use_exact_diffuse=True)
        wanted = theirs.filter(model.state_.learned["params"][number]).forecast(6)
        part = found.loc[found["unique_id"] == name, "UnobservedComponents"]
        np.testing.assert_allclose(part, wanted, rtol=1e-12)


def test_fitted_values_are_those_of_statsmodels_once_states_are_known() -> None:
    frame = monthly(1)
    model = UnobservedComponents(horizon=6).fit(frame)
    found = model.fitted_values()["UnobservedComponents"].to_numpy()
    theirs = Theirs(frame["y"].to_numpy(), level="local linear trend", seasonal=12, use_exact_diffuse=True)
    result = theirs.filter(model.state_.learned["params"][0])
    assert np.isnan(found[:13]).all()
    np.testing.assert_array_equal(found[13:], result.fittedvalues[13:])
    assert np.isfinite(model.residual_diagnostics()["p_value"]).all()


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_components_add_up_and_are_those_that_were_asked_for() -> None:
    given = {"level": "local linear trend", "season_length": 4, "trigonometric": [12], "harmonics": 2, "cycle": True}
    model = UnobservedComponents(horizon=8, autoregressive=1, max_iter=5, **given).fit(monthly(2))  # type: ignore[arg-type]
    parts = model.explain().pivot(index=["unique_id", "ds"], columns="component", values="value")
    assert set(parts.columns) == {"level", "trend", "season", "waves", "cycle", "autoregressive"}
    np.testing.assert_allclose(parts.sum(axis=1), model.predict()["UnobservedComponents"], rtol=1e-12)
    season = parts["season"].loc["s00"].to_numpy()
    np.testing.assert_allclose(season[:4], season[4:], atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*(did not converge|lies at a bound)")
def test_a_start_lost_in_rounding_is_made_approximately_diffuse() -> None:
    """A season of 4 beside a cycle whose length comes out as 4: with the exact start statsmodels forecasts -78,000 for s00."""
    given = {"level": "local linear trend", "season_length": 4, "trigonometric": [12], "harmonics": 2, "cycle": True}
    given |= {"cycle_period": (3, 5)}
    frame = monthly(1)
    model = UnobservedComponents(horizon=8, autoregressive=1, max_iter=40, **given).fit(frame)  # type: ignore[arg-type]
    found = model.predict(level=80)
    assert not model.state_.learned["exact"][0]
    assert found["UnobservedComponents"].between(20, 80).all()
    np.testing.assert_allclose(model.predict(frame=frame, level=80).iloc[:, 2:], found.iloc[:, 2:], rtol=1e-9)
    assert model.fitted_values()["UnobservedComponents"].dropna().between(0, 100).all()


def test_paths_are_spread_as_the_bands() -> None:
    model = UnobservedComponents(horizon=6, season_length=1).fit(monthly(1))
    paths = model.simulate(4000)["UnobservedComponents"].to_numpy().reshape(4000, 6)
    found = model.predict(level=80)
    inside = (paths > found.iloc[:, 3].to_numpy()) & (paths < found.iloc[:, 4].to_numpy())
    np.testing.assert_allclose(inside.mean(axis=0), 0.8, atol=0.025)


def test_a_loaded_model_needs_no_statsmodels(tmp_path: Any) -> None:
    import subprocess
    import sys

    frame = monthly(2)
    model = UnobservedComponents(horizon=6).fit(frame)
    model.save(tmp_path / "model")
    code = (
        "import sys, deepforecast as d\n"
        f"model = d.load({str(tmp_path / 'model')!r})\n"
        "frame = model.predict(level=80); model.explain(); model.simulate(3)\n"
        "assert not [name for name in sys.modules if name.startswith('statsmodels')]\n"
        "print(repr(frame.iloc[:, 2:].to_numpy().tolist()))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240).stdout
    assert said.strip() == repr(model.predict(level=80).iloc[:, 2:].to_numpy().tolist())
    assert load(tmp_path / "model") == model


def test_summary_is_that_of_statsmodels() -> None:
    model = UnobservedComponents(horizon=6, season_length=1).fit(monthly(2))
    said = str(model.summary("s01"))
    assert "sigma2.trend" in said
    assert "Ljung-Box" in said
    for wrong in (None, "s09"):
        with pytest.raises(ParameterError, match="s00"):
            model.summary(wrong)
    assert "sigma2.level" in str(UnobservedComponents(horizon=6).fit(datasets.load("air_passengers").head(60)).summary())


@pytest.mark.parametrize("value", [0.0, 7.0, -1e9])
def test_constants_are_continued(value: float) -> None:
    frame = monthly(1).assign(y=value)
    model = UnobservedComponents(horizon=6).fit(frame)
    found = model.predict(level=80)
    assert (found.iloc[:, 2:] == value).all(axis=None)
    assert (model.simulate(3)["UnobservedComponents"] == value).all()
    with pytest.raises(DataError, match="never varies"):
        model.summary()


def test_short_series_is_refused() -> None:
    with pytest.raises(DataError, match=r"UnobservedComponents requires at least 16.*has 15"):
        UnobservedComponents(horizon=3).fit(monthly(1, 15))


def test_an_optimiser_that_found_no_maximum_is_said() -> None:
    with pytest.warns(TrainingWarning, match=r"did not converge for series s00\. Set max_iter above 1\."):
        UnobservedComponents(horizon=3, max_iter=1).fit(monthly(1))


def test_warning_of_a_failed_line_search_does_not_suggest_more_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_component_fit, "_converged", lambda optimiser: False)
    with pytest.warns(TrainingWarning, match=r"a narrower cycle_period, damped_cycle=False or longer series\."):
        UnobservedComponents(horizon=3, level="random walk", season_length=1, cycle=True, damped_cycle=True).fit(monthly(1))


def unemployment() -> pd.DataFrame:
    """US unemployment, quarterly, with the growth of GDP of the same quarter."""
    data = macrodata.load_pandas().data
    growth = 100 * np.log(data["realgdp"]).diff().fillna(0.0)
    return pd.DataFrame({"ds": pd.date_range("1959-01-01", periods=len(data), freq="QS"), "y": data["unemp"], "x": growth})


def log_likelihood(model: UnobservedComponents) -> float:
    return float(
        model._task(model.state_.learned.history).smoothed_results(0, _series_arrays(model.state_.learned, 0)).llf
    )


@pytest.mark.filterwarnings("ignore:Maximum Likelihood optimization failed")  # of the reference, whose maximum is asserted
@pytest.mark.parametrize("covariate", [False, True])
def test_cycle_has_the_likelihood_of_statsmodels_with_dates(covariate: bool) -> None:
    frame = unemployment()
    dated = frame["y"].set_axis(pd.DatetimeIndex(frame["ds"], freq="QS"))
    given = {"level": "random walk", "cycle": True, "stochastic_cycle": True, "damped_cycle": True}
    exog = frame[["x"]].set_axis(dated.index) if covariate else None
    theirs = Theirs(dated, exog=exog, use_exact_diffuse=True, **given).fit(disp=False, maxiter=1000)
    columns = {"future": ["x"]} if covariate else {}
    ours = UnobservedComponents(season_length=1, **given)  # type: ignore[arg-type]
    ours.fit(frame if covariate else frame[["ds", "y"]], columns=columns)
    assert log_likelihood(ours) == pytest.approx(theirs.llf, abs=1e-2)
    assert theirs.llf == pytest.approx(-43.68 if covariate else -46.13, abs=0.01)
    if covariate:
        assert ours.parameters()["effect_x"][0] == pytest.approx(theirs.params["beta.x"], abs=1e-3)


def test_cycle_is_not_trapped_in_the_local_maximum_of_one_starting_point() -> None:
    frame = unemployment()[["ds", "y"]]
    model = UnobservedComponents(level="random walk", season_length=1, cycle=True).fit(frame)
    dated = frame["y"].set_axis(pd.DatetimeIndex(frame["ds"], freq="QS"))
    theirs = Theirs(dated, level="random walk", cycle=True, use_exact_diffuse=True).fit(disp=False, maxiter=1000)
    assert log_likelihood(model) > theirs.llf + 12


@pytest.mark.parametrize(
    ("freq", "expected"), [("YS", (2, 12)), ("QE", (6, 48)), ("MS", (18, 144)), ("6MS", (3, 24)), ("W-SUN", (78, 624))]
)
def test_cycle_period_is_one_and_a_half_to_twelve_years(freq: str, expected: tuple[float, float]) -> None:
    frame = monthly(1, 40).assign(ds=pd.date_range("1980-01-01", periods=40, freq=freq))
    assert UnobservedComponents(cycle=True)._cycle_period(Panel.from_frame(frame)) == expected


@pytest.mark.filterwarnings("ignore:.*lies at a bound of `cycle_period`")
def test_cycle_period_bounds_the_estimated_period() -> None:
    model = UnobservedComponents(level="random walk", season_length=1, cycle=True, cycle_period=(20, 30)).fit(monthly(1))
    assert 20 <= 2 * np.pi / model.parameters()["frequency.cycle"][0] <= 30


def ten_months(n: int) -> pd.DataFrame:
    """A cycle of ten months, shorter than business cycles, in the second of two series."""
    ds, y = pd.date_range("2000-01-01", periods=n, freq="MS"), 50 + np.random.default_rng(0).normal(size=n)
    cycle = 5 * np.sin(2 * np.pi * np.arange(n) / 10)
    business = 5 * np.sin(2 * np.pi * np.arange(n) / 25)
    parts = [pd.DataFrame({"unique_id": name, "ds": ds, "y": y + part}) for name, part in (("a", business), ("b", cycle))]
    return pd.concat(parts, ignore_index=True)


def test_period_at_a_bound_is_warned_of() -> None:
    given: dict[str, Any] = {"cycle": True, "season_length": 1, "level": "local level"}
    with pytest.warns(TrainingWarning, match=r"cycle lies at a bound .* series b .*Set cycle_period=\(shortest,") as caught:
        UnobservedComponents(horizon=10, **given).fit(ten_months(60))
    assert len(caught) == 1
    model = UnobservedComponents(horizon=10, **given, cycle_period=(5, 30)).fit(ten_months(60))  # without a warning
    assert 2 * np.pi / model.parameters()["frequency.cycle"].to_numpy() == pytest.approx([25, 10], rel=0.02)
    with pytest.warns(TrainingWarning, match=r"for series b \(the first: 11 time steps, bounds 11 and 13\)"):
        UnobservedComponents(horizon=10, **given, cycle_period=(11, 13)).fit(ten_months(60))
    flat = pd.concat([ten_months(60).query("unique_id == 'a'"), ten_months(60).query("unique_id == 'b'").assign(y=1.0)])
    UnobservedComponents(horizon=10, **given).fit(flat)


@pytest.mark.filterwarnings("ignore:.*lies at a bound of `cycle_period`")
def test_cycle_by_default_fits_into_the_history_of_each_series() -> None:
    frame = pd.concat([ten_months(200).query("unique_id == 'a'"), ten_months(60).query("unique_id == 'b'")])
    panel = Panel.from_frame(frame)
    assert UnobservedComponents(cycle=True)._cycle_periods(panel).tolist() == [[18, 144], [18, 60]]
    assert UnobservedComponents(cycle=True, cycle_period=(5, 80))._cycle_periods(panel).tolist() == [[5, 80], [5, 80]]
    with pytest.raises(DataError, match=r"cycle, 18 time steps, must be shorter than the history; series .* has 18"):
        UnobservedComponents(season_length=1, cycle=True).fit(monthly(1, 18))
    short = frame.query("unique_id == 'a'").head(12)
    model = UnobservedComponents(season_length=1, cycle=True, horizon=2).fit(frame)
    assert len(model.predict(frame=short)) == 2


@pytest.mark.filterwarnings("ignore:.*lies at a bound of `cycle_period`")
def test_cycle_period_is_validated() -> None:
    with pytest.raises(ParameterError, match="cycle_period"):
        UnobservedComponents(cycle=True, cycle_period=(1, 10))
    with pytest.raises(ParameterError, match="cycle_period"):
        UnobservedComponents(cycle=True, cycle_period=12)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"shortest < longest, got \(40, 20\)\. Set.*cycle_period=\(20, 40\)"):
        UnobservedComponents(cycle=True, cycle_period=(40, 20)).fit(monthly(1))
    with pytest.raises(ParameterError, match=r"Set, for example, cycle_period=\(2, 6\)"):
        UnobservedComponents(cycle=True, cycle_period=(3, 3)).fit(monthly(1))
    with pytest.raises(ParameterError, match=r"cycle_period.* has no effect with cycle=False"):
        UnobservedComponents(cycle_period=(20, 40)).fit(monthly(1))
    daily, integers = (monthly(1, 90).assign(ds=ds) for ds in (pd.date_range("2020-01-01", periods=90), np.arange(90)))
    for frame, time in ((daily, "frequency D"), (integers, "integer time")):
        with pytest.raises(ParameterError, match=rf"is not available for {time}\. Pass \(shortest, longest\) in time steps"):
            UnobservedComponents(season_length=1, cycle=True).fit(frame)
        UnobservedComponents(season_length=1, level="random walk", cycle=True, cycle_period=(10, 40)).fit(frame)


def test_far_from_zero_a_series_is_forecast_as_near_it() -> None:
    frame = monthly(1)
    near, far = (
        UnobservedComponents(horizon=6, season_length=1).fit(frame.assign(y=frame["y"] + level)) for level in (0.0, 1e12)
    )
    found, expected = (model.predict(level=80).iloc[:, 2:].to_numpy() for model in (far, near))
    np.testing.assert_allclose(found - 1e12, expected, atol=0.01)
    np.testing.assert_allclose(far.predict(level=80, frame=frame.assign(y=frame["y"] + 1e12)).iloc[:, 2:], found, rtol=1e-15)
    np.testing.assert_allclose(far.fitted_values().iloc[5:, -1] - 1e12, near.fitted_values().iloc[5:, -1], atol=0.05)


@pytest.mark.parametrize(("flag", "slope", "found"), [(0, 1.0, True), (1, 0.0, False), (2, 1e-5, True), (2, 0.1, False)])
def test_a_search_that_breaks_off_where_nothing_rises_has_found_it(flag: int, slope: float, found: bool) -> None:
    """Flag 2 of statsmodels' L-BFGS: numerical slopes are too coarse to go on, at a maximum or on a slope."""
    from deepforecast.models.statistical._component_fit import _converged

    assert _converged({"converged": flag == 0, "warnflag": flag, "gopt": np.array([0.0, -slope])}) is found


def test_a_series_that_statsmodels_cannot_take_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepforecast.models.statistical import _component_fit

    def refuse(self: Any, *_: Any) -> Any:
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr(_component_fit.FitTask, "_fit_or_filter", refuse)
    with pytest.raises(TrainingError, match=r"series s00, s01 \(LinAlgError: singular\)"):
        UnobservedComponents(horizon=3).fit(monthly(2))


@pytest.mark.parametrize("harmonics", [1, 2])
def test_waves_of_an_even_season(harmonics: int) -> None:
    model = UnobservedComponents(horizon=8, level="local level", trigonometric=[4], harmonics=harmonics).fit(monthly(1))
    parts = model.explain().pivot(index="ds", columns="component", values="value")
    assert set(parts.columns) == {"level", "trend", "waves"}
    assert (parts["trend"].abs() < 1e-9).all()


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_values_out_of_the_ordinary_are_scaled(factor: float) -> None:
    frame = monthly(1)
    plain, scaled = (
        UnobservedComponents(horizon=6, season_length=1).fit(frame.assign(y=frame["y"] * one)) for one in (1, factor)
    )
    ours, theirs = (model.predict(level=80).iloc[:, 2:].to_numpy() for model in (scaled, plain))
    np.testing.assert_allclose(ours / factor, theirs, rtol=1e-3)
    np.testing.assert_allclose(scaled.fitted_values().iloc[40:, -1] / factor, plain.fitted_values().iloc[40:, -1], rtol=1e-3)
    more = frame.tail(3).assign(ds=pd.date_range("2022-07-01", periods=3, freq="MS"))
    ours, theirs = scaled.update(more.assign(y=more["y"] * factor)).predict(), plain.update(more).predict()
    np.testing.assert_allclose(ours.iloc[:, -1] / factor, theirs.iloc[:, -1], rtol=1e-3)


def with_columns(**columns: Any) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts and regressors' part of a series that follows a column, given as these columns."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=100)
    frame = monthly(1, 100).assign(y=50 + np.cumsum(rng.normal(size=100)) / 2 + 3 * x + rng.normal(size=100))
    frame = frame.assign(**{name: one(x) for name, one in columns.items()})
    model = UnobservedComponents(horizon=6, level="local level", season_length=1)
    model.fit(frame.head(94), columns={"future": list(columns)}).update(frame.iloc[94:97])
    found = model.predict(3, future=frame.tail(3).drop(columns="y"), level=80)
    part = model.explain(3, future=frame.tail(3).drop(columns="y")).query("component == 'regressors'")["value"].to_numpy()
    return found.iloc[:, 2:].to_numpy(), part - part[0]


@pytest.mark.parametrize(
    "columns",
    [
        {"x": lambda x: 1e9 * x},
        {"x": lambda x: 1e-9 * x},
        {"x": lambda x: 1e9 + x},
        {"x": lambda x: 1e200 * x},
        {"x": lambda x: x, "again": lambda x: 1e6 * x},
        {"x": lambda x: x, "constant": lambda x: 0 * x + 5},
        {"x": lambda x: x, "nothing": lambda x: 0 * x},
    ],
    ids=["large", "small", "far", "huge", "twice", "constant", "nothing"],
)
def test_columns_of_any_size_and_place_have_the_effect_of_ordinary_ones(columns: dict[str, Any]) -> None:
    wanted, effects = with_columns(x=lambda x: x)
    found, part = with_columns(**columns)
    np.testing.assert_allclose(found, wanted, atol=1e-3)
    np.testing.assert_allclose(part, effects, atol=1e-3)


@pytest.mark.parametrize("level", [7.0, 1e200])
def test_a_constant_that_moves_is_a_random_walk(level: float) -> None:
    frame = monthly(1, 40)
    frame["y"] = level * np.append(np.ones(35), [1, 1.5, 0.5, 2, 3])
    model = UnobservedComponents(horizon=3).fit(frame.head(35)).update(frame.iloc[35:37]).update(frame.tail(3))
    found = model.predict(level=80)
    np.testing.assert_allclose(found["UnobservedComponents"], 3 * level)
    sigma = level * np.sqrt(np.mean(np.square([0.5, 1, 1.5, 1])))
    np.testing.assert_allclose(found.iloc[:, 4] - found.iloc[:, 2], 1.2815515655 * sigma * np.sqrt([1, 2, 3]), rtol=1e-9)
    pd.testing.assert_frame_equal(model.predict(level=80, frame=frame), found, rtol=1e-12)
    assert (model.simulate(50)["UnobservedComponents"] / level).std() > sigma / level
    assert model.fitted_values(frame)["UnobservedComponents"].tolist()[1:] == frame["y"].tolist()[:-1]


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_a_line_that_bends_gets_bands_too() -> None:
    frame = monthly(1, 40)
    frame["y"] = np.append(np.arange(35.0), [34, 37, 32, 39, 43])
    model = UnobservedComponents(horizon=3, season_length=1).fit(frame.head(35))
    before = model.predict(level=80)
    assert (before.iloc[:, 4] - before.iloc[:, 3] < 1e-3).all()
    found = model.update(frame.tail(5)).predict(level=80)
    assert (found.iloc[:, 4] - found.iloc[:, 3] > 2).all()


def test_workers_give_the_same_bits() -> None:
    import joblib

    frame, model = monthly(6), UnobservedComponents(horizon=6, season_length=1)
    alone = model.clone().fit(frame).predict(level=80)
    with joblib.parallel_config(n_jobs=2):
        pd.testing.assert_frame_equal(model.clone().fit(frame).predict(level=80), alone, check_exact=True)


def test_neighbours_that_never_vary_change_no_bit() -> None:
    """Matrices lie in memory by rows, beside those of a constant series as beside others."""
    rng, parts = np.random.default_rng(2), []
    for number in range(8):
        y = np.zeros(72) if number == 7 else 100 + np.cumsum(rng.normal(0, 3, 72))
        parts.append(pd.DataFrame({"unique_id": f"{number}", "ds": pd.date_range("2015-01-01", periods=72, freq="MS"), "y": y}))
    alone = UnobservedComponents(horizon=4).fit(pd.concat(parts[:7]))
    beside = UnobservedComponents(horizon=4).fit(pd.concat(parts))
    assert all(held.flags.c_contiguous for held in alone.state_.learned.by_series.values())
    found = beside.predict(level=80)
    pd.testing.assert_frame_equal(found[found["unique_id"] != "7"], alone.predict(level=80), check_exact=True)


def test_a_model_with_regressors_and_a_cycle_is_saved_and_loaded(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=83)
    frame = pd.DataFrame({"ds": days, "y": 10 + rng.normal(size=83), "x": rng.normal(size=83)})
    model = UnobservedComponents(horizon=3, season_length=1, cycle=True, cycle_period=(5, 20))
    model.fit(frame[:80], columns={"future": ["x"]}).save(tmp_path / "model")
    expected = model.predict(future=frame[80:][["ds", "x"]])
    assert load(tmp_path / "model").predict(future=frame[80:][["ds", "x"]]).equals(expected)
