"""What a configuration is worth: its forecasts at rolling cutoffs of the training part, scored, and looked at on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deepforecast.core.backtest import Fold, forecast_window, refit_every, rolling_folds
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import STEPS_PER_FOLD, Monitor
from deepforecast.core.preprocessing import drop_unseen_categories
from deepforecast.core.state import State
from deepforecast.core.state_updates import move_state_to_panel
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.data.splits import BacktestPlan
from deepforecast.errors import CapabilityError, DataError, ParameterError, suppress_warnings
from deepforecast.evaluation.backtesting import seeded
from deepforecast.evaluation.warm_up import warm_up
from deepforecast.tuning.sampling import SHARES
from deepforecast.tuning.scoring import Scorer
from deepforecast.tuning.space import Configuration, Space

SECONDS = "seconds"  # the objective that is no metric
LOOKS = tuple(SHARES)  # places of a window at which what has been learned so far is scored
SEEN = 32  # series that are forecast at a look, the same each time: on all of many it would cost more than it saves
WINDOWS = 8  # at most, that a look at few series is spread over

Report = Callable[[float, int], bool]


class Pruned(Exception):
    """The trial was ended early: it is no good, or takes too long. Its message says which."""


@dataclass(frozen=True)
class Found:
    """What came of a configuration: a value of each objective, and what it took."""

    values: list[float]
    seconds: float


@dataclass(frozen=True, eq=False)
class Objective:
    """The panel (one for each model, of what it can use), the windows and the metrics: the same for all trials."""

    space: Space
    panels: Sequence[Panel]
    plan: BacktestPlan
    scorer: Scorer
    objectives: tuple[str, ...]
    refit: Any = "auto"
    n_seeds: int = 1
    by_window: bool = False  # reports are the score of each window alone, with its number, not of all so far

    @property
    def length(self) -> int:
        """Steps of a trial that is not ended early."""
        return STEPS_PER_FOLD * self.plan.n_windows * self.n_seeds

    def run(self, tried: Configuration, report: Report | None = None, until: float | None = None) -> Found:
        """Score a configuration; `report(value, step)` is told on the way and ends it by True. `until`: of `time.monotonic`."""
        model = self._ready(tried)
        started, totals = time.perf_counter(), list[list[float]]()
        for turn, one in enumerate(self._seeds(model)):
            watch = Watch(self, one, self.panels[tried.model], report, until, turn, [held[0] for held in totals])
            totals.append(watch.run())
        scores = [sum(held) / len(held) for held in zip(*totals, strict=True)]
        seconds = time.perf_counter() - started
        named = dict(zip(self.scorer.columns, scores, strict=True))
        return Found([seconds if name == SECONDS else named[name] for name in self.objectives], seconds)

    def warm_up(self, tried: Configuration) -> None:
        """Compile and import what a configuration needs, so that it is not part of a trial's time."""
        warm_up(self.space.built(tried), self.panels[tried.model], self.scorer.levels)

    def _ready(self, tried: Configuration) -> Forecaster:
        """The model of a configuration, with bands where a metric needs some and it has none of its own."""
        model = self.space.built(tried)
        if self.scorer.levels and model.capabilities.distribution is None and not model.calibrates:
            return model.clone(intervals="conformal")
        return model

    def _seeds(self, model: Forecaster) -> list[Forecaster]:
        """The model as often as it is to be tried."""
        begin = next((value for name, value in model.get_params().items() if name.rpartition("__")[2] == "seed"), None)
        if self.n_seeds == 1 or begin is None:
            return [model] * (1 if begin is None else self.n_seeds)
        return [seeded(model, begin + number) for number in range(self.n_seeds)]


