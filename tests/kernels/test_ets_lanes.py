"""A series is fitted with the same bits whatever the other series of the panel and their order."""

from __future__ import annotations

from itertools import product

import numpy as np

from deepforecast.kernels.ets.estimation import Settings, fit
from deepforecast.kernels.ets.forms import Form

FORMS = [Form(e, t, d, s) for e, t, d, s in product((0, 1), (0, 1, 2), (0, 1), (0, 1, 2)) if d <= t]
SEASON = 4


def made(number, seed=0):
    random = np.random.default_rng(seed)
    found = []
    for rows in random.integers(14, 90, number):
        season = 1 + 0.2 * np.sin(np.arange(rows) * np.pi / 2)
        found.append(50 * season * np.exp(np.cumsum(random.normal(0, 0.05, rows))))
    return found


def fitted(series, forms=FORMS, **settings):
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in series])])
    return fit(np.concatenate(series), indptr, SEASON, forms, settings=Settings(**settings))


def test_alone_and_among_others_the_bits_are_the_same():
    series = made(37)
    together = fitted(series)
    order = np.random.default_rng(1).permutation(37)
    shuffled = fitted([series[one] for one in order])
    for number in (0, 17, 36):
        alone, place = fitted([series[number]]), int(np.flatnonzero(order == number)[0])
        for name in ("rates", "states", "log_likelihood"):
            np.testing.assert_array_equal(getattr(together, name)[number], getattr(alone, name)[0])
            np.testing.assert_array_equal(getattr(together, name)[number], getattr(shuffled, name)[place])


def test_a_much_longer_series_beside_it_changes_nothing():
    short, long = made(1)[0], np.concatenate(made(40, seed=2))
    for name in ("rates", "states", "log_likelihood"):
        np.testing.assert_array_equal(getattr(fitted([short, long]), name)[0], getattr(fitted([short]), name)[0])


def test_the_cost_grows_with_the_number_of_series_only():
    series = made(64)
    few, many = fitted(series[:32]), fitted(series)
    np.testing.assert_array_equal(few.evaluations, many.evaluations[:32])
    assert np.nanmax(many.evaluations) < 600


def test_scale_and_shift_are_followed():
    series = made(5)
    forms = [Form(0, 1, 0, 0), Form(0, 1, 1, 1)]
    plain = fitted(series, forms, tolerance=1e-9)
    scaled = fitted([3e-7 * one for one in series], forms, tolerance=1e-9)
    shifted = fitted([one - 1e4 for one in series], forms, tolerance=1e-9)
    np.testing.assert_allclose(scaled.states, 3e-7 * plain.states, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(shifted.states[..., 1:], plain.states[..., 1:], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(shifted.log_likelihood, plain.log_likelihood, atol=1e-6)
