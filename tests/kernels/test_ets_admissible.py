"""The region in which old errors are forgotten, against the eigenvalues of the recursion itself."""

from __future__ import annotations

import numpy as np
import pytest

from deepforecast.kernels.ets.admissible_region import GROWTH_TOLERANCE, barrier_distance
from deepforecast.kernels.ets.estimation import Settings, fit
from deepforecast.kernels.ets.forms import Form


def largest(alpha, beta, gamma, phi, season):
    """The largest modulus of an eigenvalue of how states follow states when their errors are taken in (1 of a season apart)."""
    trended, seasonal = phi > 0, season > 1
    size = 1 + trended + season * seasonal
    step, look, gain = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    step[0, 0], look[0], gain[0] = 1.0, 1.0, alpha
    if trended:
        step[0, 1] = step[1, 1] = look[1] = phi
        gain[1] = beta
    if seasonal:
        first = 1 + trended
        step[first, size - 1] = look[size - 1] = 1.0
        step[np.arange(first + 1, size), np.arange(first, size - 1)] = 1.0
        gain[first] = gamma
    found = np.abs(np.linalg.eigvals(step - np.outer(gain, look)))
    return np.delete(found, np.argmin(np.abs(found - 1))).max() if seasonal else found.max()


@pytest.mark.parametrize(("trended", "season"), [(False, 1), (True, 1), (False, 4), (True, 4), (True, 7)])
def test_the_region_is_where_all_eigenvalues_are_inside(trended, season):
    random, inside = np.random.default_rng(season), 0
    for _ in range(400):
        alpha, beta = random.uniform(0, 2.2), random.uniform(-0.3, 1.5) if trended else 0.0
        gamma, phi = random.uniform(0, 1.5) if season > 1 else 0.0, random.choice([1.0, 0.9, 0.8]) if trended else 0.0
        modulus = largest(alpha, beta, gamma, phi, season)
        if abs(modulus - 1 - GROWTH_TOLERANCE) > 1e-6:
            found = np.isfinite(barrier_distance(alpha, beta, gamma, float(phi), season, np.zeros(season + 2)))
            assert found == (modulus < 1 + GROWTH_TOLERANCE)
            inside += found
    assert 20 < inside < 380


@pytest.mark.parametrize("bounds", ["both", "admissible"])
def test_fits_keep_inside(bounds):
    random = np.random.default_rng(0)
    series = [10 + np.cumsum(random.normal(size=60)) + np.tile([3.0, -1.0, 0.0, -2.0], 15) for _ in range(20)]
    forms = [Form(0, 1, 0, 1), Form(0, 1, 1, 0), Form(0, 0, 0, 1)]
    indptr = np.arange(21) * 60
    wide, usual = (fit(np.concatenate(series), indptr, 4, forms, settings=Settings(bounds=one)) for one in (bounds, "usual"))
    for rates, form in ((rates, form) for row in wide.rates for rates, form in zip(row, forms, strict=True)):
        phi = rates[3] if form.trend else 0.0
        assert np.isfinite(barrier_distance(*rates[:3], phi, 4 if form.season else 1, np.zeros(6)))
    if bounds == "admissible":  # the region holds the usual one but for a few points
        assert np.mean(wide.log_likelihood >= usual.log_likelihood - 0.05) > 0.9
        assert (wide.rates[..., 0] > 1).any()
