"""The objective of a search: the score of a configuration in rolling cross-validation."""

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
from deepforecast.data.windows import BacktestPlan
from deepforecast.errors import CapabilityError, DataError, ParameterError, suppress_warnings
from deepforecast.evaluation.backtesting import with_seed
from deepforecast.evaluation.warm_up import warm_up
from deepforecast.tuning.samplers import PRUNING_QUANTILES
from deepforecast.tuning.scorer import Scorer
from deepforecast.tuning.space import Configuration, Space

SECONDS = "seconds"  # objective of the run time
REPORT_POINTS = tuple(PRUNING_QUANTILES)  # steps within a fit at which a partially trained model is scored
MAX_REPORT_SERIES = 32  # series forecast for a report, always the same ones, to limit its cost
MAX_REPORT_WINDOWS = 8  # windows forecast for a report if there are few series

Report = Callable[[float, int], bool]


class PrunedError(Exception):
    """The trial was pruned, because of its score or its time limit."""


@dataclass(frozen=True)
class TrialScore:
    """Values of all objectives of a configuration, and its run time."""

    values: list[float]
    seconds: float


@dataclass(frozen=True, eq=False)
class Objective:
    """Scores configurations on fixed windows; `panels` has one panel per model with the covariates
    it can use."""

    space: Space
    panels: Sequence[Panel]
    plan: BacktestPlan
    scorer: Scorer
    objectives: tuple[str, ...]
    refit: Any = "auto"
    n_seeds: int = 1
    by_window: bool = False  # report the score of each window with its number, instead of all windows so far

    @property
    def n_steps(self) -> int:
        """Number of steps of a complete trial."""
        return STEPS_PER_FOLD * self.plan.n_windows * self.n_seeds

    def run(self, configuration: Configuration, report: Report | None = None, deadline: float | None = None) -> TrialScore:
        """Score a configuration; the trial is pruned if `report(value, step)` is True or at the
        (monotonic) deadline."""
        model = self._build_model(configuration)
        start_time = time.perf_counter()
        scores_by_seed: list[list[float]] = []
        for seed_index, seeded_model in enumerate(self._seeded_models(model)):
            trial_backtest = TrialBacktest(
                objective=self,
                model=seeded_model,
                panel=self.panels[configuration.model],
                report=report,
                deadline=deadline,
                seed_index=seed_index,
                previous_scores=[seed_scores[0] for seed_scores in scores_by_seed],
            )
            scores_by_seed.append(trial_backtest.run())
        scores = [sum(seed_scores) / len(seed_scores) for seed_scores in zip(*scores_by_seed, strict=True)]
        seconds = time.perf_counter() - start_time
        scores_by_column = dict(zip(self.scorer.columns, scores, strict=True))
        return TrialScore([seconds if name == SECONDS else scores_by_column[name] for name in self.objectives], seconds)

    def warm_up(self, configuration: Configuration) -> None:
        """Compile and import what a configuration needs before its trial is timed."""
        warm_up(self.space.build_model(configuration), self.panels[configuration.model], self.scorer.levels)

    def _build_model(self, configuration: Configuration) -> Forecaster:
        """The model of a configuration, with conformal intervals if a metric needs intervals and it
        has none."""
        model = self.space.build_model(configuration)
        if self.scorer.levels and model.capabilities.distribution is None and not model.calibrates:
            return model.clone(intervals="conformal")
        return model

    def _seeded_models(self, model: Forecaster) -> list[Forecaster]:
        """The model with `n_seeds` consecutive seeds; once if it has no seed."""
        first_seed = next((value for name, value in model.get_params().items() if name.rpartition("__")[2] == "seed"), None)
        if self.n_seeds == 1 or first_seed is None:
            return [model] * (1 if first_seed is None else self.n_seeds)
        return [with_seed(model, first_seed + offset) for offset in range(self.n_seeds)]


