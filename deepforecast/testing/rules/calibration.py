"""Calibration: the coverage of prediction intervals matches their level on data from the process that the model assumes."""

from __future__ import annotations

import numpy as np

from deepforecast.core.forecaster import Forecaster
from deepforecast.testing import fixtures, processes
from deepforecast.testing.assertions import column, expect
from deepforecast.testing.check import requires, requires_no, rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject

# The standard error of a coverage c is at most sqrt(c (1 - c) / N_SERIES), its value if the errors of all steps of a series
# are perfectly correlated: 2.0 points at 80 % and 1.1 points at 95 %. So every limit is over 3 standard errors from the level.
N_SERIES = 400
N_ROWS = 12 * fixtures.SEASON
LIMITS = {80: (72.0, 88.0), 95: (90.0, 98.5)}  # percent


@rule(requires("distribution"), slow="coverage_slow")
def intervals_cover_their_level(subject: Subject) -> None:
    """On data from its coverage process, 80 % intervals cover 72 to 88 % and 95 % intervals 90 to 98.5 % of the values."""
    _expect_coverage(subject.make(**subject.coverage_example))


@rule(requires_no("distribution"), slow="coverage_slow")
def conformal_intervals_cover_their_level(subject: Subject) -> None:
    """Conformal intervals of 80 % cover 72 to 88 %, and of 95 % cover 90 to 98.5 % of values of the coverage process."""
    _expect_coverage(subject.make(**subject.coverage_example, intervals="conformal"))


def coverage(model: Forecaster) -> dict[int, tuple[float, float]]:
    """Return, by level, the percentage of values inside the intervals and the percentage to be expected.

    The latter is the level, except where the smallest value is more frequent than the lower tail, e.g. the 0 of intermittent
    demand: then no value lies below the interval, and only half of the misses remain.
    """
    y = processes.draw(model, N_SERIES, N_ROWS + HORIZON)
    history = fixtures.concat(*(fixtures.series_from_values(row[:N_ROWS], f"s{number:03d}") for number, row in enumerate(y)))
    actual = y[:, N_ROWS:].reshape(-1)
    forecast = model.fit(history).predict(level=list(LIMITS))
    coverage_by_level = {}
    for level in LIMITS:
        lower, upper = (column(forecast, f"{model.name}-{side}-{level}") for side in ("lo", "hi"))
        tail = (100 - level) / 2
        nominal = level + tail if 100 * np.mean(actual == actual.min()) > tail else float(level)
        coverage_by_level[level] = 100 * float(np.mean((lower <= actual) & (actual <= upper))), nominal
    return coverage_by_level


def _expect_coverage(model: Forecaster) -> None:
    """Raise if intervals cover too few or too many simulated values; limits are scaled if the nominal
    level differs from the requested one."""
    for level, (covered, nominal) in coverage(model).items():
        misses = (100 - nominal) / (100 - level)
        lowest, highest = (100 - misses * (100 - limit) for limit in LIMITS[level])
        expect(
            lowest <= covered <= highest,
            f"the {level} % interval must cover {lowest:g} to {highest:g} % of the values of the process "
            f"{processes.process_name(model)}, got {covered:.1f} %. Check their width, or set `coverage_process` "
            "to the process that the model assumes",
        )
