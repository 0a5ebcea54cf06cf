"""Leakage: a forecast does not depend on any data after its cutoff."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np

from deepforecast.core.backtest import Fold, refit_every, rolling_folds
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.data.windows import BacktestPlan
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import expect, expect_equal, expect_same
from deepforecast.testing.check import requires, rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject

WINDOWS = 3
PERTURBATIONS: tuple[Callable[[Floats], Floats], ...] = (
    lambda y: -37 * y + 1e5,
    lambda y: np.random.default_rng(0).normal(size=len(y)),
    lambda y: np.full(len(y), 7.0),
)


@rule()
def values_after_a_cutoff_never_matter(subject: Subject) -> None:
    """Rolling forecasts are exactly the same for any values after the cutoff."""
    panel = Panel.from_frame(fixtures.daily_panel())
    _expect_no_leakage(subject, panel, lambda y, is_after, change: panel.with_target(np.where(is_after, change(y), y)))


@rule(shared=True)
def filling_never_looks_ahead(subject: Subject) -> None:
    """`missing="interpolate"` fills a gap before a cutoff from values before the cutoff only."""
    panel = Panel.from_frame(fixtures.daily_panel())
    missing_rows = np.concatenate([end - HORIZON * np.arange(1, WINDOWS + 1) - 1 for end in panel.indptr[1:]])
    y = panel.y.copy()
    y[missing_rows] = np.nan  # the last row before each cutoff
    panel_with_missing = panel.with_target(y)
    _expect_no_leakage(
        subject,
        panel_with_missing,
        lambda y, is_after, change: panel_with_missing.with_target(np.where(is_after, change(y), y)),
        missing="interpolate",
    )


@rule()
def cross_validation_never_looks_ahead(subject: Subject) -> None:
    """The forecasts of `cross_validate` are exactly the same without the rows after their window."""
    from deepforecast.evaluation.backtesting import BacktestOptions
    from deepforecast.evaluation.cross_validation import cross_validate

    shortened = fixtures.split(HORIZON)[0]
    options = BacktestOptions(align="series")
    forecasts = cross_validate(subject.make(), fixtures.daily_panel(), n_windows=2, level=subject.levels, options=options)
    expected = cross_validate(subject.make(), shortened, n_windows=1, level=subject.levels, options=options)
    first = forecasts[forecasts["cutoff"] == forecasts.groupby("unique_id")["cutoff"].transform("min")].reset_index(drop=True)
    expect_same(first, expected, "the first window of cross_validate must not depend on the rows after it")
    actual = forecasts.merge(fixtures.daily_panel(), on=["unique_id", "ds"], how="left")
    n_different = int((actual["y_x"] != actual["y_y"]).sum())
    expect(
        n_different == 0, f"y of cross_validate must be that of the frame, but differs in {n_different} of {len(actual)} rows"
    )
    n_late = int((~(forecasts["cutoff"] < forecasts["ds"])).sum())
    expect(n_late == 0, f"each cutoff must be before its forecast timestamps, but is not in {n_late} of {len(forecasts)} rows")


@rule(requires("future"))
def covariates_past_the_horizon_never_matter(subject: Subject) -> None:
    """Rolling forecasts are exactly the same for any future covariates beyond the horizon."""
    history, _, columns = fixtures.covariate_panel("price")  # two of its series suffice
    panel = Panel.from_frame(history[history["unique_id"].isin(fixtures.series_ids()[:2])], columns=columns)

    def perturb(y: Floats, is_after: Floats, change: Callable[[Floats], Floats]) -> Panel:
        """The panel with all values after the cutoff changed, of the covariate only those beyond the horizon."""
        is_beyond = np.concatenate([np.zeros(HORIZON, dtype=bool), is_after[:-HORIZON]]) & is_after
        price = panel.covariates["price"]
        frame: Frame = panel.to_frame()
        frame["price"] = np.where(is_beyond, change(price.values), price.values)
        frame["y"] = np.where(is_after, change(y), y)
        return Panel.from_frame(frame, columns=columns)

    _expect_no_leakage(subject, panel, perturb)


def _expect_no_leakage(subject: Subject, panel: Panel, perturb: Callable[..., Panel], **parameters: str) -> None:
    """Expect the forecast of each window to be the same if `perturb` changes the data after its cutoff.

    For a global model, which is fitted once for all windows, the earlier windows are compared as well.
    """
    expected_folds = _folds(subject, panel, 0, WINDOWS, parameters)
    for number, change in enumerate(PERTURBATIONS):
        from_end = np.repeat(panel.indptr[1:], panel.lengths) - np.arange(len(panel.y))
        is_after = from_end <= HORIZON * (WINDOWS - number)
        first = number if subject.capabilities.by_series else 0
        folds = _folds(subject, perturb(panel.y, is_after, change), first, number + 1, parameters)
        for fold, expected_fold in zip(folds, expected_folds[first:], strict=False):
            requirement = (
                f"at cutoff {expected_fold.window.number + 1}, {{}} must not depend on the data after cutoff {number + 1}"
            )
            expect_equal(fold.forecast.mean, expected_fold.forecast.mean, requirement.format("the forecast"))
            if subject.levels is not None:
                bounds, expected_bounds = (each.forecast.quantiles([0.1, 0.9]) for each in (fold, expected_fold))
                expect_equal(bounds, expected_bounds, requirement.format("the quantiles 0.1 and 0.9"))


def _folds(subject: Subject, panel: Panel, first: int, end: int, parameters: dict[str, str]) -> list[Fold]:
    """Return the rolling forecasts of the windows from `first` to `end` - 1."""
    refit_interval = refit_every("auto", subject.capabilities.by_series)
    plan = BacktestPlan(HORIZON, WINDOWS - first, HORIZON)
    return list(islice(rolling_folds(subject.make(**parameters), panel, plan, refit_interval=refit_interval), end - first))