@dataclass(eq=False)
class TrialBacktest:
    """The backtest of a trial with one seed.

    `previous_scores`: scores of the first objective with earlier seeds. `last_report`: the last step of
    this backtest at which a partially trained model was scored. `end_reason`: why the trial is pruned.
    """

    objective: Objective
    model: Forecaster
    panel: Panel
    report: Report | None
    deadline: float | None
    seed_index: int
    previous_scores: list[float]
    forecasts: dict[str, Floats] = field(default_factory=dict)
    last_report: int = 0
    end_reason: str = ""

    def run(self) -> list[float]:
        """The score of each metric over all windows; `PrunedError` if the trial is pruned."""
        objective = self.objective
        self.forecasts = objective.scorer.empty_forecasts()
        self.monitor = Monitor(self._on_fit_progress if self.report else None, deadline=self.deadline)
        refit_interval = refit_every(objective.refit, self.model.capabilities.by_series)
        for fold in rolling_folds(self.model, self.panel, objective.plan, refit_interval=refit_interval, monitor=self.monitor):
            if self.monitor.time_left() <= 0:
                raise PrunedError("The trial exceeded its time limit (`trial_timeout`).")
            objective.scorer.fill(self.forecasts, fold, self.model.point_kind)
            if self._report_score(self.forecasts, fold.window.number, STEPS_PER_FOLD):
                raise PrunedError(self.end_reason)
        if self.end_reason:
            raise PrunedError(self.end_reason)
        return objective.scorer.scores(self.forecasts)

    def _on_fit_progress(self, _: float, position: int) -> bool:
        """Report the score of the partially trained model at the `REPORT_POINTS` of a fit; return whether
        to prune.

        `position`: 1 to STEPS_PER_FOLD in the first window, continuing in the next ones.
        """
        window_number, offset = divmod(position - 1, STEPS_PER_FOLD)
        if self.objective.by_window:
            return False
        passed_points = [
            point for point in REPORT_POINTS if self.last_report < STEPS_PER_FOLD * window_number + point <= position
        ]
        if not passed_points or offset + 1 >= STEPS_PER_FOLD or self.end_reason:
            return False
        snapshot = self.monitor.snapshot()
        if snapshot is None:
            return False
        self.last_report = STEPS_PER_FOLD * window_number + passed_points[-1]
        forecasts = {name: values.copy() for name, values in self.forecasts.items()}
        with suppress_warnings():
            for fold in self._partial_forecasts(window_number, *snapshot):
                self.objective.scorer.fill(forecasts, fold, self.model.point_kind)
        return self._report_score(forecasts, window_number, passed_points[-1])

    def _partial_forecasts(self, window_number: int, fit_panel: Panel, learned: Any) -> Iterator[Fold]:
        """Forecast some series with the partially trained model; for few series in several windows,
        to reduce noise."""
        plan = self.objective.plan
        windows = self.objective.scorer.windows
        refit_interval = refit_every(self.objective.refit, self.model.capabilities.by_series)
        report_windows = windows[window_number : window_number + refit_interval if refit_interval else None]
        first_series = report_windows[0].series
        report_windows = _evenly_spaced(report_windows, min(MAX_REPORT_WINDOWS, max(MAX_REPORT_SERIES // len(first_series), 1)))
        series_index = _evenly_spaced(np.arange(len(first_series)), MAX_REPORT_SERIES)
        categories = {name: covariate.categories for name, covariate in {**fit_panel.covariates, **fit_panel.static}.items()}
        state = State(fit_panel.series, learned, categories, fit_panel.static).take(series_index)
        extended_model = self.model.clone(horizon=plan.gap + plan.horizon)
        for window in report_windows:
            window_rows = np.flatnonzero(np.isin(window.series, first_series[series_index]))
            if not len(window_rows):
                continue
            partial_window = replace(
                window,
                series=window.series[window_rows],
                train_start=window.train_start[window_rows],
                cutoff=window.cutoff[window_rows],
            )
            state_rows = np.searchsorted(first_series[series_index], partial_window.series)
            window_state = state
            if window is not report_windows[0]:
                history = drop_unseen_categories(partial_window.history(self.panel))
                window_state = move_state_to_panel(extended_model, state, history, state_rows)
            yield forecast_window(extended_model, self.panel, partial_window, window_state, gap=plan.gap, horizon=plan.horizon)

    def _report_score(self, forecasts: dict[str, Floats], window_number: int, offset: int) -> bool:
        """Report the score of the windows so far, including those of earlier seeds; return whether
        to prune.

        `offset`: progress in the current window, up to STEPS_PER_FOLD.
        """
        if self.report is None:
            return False
        n_windows = self.objective.plan.n_windows
        scorer = self.objective.scorer
        n_earlier_windows = n_windows * self.seed_index + window_number
        if self.objective.by_window:
            step = n_earlier_windows
            value = scorer.scores(scorer.select_window(forecasts, window_number))[0]
        else:
            step = STEPS_PER_FOLD * n_earlier_windows + offset
            weight = window_number + 1  # windows so far with this seed
            value = (sum(self.previous_scores) * n_windows + scorer.scores(forecasts)[0] * weight) / (
                len(self.previous_scores) * n_windows + weight
            )
        if self.report(value, step) and (offset < STEPS_PER_FOLD or self._has_later_fits(window_number)):
            self.end_reason = "The score was worse than other trials at this step."
        return bool(self.end_reason)

    def _has_later_fits(self, window_number: int) -> bool:
        """Whether fits remain to be done: forecasts alone are cheap, and a complete score is more
        informative."""
        refit_interval = refit_every(self.objective.refit, self.model.capabilities.by_series)
        later_windows = range(window_number + 1, self.objective.plan.n_windows)
        return self.seed_index < self.objective.n_seeds - 1 or any(
            refit_interval and window % refit_interval == 0 for window in later_windows
        )


def _evenly_spaced(sequence: Any, n_elements: int) -> Any:
    """`count` evenly spaced elements, including the first."""
    positions = np.unique(np.linspace(0, len(sequence) - 1, min(n_elements, len(sequence))).astype(np.int64))
    return sequence[positions] if isinstance(sequence, np.ndarray) else [sequence[position] for position in positions]


def format_error(error: BaseException) -> str:
    """The type and message of an error, shortened for storages."""
    error_name = type(error).__name__
    try:
        text = str(error)
    except Exception as message_error:  # a model may bring its own kinds of errors, broken ones too
        text = f"(its message cannot be read: {type(message_error).__name__})"
    message = f"{error_name}: {text}" if text and not isinstance(error, PrunedError) else text or error_name
    return message if len(message) <= 1500 else message[:1499] + "…"


def is_refused(error: BaseException) -> bool:
    """Whether a configuration is invalid, in itself or for these data."""
    return isinstance(error, ParameterError | CapabilityError | DataError)
