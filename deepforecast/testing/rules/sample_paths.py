"""Sample paths: shape, seed, and agreement with the prediction intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.errors import CapabilityError, ParameterError, format_list
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
    paths = model.simulate(4)
    forecast = model.predict()
    expected_columns = ["unique_id", "ds", "sample", model.name]
    expect(
        list(paths.columns) == expected_columns,
        f"simulate must return the columns {expected_columns}, got {list(paths.columns)}",
    )
    expect(
        len(paths) == 4 * len(forecast),
        f"simulate(4) must return {4 * len(forecast)} rows, 4 for each row of the forecast, got {len(paths)}",
    )
    order = [(series_id, sample) for series_id in fixtures.series_ids() for sample in range(4) for _ in range(HORIZON)]
    actual_order = list(zip(paths["unique_id"], paths["sample"], strict=True))
    expect(
        actual_order == order,
        "the rows of simulate must be sorted by series, sample and step, got the series and samples "
        f"{format_list(map(str, actual_order), max_shown=10)}",
    )
    for sample in range(4):
        rows = paths[paths["sample"] == sample].drop(columns="sample").reset_index(drop=True)
        expect_same(
            rows[["unique_id", "ds"]],
            forecast[["unique_id", "ds"]],
            f"sample {sample} must have the ids and timestamps of predict",
        )
    expect_finite(paths, model.name, "the sample paths")
    invalid: tuple[Any, ...] = (0, -1, 2.5, True)
    for samples in invalid:
        with expect_error(ParameterError, when=f"simulate({samples!r}) is called"):
            model.simulate(samples)


@rule(requires("simulates"))
def paths_are_seeded(subject: Subject) -> None:
    """The same seed gives the same paths, another seed other paths."""
    model = subject.fitted()
    first = model.simulate(5, seed=3)
    expect_same(model.simulate(5, seed=3), first, "a repeated simulate with the same seed must give the same paths")
    expect(
        not np.array_equal(column(model.simulate(5, seed=4), model.name), column(first, model.name)),
        "simulate with seed=3 and seed=4 must give different paths, got the same. Use `seed` in `_simulate`",
    )


@rule(requires("simulates", "by_series"))
def paths_do_not_depend_on_other_series(subject: Subject) -> None:
    """The paths of a series do not depend on the other series."""
    model = subject.fitted()
    panel_paths = model.simulate(5)
    for name in fixtures.series_ids():
        separate_paths = subject.fitted_on_series(name).simulate(5)
        expect_equal(
            column(separate_paths, model.name),
            column(panel_paths[panel_paths["unique_id"] == name], model.name),
            f"the paths of {name} fitted alone must equal those fitted with other series",
        )


@rule(requires("simulates"))
def paths_agree_with_the_intervals(subject: Subject) -> None:
    """The share of paths inside an interval matches its level, and half of the paths are above the median.

    With discrete values, paths may lie exactly on a bound: the nominal share is then between the share without and with these.
    """
    model = subject.fitted()
    if model.fitted_state().calibration is not None or subject.capabilities.distribution is None:
        return  # conformal intervals come from past errors, not from the paths
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
        region = "above the median" if probability == 0.5 else "inside their interval"
        expect(
            deviation < 5 * standard_error,
            f"a share of {probability:.2f} of the paths must be {region} at each step, up to {5 * standard_error:.3f}; the "
            f"largest deviation is {deviation:.3f}. Compare `_simulate` with the distribution of `_forecast`",
        )


@rule(requires_no("simulates"))
def simulate_is_refused(subject: Subject) -> None:
    """`simulate` of a model without sample paths raises CapabilityError."""
    with expect_error(CapabilityError, subject.fitted().name, when="simulate is called"):
        subject.fitted().simulate(5)
