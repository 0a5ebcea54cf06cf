"""Sample paths: shaped as said, seeded, and spread as the intervals say."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.errors import CapabilityError, ParameterError
from deepforecast.testing import worlds
from deepforecast.testing.check import able, rule, unable
from deepforecast.testing.expect import column, expect, expect_equal, expect_finite, expect_same, refused
from deepforecast.testing.subject import Subject
from deepforecast.testing.worlds import HORIZON

SAMPLES = 1000


@rule(able("simulates"))
def paths_have_a_row_for_each_step(subject: Subject) -> None:
    """simulate gives a row for each series, sample and step, in this order, finite, with the times of the forecast."""
    model = subject.fitted()
    found, forecast = model.simulate(4), model.predict()
    expect(list(found.columns) == ["unique_id", "ds", "sample", model.name], f"the columns are {list(found.columns)}")
    expect(len(found) == 4 * len(forecast), f"4 samples of {len(forecast)} rows have {len(found)} rows")
    order = [(one, sample) for one in worlds.ids() for sample in range(4) for _ in range(HORIZON)]
    expect(list(zip(found["unique_id"], found["sample"], strict=True)) == order, "rows are not by series, sample and step")
    for sample in range(4):
        rows = found[found["sample"] == sample].drop(columns="sample").reset_index(drop=True)
        expect_same(rows[["unique_id", "ds"]], forecast[["unique_id", "ds"]], "ids and times of a sample")
    expect_finite(found, model.name, "the paths")
    bad: tuple[Any, ...] = (0, -1, 2.5, True)
    for samples in bad:
        with refused(ParameterError, when=f"simulate({samples!r}) is asked for"):
            model.simulate(samples)


@rule(able("simulates"))
def paths_are_seeded(subject: Subject) -> None:
    """The same seed gives the same paths, another gives others; more samples begin with the fewer."""
    model = subject.fitted()
    first = model.simulate(5, seed=3)
    expect_same(model.simulate(5, seed=3), first, "the paths of the same seed")
    expect(
        not np.array_equal(column(model.simulate(5, seed=4), model.name), column(first, model.name)),
        "seeds 3 and 4 give the same",
    )


@rule(able("simulates", "by_series"))
def paths_do_not_depend_on_other_series(subject: Subject) -> None:
    """A series has the same paths whatever series are simulated beside it."""
    model = subject.fitted()
    whole = model.simulate(5)
    for name in worlds.ids():
        alone = subject.alone(name).simulate(5)
        expect_equal(
            column(alone, model.name), column(whole[whole["unique_id"] == name], model.name), f"the paths of {name} alone"
        )


@rule(able("simulates"))
def paths_are_spread_as_the_intervals(subject: Subject) -> None:
    """Of many paths, as many lie inside an interval as its level says, half of them above the median.

    Where values are few, paths lie on a bound itself: the share without those is at most what it is to be, with them at least.
    """
    model = subject.fitted()
    if model.fitted_state().calibration is not None or subject.capabilities.distribution is None:
        return  # calibrated bands come from errors of the past, not from the paths
    steps = 2 * worlds.SEASON + 1
    bands = model.predict(steps, level=[50, 80], quantiles=[0.5])
    paths = column(model.simulate(SAMPLES, steps), model.name).reshape(-1, SAMPLES, steps).swapaxes(1, 2).reshape(-1, SAMPLES)
    median = column(bands, f"{model.name}-q-0.5")[:, None]
    shares = {0.5: (paths > median, paths >= median)}
    for level in (50, 80):
        lower, upper = (column(bands, f"{model.name}-{side}-{level}")[:, None] for side in ("lo", "hi"))
        shares[level / 100 + 1e-12] = ((paths > lower) & (paths < upper), (paths >= lower) & (paths <= upper))
    for wanted, (inside, or_on) in shares.items():
        error = np.sqrt(wanted * (1 - wanted) / SAMPLES)
        away = float(np.maximum(inside.mean(axis=1) - wanted, wanted - or_on.mean(axis=1)).max())
        what = "above the median" if wanted == 0.5 else "inside their interval"
        expect(away < 5 * error, f"a share of {wanted:.2f} of the paths is to be {what}; at a step it is off by {away:.3f}")


@rule(unable("simulates"))
def simulate_is_refused(subject: Subject) -> None:
    """A model that cannot draw paths says so."""
    with refused(CapabilityError, subject.fitted().name, when="simulate is asked for"):
        subject.fitted().simulate(5)
