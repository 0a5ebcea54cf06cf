"""Nothing after a cutoff ever matters to a forecast made at it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np

from deepforecast.core.backtest import Fold, refit_every, rolling_folds
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.data.splits import BacktestPlan
from deepforecast.testing import worlds
from deepforecast.testing.check import able, rule
from deepforecast.testing.expect import expect, expect_equal, expect_same
from deepforecast.testing.subject import Subject
from deepforecast.testing.worlds import HORIZON

WINDOWS = 3
CHANGES: tuple[Callable[[Floats], Floats], ...] = (
    lambda y: -37 * y + 1e5,
    lambda y: np.random.default_rng(0).normal(size=len(y)),
    lambda y: np.full(len(y), 7.0),
)


@rule()
def values_after_a_cutoff_never_matter(subject: Subject) -> None:
    """Rolling forecasts up to a cutoff are equal to the bit whatever comes after it: other values, noise, a constant."""
    panel = Panel.from_frame(worlds.daily())
    _expect_blind(subject, panel, lambda y, after, change: panel.with_target(np.where(after, change(y), y)))


@rule()
def filling_never_looks_ahead(subject: Subject) -> None:
    """`missing="interpolate"` fills a gap before a cutoff from what lies before the cutoff only."""
    panel = Panel.from_frame(worlds.daily())
    holes = np.concatenate([end - HORIZON * np.arange(1, WINDOWS + 1) - 1 for end in panel.indptr[1:]])
    y = panel.y.copy()
    y[holes] = np.nan  # the last row before each cutoff
    holed = panel.with_target(y)
    _expect_blind(
        subject, holed, lambda y, after, change: holed.with_target(np.where(after, change(y), y)), missing="interpolate"
    )


@rule()
def cross_validation_never_looks_ahead(subject: Subject) -> None:
    """The forecasts of cross_validate at a cutoff are equal to the bit if the rows after its window are deleted."""
    from deepforecast.evaluation.backtesting import BacktestOptions
    from deepforecast.evaluation.cross_validation import cross_validate

    short, own_ends = worlds.split(HORIZON)[0], BacktestOptions(align="series")
    whole = cross_validate(subject.make(), worlds.daily(), n_windows=2, level=subject.levels, options=own_ends)
    wanted = cross_validate(subject.make(), short, n_windows=1, level=subject.levels, options=own_ends)
    first = whole[whole["cutoff"] == whole.groupby("unique_id")["cutoff"].transform("min")].reset_index(drop=True)
    expect_same(first, wanted, "cross-validation with the rows after the window deleted")
    actual = whole.merge(worlds.daily(), on=["unique_id", "ds"], how="left")
    expect((actual["y_x"] == actual["y_y"]).all(), "y of cross_validate is not that of the frame")
    expect((whole["cutoff"] < whole["ds"]).all(), "a cutoff is not before the rows forecast")


@rule(able("future"))
def covariates_past_the_horizon_never_matter(subject: Subject) -> None:
    """Rolling forecasts are equal to the bit whatever the covariates known ahead are beyond the steps forecast."""
    history, _, columns = worlds.world("price")
    panel = Panel.from_frame(history[history["unique_id"].isin(worlds.ids()[:2])], columns=columns)  # each goes its own way

    def changed(y: Floats, after: Floats, change: Callable[[Floats], Floats]) -> Panel:
        beyond = np.concatenate([np.zeros(HORIZON, dtype=bool), after[:-HORIZON]]) & after
        price = panel.covariates["price"]
        frame: Frame = panel.to_frame()
        frame["price"] = np.where(beyond, change(price.values), price.values)
        frame["y"] = np.where(after, change(y), y)
        return Panel.from_frame(frame, columns=columns)

    _expect_blind(subject, panel, changed)


def _expect_blind(subject: Subject, panel: Panel, changed: Callable[..., Panel], **parameters: str) -> None:
    """Each window stays as it is when what follows its cutoff is `changed`; so do those before it, where one fit serves all."""
    wanted = _folds(subject, panel, 0, WINDOWS, parameters)
    for number, change in enumerate(CHANGES):
        from_end = np.repeat(panel.indptr[1:], panel.lengths) - np.arange(len(panel.y))
        after = from_end <= HORIZON * (WINDOWS - number)
        first = number if subject.capabilities.by_series else 0
        found = _folds(subject, changed(panel.y, after, change), first, number + 1, parameters)
        for fold, before in zip(found, wanted[first:], strict=False):
            what = f"the forecast at cutoff {before.window.number + 1}, when values after cutoff {number + 1} are others,"
            expect_equal(fold.forecast.mean, before.forecast.mean, what)
            if subject.levels is not None:
                expect_equal(fold.forecast.quantiles([0.1, 0.9]), before.forecast.quantiles([0.1, 0.9]), f"bounds: {what}")


def _folds(subject: Subject, panel: Panel, first: int, end: int, parameters: dict[str, str]) -> list[Fold]:
    """The windows from `first` to before `end`."""
    every, plan = refit_every("auto", subject.capabilities.by_series), BacktestPlan(HORIZON, WINDOWS - first, HORIZON)
    return list(islice(rolling_folds(subject.make(**parameters), panel, plan, refit_interval=every), end - first))
