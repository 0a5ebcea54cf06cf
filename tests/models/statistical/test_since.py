"""A series whose fit left nothing over has bands without width only as long as it goes on so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deepforecast import CES, AutoCES, AutoTheta, DynamicTheta, OptimizedTheta, Theta

MODELS = [model(3, season_length=1) for model in (Theta, OptimizedTheta, DynamicTheta, AutoTheta, CES, AutoCES)]
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
    fitted = OptimizedTheta(3, season_length=1).fit(old)
    assert (widths(fitted.predict(level=80), "OptimizedTheta") == 0).all()
    found = fitted.update(new).predict(level=80)
    assert (widths(found, "OptimizedTheta") > 2).all()
    pd.testing.assert_frame_equal(fitted.predict(level=80, frame=whole), found, rtol=1e-12)


@by_name
def test_another_constant_has_no_bands_either(model):
    found = model.clone().fit(of(np.full(30, 7.0))).predict(level=80, frame=of(np.full(12, 1e6 / 3), "2021-05-01"))
    np.testing.assert_allclose(found[model.name], 1e6 / 3, rtol=1e-12)
    assert (widths(found, model.name) == 0).all()