@dataclass(eq=False)
class Watch:
    """One turn through all windows; `before`: scores of the turns before, with other seeds."""

    objective: Objective
    model: Forecaster
    panel: Panel
    report: Report | None
    until: float | None
    turn: int
    before: list[float]
    held: dict[str, Floats] = field(default_factory=dict)
    looked: int = 0
    ended: str = ""

    def run(self) -> list[float]:
        """The scores, or `Pruned`."""
        one, self.held = self.objective, self.objective.scorer.empty()
        self.monitor = Monitor(self._seen if self.report else None, deadline=self.until)
        every = refit_every(one.refit, self.model.capabilities.by_series)
        for fold in rolling_folds(self.model, self.panel, one.plan, refit_interval=every, monitor=self.monitor):
            if self.monitor.time_left() <= 0:
                raise Pruned("its time was up (trial_timeout).")
            one.scorer.fill(self.held, fold, self.model.point_kind)
            if self._told(self.held, fold.window.number, STEPS_PER_FOLD):
                raise Pruned(self.ended)
        if self.ended:
            raise Pruned(self.ended)
        return one.scorer.scores(self.held)

    def _seen(self, _: float, place: int) -> bool:
        """A fit says how far it is: at some places what it has learned is scored, where it can be seen."""
        number, within = divmod(place - 1, STEPS_PER_FOLD)
        if self.objective.by_window:
            return False
        passed = [look for look in LOOKS if self.looked < STEPS_PER_FOLD * number + look <= place]
        if not passed or within + 1 >= STEPS_PER_FOLD or self.ended:
            return False
        shown = self.monitor.snapshot()
        if shown is None:
            return False
        self.looked = STEPS_PER_FOLD * number + passed[-1]
        held = {name: values.copy() for name, values in self.held.items()}
        with suppress_warnings():
            for fold in self._peeked(number, *shown):
                self.objective.scorer.fill(held, fold, self.model.point_kind)
        return self._told(held, number, passed[-1])

    def _peeked(self, number: int, whole: Panel, learned: Any) -> Iterator[Fold]:
        """The forecasts of some series by what has been learned so far; of few series in several of the windows that the fit
        is for, as by one window of one series luck would decide."""
        plan, windows = self.objective.plan, self.objective.scorer.windows
        every = refit_every(self.objective.refit, self.model.capabilities.by_series)
        served = windows[number : number + every if every else None]
        first = served[0].series
        served = _spread(served, min(WINDOWS, max(SEEN // len(first), 1)))
        places = _spread(np.arange(len(first)), SEEN)
        kinds = {name: one.categories for name, one in {**whole.covariates, **whole.static}.items()}
        state = State(whole.series, learned, kinds, whole.static).take(places)
        worker = self.model.clone(horizon=plan.gap + plan.horizon)
        for window in served:
            there = np.flatnonzero(np.isin(window.series, first[places]))
            if not len(there):
                continue
            part = replace(window, series=window.series[there], begin=window.begin[there], cut=window.cut[there])
            known = np.searchsorted(first[places], part.series)
            at = state if window is served[0] else move_state_to_panel(worker, state, drop_unseen_categories(part.history(self.panel)), known)
            yield forecast_window(worker, self.panel, part, at, plan.gap, plan.horizon)

    def _told(self, held: dict[str, Floats], number: int, within: int) -> bool:
        """Report the score by the windows so far, those of other seeds included; whether this is the end."""
        if self.report is None:
            return False
        windows, scorer = self.objective.plan.n_windows, self.objective.scorer
        if self.objective.by_window:
            value, step = scorer.scores(scorer.only(held, number))[0], windows * self.turn + number
        else:
            weight, step = number + 1, STEPS_PER_FOLD * (windows * self.turn + number) + within
            value = (sum(self.before) * windows + scorer.scores(held)[0] * weight) / (len(self.before) * windows + weight)
        if self.report(value, step) and (within < STEPS_PER_FOLD or self._fits_after(number)):
            self.ended = "worse than others at this step."
        return bool(self.ended)

    def _fits_after(self, number: int) -> bool:
        """Whether there is anything left to be saved: forecasts alone cost little, and a whole score tells more."""
        every = refit_every(self.objective.refit, self.model.capabilities.by_series)
        later = range(number + 1, self.objective.plan.n_windows)
        return self.turn < self.objective.n_seeds - 1 or any(every and one % every == 0 for one in later)


def _spread(of: Any, count: int) -> Any:
    """So many, evenly spread, the first among them."""
    places = np.unique(np.linspace(0, len(of) - 1, min(count, len(of))).astype(np.int64))
    return of[places] if isinstance(of, np.ndarray) else [of[place] for place in places]


def reason(error: BaseException) -> str:
    """An error as a trial keeps it: its kind and its words, no longer than a storage takes."""
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception as another:  # a model may bring its own kinds of errors, broken ones too
        text = f"(its message cannot be read: {type(another).__name__})"
    whole = f"{kind}: {text}" if text and not isinstance(error, Pruned) else text or kind
    return whole if len(whole) <= 1500 else whole[:1499] + "…"


def refused(error: BaseException) -> bool:
    """Whether a configuration was refused: by a rule that it breaks, or for data that are too short for it."""
    return isinstance(error, ParameterError | CapabilityError | DataError)
