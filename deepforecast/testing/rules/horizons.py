"""Any horizon: shorter and longer than declared, and what no horizon can be."""

from __future__ import annotations

from typing import Any

from deepforecast.errors import ParameterError
from deepforecast.testing import worlds
from deepforecast.testing.check import Condition, rule
from deepforecast.testing.expect import column, expect, expect_close, expect_equal, expect_finite, refused
from deepforecast.testing.subject import Subject
from deepforecast.testing.worlds import HORIZON


def _not_sampled(subject: Subject) -> str | None:
    sampled = subject.capabilities.distribution == "samples"
    return "capabilities.distribution is samples: another horizon draws other paths" if sampled else None


not_sampled: Condition = _not_sampled


@rule()
def any_horizon_works(subject: Subject) -> None:
    """A horizon shorter or longer than declared gives that many rows a series, all finite."""
    model = subject.fitted()
    for steps in (1, HORIZON + 1, 60):
        found = model.predict(steps)
        expect(len(found) == steps * len(worlds.ids()), f"horizon {steps} gives {len(found)} rows for {worlds.ids()}")
        expect_finite(found, model.name, f"the forecast {steps} steps ahead")
        ends = found.groupby("unique_id")["ds"].max() - worlds.daily().groupby("unique_id")["ds"].max()
        expect((ends.dt.days == steps).all(), f"the last stamp of horizon {steps} is not {steps} days after the last one known")


@rule(not_sampled)
def a_shorter_horizon_is_the_beginning(subject: Subject) -> None:
    """The first steps of a longer forecast are the shorter forecast."""
    model = subject.fitted()
    spread = float(worlds.daily()["y"].std())
    for steps, whole, levels in (
        (1, HORIZON, subject.levels),
        (2, HORIZON, subject.levels),
        (HORIZON, 10, None),
        (7, 10, None),
    ):
        longest = model.predict(whole, level=levels)
        found, wanted = model.predict(steps, level=levels), longest[longest.groupby("unique_id").cumcount() < steps]
        for name in found.columns[2:]:
            ours, theirs = column(found, name), column(wanted, name)
            what = f"{name} of horizon {steps}, compared with horizon {whole},"
            if subject.capabilities.by_series:
                expect_equal(ours, theirs, what)
            else:
                expect_close(ours, theirs, subject.precision * spread, what)


@rule()
def bad_horizons_are_refused(subject: Subject) -> None:
    """A horizon is a whole number, at least 1, not a bool; none anywhere is an error that says so."""
    bad: tuple[Any, ...] = (0, -1, 2.5, "5", True)
    for horizon in bad:
        with refused(ParameterError, "horizon", when=f"constructed with horizon={horizon!r}"):
            subject.make(horizon=horizon)
        with refused(ParameterError, "horizon", when=f"asked to predict({horizon!r})"):
            subject.fitted().predict(horizon)
    with refused(ParameterError, "horizon", when="there is no horizon anywhere"):
        subject.make(**_without_horizons(subject)).fit(worlds.one()).predict()


def _without_horizons(subject: Subject) -> dict[str, Any]:
    model = subject.make()
    nested = {name: None for name in model.get_params() if name.endswith("__horizon")}
    return {name: getattr(model.clone().set_params(**nested), name) for name in {n.partition("__")[0] for n in nested}} | {
        "horizon": None
    }
