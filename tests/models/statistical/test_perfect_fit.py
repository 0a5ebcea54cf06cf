"""A series whose fit left nothing over has bands without width only as long as it goes on so."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from deepforecast import CES, AutoCES, AutoTheta, DynamicTheta, OptimizedTheta, Theta

MODELS = [model(horizon=3, season_length=1) for model in (Theta, OptimizedTheta, DynamicTheta, AutoTheta, CES, AutoCES)]
MOVES = np.array([0.0, 3.0, -2.0, 5.0, 4.0])
by_name = pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)


def of(y, start="2020-01-01", name="a"):
    stamps = pd.date_range(start, periods=len(y), freq="D")
    return pd.DataFrame({"unique_id": name, "ds": stamps, "y": np.asarray(y, float)})


def both(old, new):
    return of(old), of(new, "2020-01-31"), of(np.concatenate([old, new]))


def widths(found, name):
    return (found[f"{name}-hi-80"] - found[f"{name}-lo-80"]).to_numpy()


@by_name
@pytest.mark.parametrize("level", [7.0, -1e-9, 1e200])
def test_a_constant_that_moves_gets_bands_from_its_errors_since(model, level):
    old, new, whole = both(np.full(30, level), level + MOVES * abs(level))
    fitted = model.clone().fit(old)
    assert (widths(fitted.predict(level=80), model.name) == 0).all()
    fitted.update(new.head(1))
    found = fitted.predict(level=80)
    assert (found[model.name] == level).all()
    assert (widths(found, model.name) == 0).all()  # so far it stands still
    fitted.update(new.iloc[1:3]).update(new.tail(2))
    found = fitted.predict(level=80)
    errors = (whole["y"] - fitted.fitted_values(whole)[model.name]).to_numpy()[31:] / abs(level)
    sigma = fitted.state_.learned["deviation"][0] / abs(level)
    np.testing.assert_allclose(sigma, np.sqrt(np.mean(errors**2)), rtol=1e-12)
    assert sigma > 1
    assert found[model.name][0] > level + 2 * abs(level)  # the level has moved, too
    pd.testing.assert_frame_equal(fitted.predict(level=80, frame=whole), found, rtol=1e-12)


@by_name
def test_a_series_with_errors_keeps_its_sigma_beside_one_without(model):
    noisy = np.random.default_rng(0).normal(10, 1, 30)
    fitted = model.clone().fit(pd.concat([of(np.full(30, 7.0)), of(noisy, name="b")]))
    before = fitted.state_.learned["deviation"].copy()
    fitted.update(pd.concat([of([9.0, 1.0], "2020-01-31"), of([90.0, 1.0], "2020-01-31", "b")]))
    after = fitted.state_.learned["deviation"]
    assert (before[0], after[1]) == (0, before[1])
    assert after[0] > 0


def test_a_line_that_bends_gets_bands_too():
    old, new, whole = both(np.arange(30.0), 29 + MOVES)
    fitted = OptimizedTheta(horizon=3, season_length=1).fit(old)
    assert (widths(fitted.predict(level=80), "OptimizedTheta") == 0).all()
    found = fitted.update(new).predict(level=80)
    assert (widths(found, "OptimizedTheta") > 2).all()
    pd.testing.assert_frame_equal(fitted.predict(level=80, frame=whole), found, rtol=1e-12)


@by_name
def test_another_constant_has_no_bands_either(model):
    found = model.clone().fit(of(np.full(30, 7.0))).predict(level=80, frame=of(np.full(12, 1e6 / 3), "2021-05-01"))
    np.testing.assert_allclose(found[model.name], 1e6 / 3, rtol=1e-12)
    assert (widths(found, model.name) == 0).all()


SEASONAL = [CES(horizon=3, season_length=4, seasonal=form) for form in ("simple", "partial", "full")]
STEADY = [Theta(horizon=3, season_length=4, decomposition="multiplicative"), *SEASONAL, *MODELS]


def walks(model):
    y = 100 + np.cumsum(np.random.default_rng(3).normal(size=60))
    y += np.tile([3.0, -3.0, 1.0, -1.0], 15) * (model.season_length > 1)
    return of(y), of(y, name="b")


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
@pytest.mark.parametrize("model", STEADY, ids=lambda one: f"{one.name}-{getattr(one, 'season', '')}-{one.season_length}")
def test_bands_widen_over_missing_rows_at_the_end(model):
    one, other = walks(model)
    fitted = model.clone().fit(pd.concat([one, other]))
    ahead = fitted.predict(12, level=80)
    gap = of(np.full(9, np.nan), "2020-03-01")
    fitted.update(gap.head(4)).update(gap.tail(5))
    found = fitted.predict(3, level=80)
    of_a, of_b = (widths(found[found["unique_id"] == name], model.name) for name in "ab")
    wide = widths(ahead[ahead["unique_id"] == "a"], model.name)
    np.testing.assert_allclose(of_b, wide[:3], rtol=1e-9)  # who has all rows keeps its own
    if not model.name.endswith(("DynamicTheta", "AutoTheta")):  # whose line takes in forecasts
        np.testing.assert_allclose(of_a, wide[9:], rtol=1e-9)
    assert (of_a > of_b).all()
    whole = pd.concat([one, gap, other])
    pd.testing.assert_frame_equal(fitted.predict(3, level=80, frame=whole), found, rtol=1e-9)
    paths = fitted.simulate(4000, 3)
    spread = paths.groupby(["unique_id", "ds"])[model.name].std().to_numpy() * 2 * 1.2815515655446004
    np.testing.assert_allclose(spread, np.concatenate([of_a, of_b]), rtol=0.06)
    fitted.update(of([100.0], "2020-03-10"))
    assert fitted.state_.learned["age"].tolist() == [0, 0]


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
def test_bands_after_two_years_without_values_are_those_of_as_many_steps():
    y = np.cumsum(np.random.default_rng(0).normal(size=96))
    known = Theta(horizon=1, season_length=1, theta=1.0).fit(of(y))
    holed = of(np.append(y, np.full(24, np.nan)))
    fitted = Theta(horizon=1, season_length=1, theta=1.0).fit(holed)
    first, last = widths(known.predict(25, level=80), "Theta")[[0, -1]]
    assert last > 4 * first
    np.testing.assert_allclose(widths(fitted.predict(level=80), "Theta"), last, rtol=1e-6)
    np.testing.assert_allclose(widths(known.predict(1, level=80, frame=holed), "Theta"), last, rtol=1e-9)


def panel_with_one_old_series(series, missing):
    values = 50 + np.cumsum(np.random.default_rng(0).normal(size=(series, 30)), axis=1)
    parts = [of(y, name=f"s{number}") for number, y in enumerate(values)]
    parts[0] = of(np.concatenate([values[0], np.full(missing, np.nan)]), name="s0")
    return pd.concat(parts, ignore_index=True)


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
@by_name
def test_memory_follows_the_missing_values_of_each_series(model):
    fitted = model.clone().fit(panel_with_one_old_series(400, 2_000))
    tracemalloc.start()
    fitted.predict(level=80)
    fitted.simulate(2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6  # one array of all series and the longest run of missing values has 6.4e6


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
@by_name
def test_forecast_of_a_panel_with_an_old_series_equals_those_of_its_series(model):
    frame = panel_with_one_old_series(4, 50)
    together = model.clone().fit(frame).predict(level=80).set_index("unique_id")
    for name, part in frame.groupby("unique_id"):
        alone = model.clone().fit(part).predict(level=80).drop(columns="unique_id")
        pd.testing.assert_frame_equal(together.loc[name].reset_index(drop=True), alone)
