"""The optimum of every form: its likelihood by a plain loop, and nothing around it that scipy finds is more likely."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from deepforecast.kernels.ets import estimation, optimization
from deepforecast.kernels.ets.estimation import Settings, fit
from deepforecast.kernels.ets.forms import Form
from tests.kernels.ets_plain import log_likelihood

FORMS = [Form(*one) for one in product((0, 1), (0, 1, 2), (0, 1), (0, 1, 2)) if not (one[2] and not one[1])]
SEASON, ROWS = 4, 60
SETTINGS = Settings(bounds="usual", tolerance=1e-9, thorough=True)


def series(missing=False):
    """A level that wanders, a slope, a season, growing noise; two covariates with effects 2 and -1."""
    random = np.random.default_rng(5)
    time = np.arange(ROWS)
    design = np.column_stack([random.normal(size=ROWS), np.sin(time / 3.0)])
    level = 40 + 0.4 * time + np.cumsum(random.normal(size=ROWS))
    y = level * (1 + 0.2 * np.sin(2 * np.pi * time / SEASON)) * (1 + 0.03 * random.normal(size=ROWS)) + design @ [2.0, -1.0]
    if missing:
        y[[10, 11, 30]] = np.nan
    return y, design


def unpacked(point, form, coefficients):
    """Rates, states and coefficients from coordinates of their own."""
    values = list(point)
    alpha = values.pop(0)
    beta = values.pop(0) * alpha if form.trend else 0.0
    gamma = values.pop(0) * (1 - alpha) if form.season else 0.0
    phi = values.pop(0) if form.damped else 1.0
    level = values.pop(0)
    slope = values.pop(0) if form.trend else 0.0
    factors = [0.0] * SEASON
    if form.season:
        free = [values.pop(0) for _ in range(SEASON - 1)]
        factors = [*free, (SEASON if form.season == 2 else 0) - sum(free)]
    return (alpha, beta, gamma, phi), np.array([level, slope, *factors]), np.array(values[:coefficients])


def packed(rates, states, coefficients, form):
    alpha, beta, gamma, phi = rates
    found = [alpha]
    found += [beta / alpha] if form.trend else []
    found += [gamma / (1 - alpha)] if form.season else []
    found += [phi] if form.damped else []
    found += [states[0]] + ([states[1]] if form.trend else []) + (list(states[2:-1]) if form.season else [])
    return np.array([*found, *coefficients])


@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
@pytest.mark.parametrize("regressors", [0, 2], ids=["alone", "regressors"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_no_point_nearby_is_more_likely(form, regressors, missing):
    y, design = series(missing)
    design = design[:, :regressors]
    found = fit(y, np.array([0, ROWS]), SEASON, [form], design=design, settings=SETTINGS)
    rates, states, effects = found.rates[0, 0], found.states[0, 0], found.coefficients[0, 0]
    mine = found.log_likelihood[0, 0]
    np.testing.assert_allclose(mine, log_likelihood(y, form, rates, states, design @ effects), rtol=1e-9)

    def loss(point):
        value = -log_likelihood(y, form, *(lambda r, s, b: (r, s, design @ b))(*unpacked(point, form, regressors)))
        return value if np.isfinite(value) else 1e9

    start = packed(rates, states, effects, form)
    low, high = 1e-4, 1 - 1e-4
    names = [(low, high)] + [(1e-8, 1.0)] * (bool(form.trend) + bool(form.season)) + [(0.8, 0.98)] * form.damped
    bounds = names + [(None, None)] * (len(start) - len(names))
    peer = minimize(loss, start, method="L-BFGS-B", bounds=bounds)
    assert mine >= -peer.fun - 1e-4


def test_a_form_is_no_less_likely_than_the_smaller_ones_in_it():
    y, _ = series()
    wanted = [Form(e, t, d, s) for e, t, d, s in product((0, 1), (0, 1), (0,), (0, 1))]
    found = dict(zip(wanted, fit(y, np.array([0, ROWS]), SEASON, wanted, settings=SETTINGS).log_likelihood[0], strict=True))
    for form in wanted:
        assert found[form] >= found[form._replace(trend=0)] - 1e-3


def test_values_that_are_not_positive_have_no_form_that_multiplies():
    y, _ = series()
    found = fit(y - y.mean(), np.array([0, ROWS]), SEASON, FORMS, settings=SETTINGS)
    lost = np.array([form.is_multiplicative for form in FORMS])
    assert np.isneginf(found.log_likelihood[0, lost]).all()
    assert np.isfinite(found.log_likelihood[0, ~lost]).all()


def monthly_electricity(seed):
    """A long trend that bends and a season that grows with the level, as of US electricity."""
    random, time = np.random.default_rng(seed), np.arange(456)
    level = 160 * np.exp(0.004 * time - 3e-6 * time**2 + np.cumsum(random.normal(0, 0.006, len(time))))
    summer = np.cos(2 * np.pi * (time - 7) / 12) + 0.6 * np.cos(4 * np.pi * (time - 1) / 12)
    return level * (1 + (0.04 + 1e-4 * time) * summer) * (1 + random.normal(0, 0.015, len(time)))


def test_choice_of_forms_is_as_likely_as_each_form_alone():
    forms = [Form(0, t, d, s) for t, d in ((0, 0), (1, 0), (1, 1)) for s in (0, 1)]
    forms += [Form(1, t, d, s) for t, d in ((0, 0), (1, 0), (1, 1)) for s in (0, 1, 2)]
    y = np.concatenate([monthly_electricity(seed) for seed in range(6)])
    indptr, penalties = np.arange(7) * 456, np.zeros((6, len(forms)))
    chosen = fit(y, indptr, 12, forms, settings=Settings(penalties=penalties)).log_likelihood.max(axis=1)
    thorough = Settings(thorough=True, tolerance=1e-9)
    alone = [fit(y, indptr, 12, [form], settings=thorough).log_likelihood for form in forms]
    assert (chosen > np.max(alone, axis=0)[:, 0] - 1.0).all()


def wandering(seed):
    """A monthly series of a random ETS(M,Ad,M): likelihoods with a maximum for a fixed and for a changing season or trend."""
    random = np.random.default_rng(seed)
    n = int(random.integers(60, 310))
    random.integers(0, 4)
    alpha, share = random.choice([0.05, 0.3, 0.7, 0.95]), [0, 0.1, 0.9]
    gamma, beta, phi = random.choice(share) * (1 - alpha), random.choice(share) * alpha, random.choice([0.8, 0.95])
    errors = random.normal(0, random.choice([0.02, 0.05, 0.1]), n)
    level, slope, y = 100.0, random.normal(0, 0.5), np.empty(n)
    season = random.choice([0.05, 0.15, 0.3]) * random.normal(size=12)
    season -= season.mean()
    for t in range(n):
        base, factor = level + phi * slope, 1 + season[t % 12]
        y[t] = max(base * factor * (1 + errors[t]), 1.0)
        base = max(base, 5.0)
        level, slope = max(base * (1 + alpha * errors[t]), 5.0), phi * slope + beta * base * errors[t]
        season[t % 12] += gamma * factor * errors[t]
    return y


@pytest.mark.parametrize("seed", [23, 140, 384, 397])
def test_choice_of_forms_finds_changing_and_fixed_components(seed):
    forms = [Form(0, t, d, s) for t, d in ((0, 0), (1, 0), (1, 1)) for s in (0, 1)]
    forms += [Form(1, t, d, s) for t, d in ((0, 0), (1, 0), (1, 1)) for s in (0, 1, 2)]
    y = wandering(seed)
    indptr, thorough = np.array([0, len(y)]), Settings(thorough=True, tolerance=1e-9)
    chosen = fit(y, indptr, 12, forms, settings=Settings(penalties=np.zeros((1, len(forms))))).log_likelihood.max()
    assert chosen > max(fit(y, indptr, 12, [form], settings=thorough).log_likelihood.item() for form in forms) - 0.5


def test_a_call_of_the_kernel_does_limited_work(monkeypatch):
    calls = []

    def counted(*arguments):
        calls.append(optimization.fit_group(*arguments))

    monkeypatch.setattr(estimation, "fit_group", counted)
    size = optimization.STEPS_PER_CALL // 4
    y = np.cumsum(np.random.default_rng(0).normal(size=size))
    found = fit(y, np.array([0, size]), 1, [Form(0, 0, 0, 0)])
    assert found.evaluations.sum() > 4  # else one call may do it all
    assert len(calls) >= found.evaluations.sum() * size / (optimization.STEPS_PER_CALL + size)
