"""Complex exponential smoothing: beside R's smooth and statsforecast, its choice, short series and histories."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deepforecast import CES, AutoCES, datasets
from deepforecast.errors import DataError, DataWarning, ParameterError
from deepforecast.models.statistical._complex_smoothing import FORMS

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "theta_ces.json").read_text())


def passengers():
    return datasets.load("air_passengers")


def of_values(y, freq="MS", start="2000-01-01"):
    return pd.DataFrame({"unique_id": "s0", "ds": pd.date_range(start, periods=len(y), freq=freq), "y": np.asarray(y, float)})


def squares(model):
    learned = model.state_.learned
    return float(np.sum((learned.history.y - model._fitted(learned, learned.history)) ** 2))


def aicc(form, total, count):
    number = {"none": 3, "simple": 3, "partial": 4, "full": 5}[form]
    return count * np.log(total) + 2 * number + 2 * number * (number + 1) / (count - number - 1)


@pytest.mark.parametrize("form", FORMS)
def test_aicc_is_no_higher_than_statsforecasts(form):
    model = CES(seasonal=form).fit(passengers())
    assert aicc(form, squares(model), 144) <= GOLDEN["ces_statsforecast"][form] + 1e-6


def test_likelihood_is_no_lower_than_rs():
    model = CES(seasonal="partial").fit(passengers().head(132))
    assert -66 * (np.log(2 * np.pi * squares(model) / 132) + 1) >= GOLDEN["ces_vignette"]["loglik"]


def test_the_simple_form_finds_rs_parameters_and_forecasts():
    known = GOLDEN["ces_r"]["simple"]
    model = CES(horizon=13, seasonal="simple").fit(passengers())
    np.testing.assert_allclose(model.state_.learned["parameters"][0], known["parameters"], atol=2e-3)
    np.testing.assert_allclose(model.predict()["CES"], known["forecast"], rtol=1e-3)


def test_the_form_is_that_of_the_least_criterion():
    rng = np.random.default_rng(4)
    for number in range(6):
        y = 50 + np.cumsum(rng.normal(size=72)) + number * np.tile(rng.normal(size=4), 18)
        chosen = AutoCES(horizon=8, season_length=4).fit(of_values(y))
        fits = {
            form: CES(horizon=8, seasonal=form, season_length="auto" if form == "none" else 4).fit(of_values(y))
            for form in FORMS
        }
        scores = [aicc(form, squares(fit), 72) for form, fit in fits.items()]
        best = FORMS[int(np.argmin(scores))]
        assert FORMS[chosen.state_.learned["form"][0]] == best
        np.testing.assert_array_equal(chosen.predict()["AutoCES"], fits[best].predict()["CES"])


def test_bic_asks_more_of_parameters_than_aic():
    rng = np.random.default_rng(7)
    frames = [of_values(50 + rng.normal(size=60).cumsum() + np.tile(rng.normal(0, 0.5, 4), 15)) for _ in range(60)]
    frame = pd.concat([one.assign(unique_id=f"s{number:02d}") for number, one in enumerate(frames)])
    models = [AutoCES(season_length=4, criterion=criterion).fit(frame) for criterion in ("aic", "bic")]
    more, fewer = (np.array([2, 2, 3, 4])[model.state_.learned["form"]] for model in models)
    assert (fewer <= more).all()
    assert (fewer < more).any()


@pytest.mark.parametrize("form", FORMS)
def test_fitted_values_are_forecasts_of_the_next_row(form):
    frame = passengers()
    model = CES(horizon=1, seasonal=form).fit(frame)
    values = model.fitted_values()["CES"].to_numpy()
    for row in (24, 50, 143):
        assert values[row] == pytest.approx(model.predict(frame=frame.head(row))["CES"][0], rel=1e-12)


def test_short_series_have_no_season_or_are_refused():
    y = 10 + np.tile([1.0, 2.0, 3.0, 4.0], 2)
    with pytest.warns(DataWarning, match="AutoCES: season_length=4 requires at least 10 values per series; .*: s0"):
        found = AutoCES(horizon=4, season_length=4).fit(of_values(y[:7], "QS"))
    assert found.state_.learned["form"][0] == 0
    assert np.isfinite(found.predict()["AutoCES"]).all()
    with pytest.raises(DataError, match="s0"):
        CES(horizon=4, seasonal="full", season_length=4).fit(of_values(y[:7], "QS"))
    with pytest.raises(DataError, match="s0"):
        AutoCES(horizon=4, season_length=4).fit(of_values(y[:4], "QS"))
    with pytest.raises(ParameterError, match="season_length"):
        CES(horizon=4, seasonal="partial", season_length=1).fit(of_values(y, "QS"))


def test_a_season_without_noise_is_exact():
    y = np.tile([3.0, 8.0, 1.0, 5.0], 6)
    found = AutoCES(horizon=8, season_length=4).fit(of_values(y, "QS")).predict(level=95)
    np.testing.assert_allclose(found["AutoCES"], np.tile(y[:4], 2), rtol=1e-9)
    np.testing.assert_allclose(found["AutoCES-hi-95"] - found["AutoCES-lo-95"], 0, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_a_history_that_starts_elsewhere_is_begun_anew(form):
    frame = passengers()
    model = CES(horizon=6, seasonal=form).fit(frame)
    whole = model.predict()["CES"].to_numpy()
    np.testing.assert_array_equal(model.predict(frame=frame)["CES"].to_numpy(), whole)
    np.testing.assert_allclose(model.predict(frame=frame.tail(97))["CES"], whole, rtol=0.1)
    short = model.predict(frame=frame.tail(24))["CES"]
    np.testing.assert_allclose(short, whole, rtol=0.5)


@pytest.mark.filterwarnings("ignore:.* lie far outside the history")
def test_forecasts_far_ahead_are_finite():
    rng = np.random.default_rng(9)
    frame = pd.concat([of_values(y).assign(unique_id=f"s{n}") for n, y in enumerate(100 + rng.normal(size=(20, 60)).cumsum(1))])
    found = AutoCES(horizon=500, season_length=12).fit(frame).predict(level=90)
    assert np.isfinite(found.drop(columns=["unique_id", "ds"])).all().all()


def test_missing_values_are_stepped_over():
    frame = passengers()
    y = frame["y"].to_numpy(float).copy()
    y[[0, 40, 41, 90, 143]] = np.nan
    for form in FORMS:
        whole = CES(horizon=12, seasonal=form).fit(frame).predict()["CES"]
        with pytest.warns(UserWarning, match="missing"):
            found = CES(horizon=12, seasonal=form).fit(frame.assign(y=y)).predict()["CES"]
        np.testing.assert_allclose(found, whole, rtol=0.1)


@pytest.mark.slow
def test_coverage_of_random_walks_with_noise():
    rng = np.random.default_rng(1)
    shocks = rng.normal(size=(2000, 213))
    walks = 100 + np.cumsum(shocks[:, 1:] - 0.5 * shocks[:, :-1], axis=1)
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(2000), 200), "ds": np.tile(np.arange(200), 2000)})
    season = 10 * np.sin(np.arange(212) * np.pi / 6)
    for values, length in ((walks, 1), (walks + season, 12)):
        given = frame.assign(y=values[:, :200].reshape(-1))
        found = AutoCES(horizon=12, season_length=length).fit(given, freq=1).predict(level=[80, 95])
        for level, first, last in ((80, 2.9, 5.0), (95, 1.6, 5.0)):
            lower, upper = (found[f"AutoCES-{side}-{level}"].to_numpy().reshape(-1, 12) for side in ("lo", "hi"))
            inside = 100 * np.mean((values[:, 200:] >= lower) & (values[:, 200:] <= upper), axis=0)
            assert abs(inside[0] - level) < first
            assert abs(inside[11] - level) < last
