"""Several models on the same rolling windows: who is best, how sure that is, and what it costs."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deepforecast.core.forecast import checked_levels
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.preparing import usable
from deepforecast.core.rolling import refit_every
from deepforecast.data.columns import Columns
from deepforecast.data.cutoffs import Plan
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import TrainingError, quietly
from deepforecast.evaluation.backtesting import USUAL, Backtest, checked_models, planned, seeded
from deepforecast.evaluation.cross_validation import Rows, backtest, say_undeclared, side_by_side
from deepforecast.evaluation.leaderboard import Leaderboard, ranked
from deepforecast.evaluation.measure import measured

PILOT_SERIES = 20
WORTH_SAYING = 30.0  # seconds from which a run is announced


@dataclass(frozen=True)
class Run:
    """What one model did: forecast columns over the rows judged, or the error it ended with."""

    name: str
    columns: Mapping[str, Floats] = field(default_factory=dict)
    fit_seconds: float = float("nan")
    predict_seconds: float = float("nan")
    peak_mb: float | None = None
    unused: tuple[str, ...] = ()
    error: str = ""


def compare(
    models: Sequence[Forecaster],
    frame: Frame,
    *,
    horizon: int | None = None,
    n_windows: int = 3,
    level: Any = None,
    metrics: Sequence[Any] | None = None,
    refit: Any = "auto",
    freq: Any = None,
    columns: Columns | Mapping[str, Any] | None = None,
    static: Frame | None = None,
    options: Backtest = USUAL,
) -> Leaderboard:
    """Rank models by rolling cross-validation; the first metric decides (default: MASE, or MAE where no season is known).

    A model that fails is a row with its error, not the end of the run. A model that cannot use a declared covariate runs without it,
    and one without a distribution of its own gets conformal bands when `level` is asked for; both are shown in the board.

    >>> from deepforecast import Naive, SeasonalNaive, datasets
    >>> board = compare([Naive(), SeasonalNaive()], datasets.load("air_passengers"), horizon=12, n_windows=2)
    >>> board.table["model"].tolist()
    ['SeasonalNaive', 'Naive']
    """
    candidates = [seeded(model, options.seed) for model in checked_models(models, horizon)]
    panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static)
    say_undeclared(panel)
    plan = planned(candidates, panel, n_windows, None, options)
    levels = checked_levels(level)
    if levels:
        candidates = [_with_bands(model) for model in candidates]
    rows = Rows.of(panel, plan)
    estimate = _announced(candidates, panel, plan, refit, options)

    def work(number: int) -> Run:
        return run(candidates[number], panel, plan, refit, levels)

    runs = side_by_side(work, len(candidates), options)
    if all(one.error for one in runs):
        raise TrainingError(f"No model could be compared; the first, {runs[0].name}, failed with {runs[0].error}")
    for one in runs:
        rows.columns |= one.columns
    settings = {
        "horizon": plan.horizon, "n_windows": plan.n_windows, "freq": panel.calendar.freq, "series": len(panel), "refit": str(refit),
        "gap": plan.gap, "size": plan.size, "align": plan.align, "level": levels, "estimate_seconds": estimate,
    }  # fmt: skip
    return ranked(runs, rows.frame(panel), panel, frame, metrics, settings)


def run(model: Forecaster, panel: Panel, plan: Plan, refit: Any, levels: Sequence[float]) -> Run:
    """One model through all windows; whatever it raises becomes its row."""
    own, unused = usable(panel, model.capabilities)
    with measured() as cost:
        try:
            found = backtest(model, own, plan, refit, levels)
        except Exception as error:  # any model may fail in any way: its row says how, the others go on
            return Run(model.name, unused=tuple(unused), error=f"{type(error).__name__}: {error}")
    return Run(model.name, found.columns, found.fit_seconds, found.predict_seconds, cost.peak_mb, tuple(unused))


def _with_bands(model: Forecaster) -> Forecaster:
    return model if model.capabilities.distribution is not None else model.clone(intervals="conformal")


def _announced(models: Sequence[Forecaster], panel: Panel, plan: Plan, refit: Any, options: Backtest) -> float | None:
    """Seconds the run will take, by one window of a few series; said on stderr if long. None for panels too small to ask."""
    if len(panel) < 2 * PILOT_SERIES:
        return None
    some_series = panel.take(np.linspace(0, len(panel) - 1, PILOT_SERIES).astype(np.int64))
    one_window = replace(plan, n_windows=1)
    total = 0.0
    for model in models:
        every = refit_every(refit, model.capabilities.local)
        started = time.perf_counter()
        with quietly():  # the run itself will say it
            run(model, some_series, one_window, refit, [])
        fits = 1 if every == 0 else -(-plan.n_windows // every)
        total += (time.perf_counter() - started) * fits * (len(panel) / PILOT_SERIES if model.capabilities.local else 1)
    total /= max(1, options.workers)
    shown = options.progress if options.progress is not None else sys.stderr is not None and sys.stderr.isatty()
    if shown and total > WORTH_SAYING and sys.stderr is not None:
        minutes = f"{total / 60:.0f} min" if total > 90 else f"{total:.0f} s"
        sys.stderr.write(f"compare: {len(models)} models, {plan.n_windows} windows, {len(panel):,} series: about {minutes}\n")
    return total
