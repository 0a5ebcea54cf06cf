"""After missing values an error of one step is larger: by how much, and that sigma is that of rows without a hole before."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deepforecast import CES, ETS, SES, AutoETS, HoltWinters, Theta
from deepforecast.errors import DataWarning
from deepforecast.models.statistical._complex_smoothing import FORMS, _linear_states
from deepforecast.models.statistical._missing_value_variance import deviation_after_missing, smoothing_states, variance_ratio

RATES = np.array([[0.4, 0.1, 0.2, 0.9], [0.3, 0.0, 0.0, 1.0]])


def plain(seen, rates, season):
    """The same by what each error adds to the states that are off, row by row."""
    alpha, beta, gamma, phi = rates
    off, found = np.zeros((len(seen), 2 + season)), []
    for row, there in enumerate(seen):
        place = 2 + row % season
        ahead = off[:, 0] + phi * off[:, 1] + off[:, place]
        found.append(np.sqrt(1.0 + np.sum(ahead**2)))
        off[:, 0], off[:, 1] = off[:, 0] + phi * off[:, 1], phi * off[:, 1]
        miss = -ahead if there else np.eye(len(seen))[row] * (row > np.argmax(seen))
        for state, rate in ((0, alpha), (1, beta), (place, gamma)):
            off[:, state] += rate * miss
    return found


def test_spreads_are_those_of_each_error_by_itself():
    rng = np.random.default_rng(0)
    seen = rng.random(75) > 0.3
    seen[[0, 1, 40]] = False
    bounds = np.array([0, 40, 75])
    for season in (1, 4):
        rates = RATES * [1, 1, season > 1, 1]
        wanted = [plain(seen[:40], rates[0], season), plain(seen[40:], rates[1], season)]
        found = deviation_after_missing(seen, bounds, smoothing_states(rates, season))
        np.testing.assert_allclose(found, np.concatenate(wanted), rtol=1e-12)
    whole = np.ones(75, dtype=bool)
    assert (deviation_after_missing(whole, bounds, smoothing_states(RATES, 4)) == 1.0).all()


@pytest.mark.parametrize("form", FORMS)
def test_complex_smoothing_is_off_by_what_its_shocks_do(form):
    from deepforecast.kernels import ces

    rng = np.random.default_rng(1)
    y = 30 + np.resize([0.0, 4.0, 7.0, 2.0], 60) + rng.normal(size=60)
    frame = pd.DataFrame({"ds": pd.date_range("2010-01-01", periods=60, freq="QS"), "y": y})
    learned = CES(seasonal=form).fit(frame).state_.learned
    response = ces.impulse_response(learned["form"], learned["parameters"], 4, 8)[0]
    seen = np.array([True] * 3 + [False] * 7 + [True])
    found = deviation_after_missing(seen, np.array([0, 11]), _linear_states(learned, 4))
    np.testing.assert_allclose(found[3:] ** 2, np.cumsum(response**2), rtol=1e-10)


def test_evened_errors():
    errors = np.array([3.0, np.nan, 4.0, 0.0, 0.0])
    found = variance_ratio(errors, errors / np.array([1.0, 1.0, 2.0, 1.0, 1.0]), np.array([0, 3, 5]))
    np.testing.assert_allclose(found, [np.sqrt(13 / 25), 1.0])


@pytest.mark.filterwarnings("ignore::deepforecast.errors.DataWarning")
@pytest.mark.parametrize(
    "model",
    [SES(), ETS(trend=None), AutoETS(season_length=1), Theta(season_length=1), CES()],
    ids=lambda one: type(one).__name__,
)
def test_bands_are_no_wider_for_holes(model):
    """Of random walks with steps of 1, three values in ten missing: an 80 % band one step ahead is 2 x 1.2816 wide."""
    rng, parts = np.random.default_rng(3), []
    for number in range(60):
        y = 100 + np.cumsum(rng.normal(size=160))
        y[1:-1] = np.where(rng.random(158) < 0.3, np.nan, y[1:-1])
        parts.append(pd.DataFrame({"unique_id": f"{number:02}", "ds": pd.date_range("2020-01-01", periods=160), "y": y}))
    found = model.fit(pd.concat(parts)).predict(1, level=80)
    width = np.mean(found[f"{model.name}-hi-80"] - found[f"{model.name}-lo-80"])
    assert width == pytest.approx(2 * 1.2816, rel=0.05)


def test_a_season_with_holes_is_as_wide_as_without():
    rng, parts = np.random.default_rng(4), {True: [], False: []}
    for number in range(30):
        y = 50 + np.resize(rng.normal(0, 5, 4), 120) + 0.5 * np.cumsum(rng.normal(size=120)) + rng.normal(size=120)
        for holed, into in parts.items():
            held = np.where(rng.random(120) < 0.25 * holed, np.nan, y)
            ds = pd.date_range("1990", periods=120, freq="QS")
            into.append(pd.DataFrame({"unique_id": f"{number:02}", "ds": ds, "y": held}))
    whole = HoltWinters().fit(pd.concat(parts[False])).parameters()["sigma"].mean()
    with pytest.warns(DataWarning):
        holed = HoltWinters().fit(pd.concat(parts[True])).parameters()["sigma"].mean()
    assert holed == pytest.approx(whole, rel=0.05)
