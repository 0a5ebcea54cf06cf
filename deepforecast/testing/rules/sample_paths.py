"""Sample paths: shaped as said, seeded, and spread as the intervals say."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.errors import CapabilityError, ParameterError
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import column, expect, expect_equal, expect_error, expect_finite, expect_same
from deepforecast.testing.check import requires, requires_no, rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject

SAMPLES = 1000


@rule(requires("simulates"))
def paths_have_a_row_for_each_step(subject: Subject) -> None:
    """`simulate` returns one finite row per series, sample and step, in this order, at the times of the forecast."""
    model = subject.fitted()
    paths, forecast = model.simulate(4), model.predict()
    expect(list(paths.columns) == ["unique_id", "ds", "sample", model.name], f"the columns are {list(paths.columns)}")
    expect(len(paths) == 4 * len(forecast), f"4 samples of {len(forecast)} rows have {len(paths)} rows")
    order = [(series_id, sample) for series_id in fixtures.series_ids() for sample in range(4) for _ in range(HORIZON)]
    expect(list(zip(paths["unique_id"], paths["sample"], strict=True)) == order, "rows are not by series, sample and step")
    for sample in range(4):
        rows = paths[paths["sample"] == sample].drop(columns="sample").reset_index(drop=True)
        expect_same(rows[["unique_id", "ds"]], forecast[["unique_id", "ds"]], "ids and times of a sample")
    expect_finite(paths, model.name, "the paths")
    bad: tuple[Any, ...] = (0, -1, 2.5, True)
    for samples in bad:
        with expect_error(ParameterError, when=f"simulate({samples!r}) is asked for"):
            model.simulate(samples)


@rule(requires("simulates"))
def paths_are_seeded(subject: Subject) -> None:
    """The same seed gives the same paths, another seed others, and more samples extend fewer."""
    model = subject.fitted()
    first = model.simulate(5, seed=3)
    expect_same(model.simulate(5, seed=3), first, "the paths of the same seed")
    expect(
        not np.array_equal(column(model.simulate(5, seed=4), model.name), column(first, model.name)),
        "seeds 3 and 4 give the same",
    )


@rule(requires("simulates", "by_series"))
def paths_do_not_depend_on_other_series(subject: Subject) -> None:
    """The paths of a series do not depend on the other series."""
    model = subject.fitted()
    panel_paths = model.simulate(5)
    for name in fixtures.series_ids():
        alone = subject.fitted_on_series(name).simulate(5)
        expect_equal(
            column(alone, model.name),
            column(panel_paths[panel_paths["unique_id"] == name], model.name),
            f"the paths of {name} alone",
        )


@rule(requires("simulates"))
def paths_agree_with_the_intervals(subject: Subject) -> None:
    """The share of paths inside an interval matches its level, and half of the paths are above the median.

    Where values are few, paths lie on a bound itself: the share without those is at most what it is to be, with them at least.
    """
    model = subject.fitted()
    if model.fitted_state().calibration is not None or subject.capabilities.distribution is None:
        return  # calibrated bands come from errors of the past, not from the paths
    steps = 2 * fixtures.SEASON + 1
    intervals = model.predict(steps, level=[50, 80], quantiles=[0.5])
    paths = column(model.simulate(SAMPLES, steps), model.name).reshape(-1, SAMPLES, steps).swapaxes(1, 2).reshape(-1, SAMPLES)
    median = column(intervals, f"{model.name}-q-0.5")[:, None]
    masks = {0.5: (paths > median, paths >= median)}
    for level in (50, 80):
        lower, upper = (column(intervals, f"{model.name}-{side}-{level}")[:, None] for side in ("lo", "hi"))
        masks[level / 100 + 1e-12] = ((paths > lower) & (paths < upper), (paths >= lower) & (paths <= upper))
    for probability, (inside, inside_or_on) in masks.items():
        standard_error = np.sqrt(probability * (1 - probability) / SAMPLES)
        deviation = float(np.maximum(inside.mean(axis=1) - probability, probability - inside_or_on.mean(axis=1)).max())
        label = "above the median" if probability == 0.5 else "inside their interval"
        expect(
            deviation < 5 * standard_error,
            f"a share of {probability:.2f} of the paths is to be {label}; at a step it is off by {deviation:.3f}",
        )


@rule(requires_no("simulates"))
def simulate_is_refused(subject: Subject) -> None:
    """`simulate` of a model without sample paths raises CapabilityError."""
    with expect_error(CapabilityError, subject.fitted().name, when="simulate is asked for"):
        subject.fitted().simulate(5)
