"""Exponential smoothing of a series without errors: bands without width as long as it goes on so, and no longer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deepforecast import ETS, SES, AutoETS, Holt, HoltWinters

MOVES = np.array([0.0, 3.0, 2.0, 5.0, 4.0])
MODELS = [
    SES(horizon=3),
    Holt(horizon=3, damped=True),
    HoltWinters(horizon=3, season_length=4),
    AutoETS(horizon=3, season_length=4),
    ETS(horizon=3, error="multiplicative", trend="multiplicative"),
    ETS(horizon=3, error="multiplicative", seasonal="multiplicative", season_length=4),
    ETS(horizon=3, box_cox=0),
]
by_name = pytest.mark.parametrize("model", MODELS, ids=repr)


def of(y, start="2020-01-01", name="a"):
    return pd.DataFrame({"unique_id": name, "ds": pd.date_range(start, periods=len(y), freq="D"), "y": np.asarray(y, float)})


def widths(found, name):
    return (found[f"{name}-hi-80"] - found[f"{name}-lo-80"]).to_numpy()


@by_name
@pytest.mark.parametrize("level", [7.0, 1e-9, 1e150])
@pytest.mark.filterwarnings("ignore:.* lie far outside the history")
def test_a_constant_that_moves_gets_bands_from_its_errors_since(model, level):
    old, new = of(np.full(30, level)), of(level * (1 + MOVES), "2020-01-31")
    whole, fitted = pd.concat([old, new]), model.clone().fit(old)
    assert (widths(fitted.predict(level=80), model.name) == 0).all()
    fitted.update(new.head(1))
    assert (widths(fitted.predict(level=80), model.name) == 0).all()  # so far it stands still
    found = fitted.update(new.iloc[1:3]).update(new.tail(2)).predict(level=80)
    errors = (whole["y"] - fitted.fitted_values(whole)[model.name].to_numpy()).to_numpy()[31:] / level
    assert (widths(found, model.name) > 0.5 * np.std(errors) * level).all()
    if fitted.state_.learned["form"][0, 0] == 0 and model.box_cox is None:
        np.testing.assert_allclose(fitted.state_.learned["sigma"][0] / level, np.sqrt(np.mean(errors**2)), rtol=1e-9)
    pd.testing.assert_frame_equal(fitted.predict(level=80, frame=whole), found, rtol=1e-9)


@by_name
def test_a_series_with_errors_keeps_its_sigma_beside_one_without(model):
    noisy = np.random.default_rng(0).normal(10, 1, 30)
    fitted = model.clone().fit(pd.concat([of(np.full(30, 7.0)), of(noisy, name="b")]))
    before = fitted.state_.learned["sigma"].copy()
    fitted.update(pd.concat([of([9.0, 1.0], "2020-01-31"), of([90.0, 1.0], "2020-01-31", "b")]))
    after = fitted.state_.learned["sigma"]
    assert (before[0], after[1]) == (0, before[1])
    assert after[0] > 0


@pytest.mark.parametrize("model", [Holt(horizon=3), AutoETS(horizon=3, season_length=4)], ids=repr)
def test_a_line_that_bends_gets_bands_too(model):
    line = np.arange(1.0, 31.0)
    fitted = model.clone().fit(of(line))
    assert (widths(fitted.predict(level=80), model.name) == 0).all()
    fitted.update(of(30 + MOVES, "2020-01-31"))
    assert (widths(fitted.predict(level=80), model.name) > 1).all()


@by_name
def test_another_constant_has_no_bands_either(model):
    found = model.clone().fit(of(np.full(30, 7.0))).predict(level=80, frame=of(np.full(12, 1e6 / 3), "2021-05-01"))
    np.testing.assert_allclose(found[model.name], 1e6 / 3, rtol=1e-9)
    assert (widths(found, model.name) <= 1e-6).all()
