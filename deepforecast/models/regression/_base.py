"""What the regression models share: features, transformed target, strategy, one regressor over all series (or one for each).

Regressive      a family member says how a regressor is trained on a `Sample`, how it forecasts rows, and how it is written down
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast, PointForecast, QuantileForecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.preprocessing import refuse_short_series
from deepforecast.core.skops_objects import SkopsSerializer
from deepforecast.core.state import LearnedState
from deepforecast.core.threads import one_thread_if_forked
from deepforecast.data import frames
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, format_list
from deepforecast.models.regression import _held, _planning, _samples, _units
from deepforecast.models.regression._ahead import Ahead
from deepforecast.models.regression._differences import differences_of
from deepforecast.models.regression._plan import Plan, check
from deepforecast.models.regression._samples import Sample, Sampling

Strategy = Literal["recursive", "direct", "direct_multioutput", "blocks"]
SEASONLESS, MOST_LAGS = 3, 192  # in a search: lags where there is no season, and no more of them than so many


@dataclass(frozen=True)
class Made:
    """Regressors: for each step of a block the one of the point, then those of the quantiles. `spread`: the deviation of what
    the first left over, where a power bends it."""

    models: list[list[Any]]
    spread: float


class RegressionForecaster(Forecaster):
    """A regressor on features of the past, of the calendar, and of columns known ahead; one for all series unless
    `per_series`."""


    capabilities = Capabilities(future=True, past=True, static=True, categorical=True, local=False, missing=True,
                                scale_equivariant=True, shift_equivariant=True, precision=1e-5)  # fmt: skip

    number: ClassVar[type] = np.float32  # of what features are kept in
    adds_up: ClassVar[bool] = False  # a linear model: categories and what comes round get columns of their own
    takes_missing: ClassVar[bool] = False  # features may be missing
    gives_quantiles: ClassVar[bool] = False  # it can be trained for a quantile
    gives_several: ClassVar[bool] = False  # one regressor can give several steps at once
    gives_shares: ClassVar[bool] = False  # it can say what each feature adds

    lags: int | list[int] | Literal["auto"] | None = param(
        default="auto", at_least=1, search=("auto", 7, 14, 28),
        help="rows back whose values are features; 3: the last three",
    )  # fmt: skip
    lag_transforms: list[str] | Literal["auto"] | None = param(
        default="auto", search=("auto", None),
        help="features of the past such as 'mean_28', 'std_28@7', 'ewm_0.3'",
    )  # fmt: skip
    season_length: int | list[int] | Literal["auto"] = param(
        default="auto", at_least=1, help="steps after which seasons repeat",
    )
    calendar: list[str] | Literal["auto"] | None = param(
        default="auto", search=("auto", None), help="features of the date; auto: by the frequency"
    )
    holidays: str | None = param(
        default=None, help="country (or part of it: 'DE-BY') whose holidays are features",
    )
    fourier: int = param(default=0, at_least=0, help="pairs of sine and cosine for each season")
    time_index: bool = param(
        default=False, help="whether the number of the row in time is a feature",
    )
    series_id: bool = param(default=False, help="whether the series is a feature")
    past_lags: int | list[int] = param(
        default=1, at_least=1,
        help="rows back of columns known up to now alone, before the first step",
    )
    future_lags: list[int] | None = param(
        default=None,
        help="rows around a step at which columns known ahead are read; None: its own",
    )
    strategy: Strategy = param(
        default="recursive",
        help="step after step, by a regressor for each step, by one for all, or in blocks",
    )
    block_size: int = param(default=7, at_least=1, help="steps in a block, for strategy='blocks'")
    differences: list[int] | Literal["auto"] | None = param(
        default="auto", at_least=1, search=("auto", None),
        help="lags at which the target is differenced; auto: as tests suggest, if rolling forecasts confirm it",
    )
    transform: Literal["log", "box_cox"] | None = param(
        default=None, help="power of the target that is learned",
    )
    detrend: bool = param(
        default=False, help="whether the straight line of each series is taken out",
    )
    scale: bool = param(default=True, help="whether each series is brought to the same spread")
    bounds: tuple[float | None, float | None] | None = param(
        default=None, help="least and largest value of a forecast; (0, None)",
    )
    weight_column: str | None = param(
        default=None, help="declared column that says how much each row counts",
    )
    half_life: float | None = param(
        default=None, above=0, help="rows after which a row counts half; None: all the same",
    )
    quantiles: list[float] | None = param(
        default=None, above=0, below=1, help="quantiles that are learned too, for intervals",
    )
    per_series: bool = param(
        default=False, help="a regressor for each series instead of one for all",
    )

    warm_up_params: ClassVar[dict[str, Any]] = {}  # see evaluation.warm_up
    learning_example: ClassVar[dict[str, Any]] = {
        "lags": None, "lag_transforms": None, "differences": None, "scale": False, "strategy": "direct"
    }  # fmt: skip
    coverage_process: ClassVar[str] = "trend_and_season"

    @property
    def coverage_example(self) -> dict[str, Any]:
        """What to change where the coverage of its intervals is measured: quantiles that reach as far as a level of 95."""
        return {"quantiles": [0.025, 0.1, 0.5, 0.9, 0.975]} if self.quantiles else {}

    @one_thread_if_forked()
    def importance(self, frame: Frame | None = None, *, static: Frame | None = None) -> Frame:
        """How much each feature counts, as shares of the whole, the largest first: columns `feature` and `importance`.

        Of trees it is what splits on a feature gained in fit, of linear models how far its usual change moves the forecast.
        With a `frame` (of data that were not learned from, best) it is for any regressor what the squared errors of one step
        grow by when that feature is shuffled.
        """
        from deepforecast.models.regression import _importance

        state = self.fitted_state()
        return frames.build(state.series.library, _importance.importances(self, state, frame, static))

    # -- hooks of the contract -------------------------------------------------------------------------------------------------

    def _search_choices(self, seasons: tuple[int, ...], rows: int) -> dict[str, list[Any]]:
        """The last rows of one, two and four of the shortest season, as far as the data reach."""
        if self.season_length != "auto":
            given = self.season_length
            seasons = tuple(int(one) for one in (given if isinstance(given, list) else [given]))
        if not seasons:
            return {}
        short = min((one for one in seasons if one > 1), default=SEASONLESS)
        far = [k * short for k in (1, 2, 4) if k * short <= MOST_LAGS and (not rows or 3 * k * short <= rows)]
        return {"lags": ["auto", *(far or [1])]}

    def _narrow(self, declared: Capabilities) -> Capabilities:
        able = replace(declared, local=self.per_series, static=not self.per_series)
        if self.quantiles:
            able = replace(able, distribution="quantiles", learns_distribution=True)
        explained = not self.quantiles or 0.5 in self.quantiles or self.point == "mean"
        able = replace(able, explains=self.gives_shares and self.transform is None and explained)
        if self.transform or self.bounds:
            able = replace(able, shift_equivariant=False, scale_equivariant=self.transform == "log")
        if self.transform:
            able = replace(able, domain="positive")
        if not self.scale:
            able = replace(able, scale_equivariant=False, shift_equivariant=False)
        return able

    def _min_observations(self, panel: Panel) -> int:
        given = sum(self.differences) if isinstance(self.differences, list) else 0
        return given + 3

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        plan = _planning.planned(self, panel, differences_of(self, panel))
        needed = max(plan.target.reach + plan.block, plan.target.reach_of(plan.block)) + 2
        if self.per_series or int(panel.observed.max()) < needed:
            refuse_short_series(self, panel, needed, "values")
        _, scales = plan.target.learn(panel, self.name)
        every = {**panel.covariates, **panel.static}
        units = {} if self.per_series else _units.of({name: one for name, one in every.items() if name != self.weight_column})
        panel = _counted(panel, units)
        owners = np.arange(len(panel), dtype=np.float64)
        held = _held.begun(plan, self._without_weights(panel), scales, panel.start, owners)
        parts = [np.array([one]) for one in range(len(panel))] if self.per_series else [None]
        made = [self._made(plan, panel, scales, part) for part in parts]
        categories = {name: _listed(one.categories) for name, one in every.items()}
        shared = {"plan": plan.written(), "categories": categories, "units": units}
        if not self.per_series:
            return LearnedState(held, {**shared, "regressors": made[0]})
        held["regressors"] = np.empty(len(panel), dtype=object)
        held["regressors"][:] = made
        return LearnedState(held, shared)

    @one_thread_if_forked()
    def _made(self, plan: Plan, panel: Panel, scales: Mapping[str, Any], part: Ints | None) -> Made:
        """The regressors of a panel, or of one of its series."""
        if part is not None:
            panel, scales = panel.take(part), {name: values[part] for name, values in scales.items()}
        sampling = Sampling(plan, self._without_weights(panel), scales, self.number, self.takes_missing)
        sampling.weight = self._weights(panel)
        models, spread = [], 0.0
        for step in range(1 if plan.together else plan.block):
            sample = sampling.of(step)
            models.append([self._train(sample, level) for level in (None, *sorted(set(self.quantiles or ())))])
            if plan.target.power is not None and step == 0:
                left = sample.target - self._values(models[0][0], sample.rows)
                spread = float(np.sqrt(np.mean(left * left)))
        return Made(models, spread)

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        plan, panel = Plan.read(learned["plan"]), self._seen(panel, learned["units"])
        if not fresh:
            return replace(learned, by_series=_held.moved(plan, learned, panel))
        refuse_short_series(self, panel, plan.target.reach + 1, "values of history")
        rows = np.arange(len(panel)) if self.per_series else _held.known_rows(learned, panel)
        _, scales = plan.target.learn(panel, self.name)
        began, owners, known = panel.start, rows.astype(np.float64), rows >= 0
        varied = known.copy()
        varied[known] = learned["scale"][rows[known]] > 0
        for name, values in scales.items():
            kept = varied if name in ("scale", "centre", "drift") else known
            values[kept] = learned[name][rows[kept]]
        began[known] = learned["began"][rows[known]]
        owners[known] = learned["owner"][rows[known]]
        held = _held.begun(plan, panel, scales, began, owners)
        if self.per_series:
            held["regressors"] = learned["regressors"]
        return replace(learned, by_series=held)

    @one_thread_if_forked()
    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        ahead = self._ahead_of(learned, steps, future)
        mean = self._bounded(ahead.back(self._stepped(ahead, 0), self._spread(learned) if self.point_kind == "mean" else None))
        if not self.quantiles:
            return PointForecast(mean, self.name)
        levels = tuple(sorted(set(self.quantiles)))
        bands = [self._bounded(ahead.back(self._stepped(ahead, place + 1))) for place in range(len(levels))]
        return QuantileForecast(mean, levels, np.stack(bands, axis=-1), self.name)

    def _ahead_of(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Ahead:
        known = _units.applied({name: one for name, one in future.items() if name != self.weight_column}, learned["units"])
        return Ahead(Plan.read(learned["plan"]), learned, steps, known)

    @one_thread_if_forked()
    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        from deepforecast.models.regression import _explaining

        return _explaining.components(self, learned, steps, future)

    def _stepped(self, ahead: Ahead, place: int) -> Floats:
        """Forecasts on the scale that is learned, by the regressors at a place: 0 for the point, then one for each quantile."""
        made = ahead.learned["regressors"]
        if not self.per_series:
            return ahead.run(made.models, place, self._values)
        return np.concatenate([ahead.only(one).run(each.models, place, self._values) for one, each in enumerate(made)])

    def _spread(self, learned: LearnedState) -> Floats | None:
        """The deviation of one step's errors on the scale that is learned, where its power bends them."""
        if self.transform is None:
            return None
        made = learned["regressors"]
        return np.array([one.spread for one in made]) if self.per_series else np.full(len(learned["began"]), made.spread)

    def _weights(self, panel: Panel) -> Floats | None:
        """How much each observation counts."""
        return _samples.weights(panel, self.weight_column, self.half_life)

    def _bounded(self, found: Floats) -> Floats:
        low, high = self.bounds or (None, None)
        return found if low is None and high is None else np.clip(found, low, high)

    def _seen(self, panel: Panel, units: _units.Units) -> Panel:
        """The panel as regressors see it."""
        return _counted(self._without_weights(panel), units)

    def _without_weights(self, panel: Panel) -> Panel:
        """The panel without the column of weights, which is no feature."""
        if self.weight_column is None:
            return panel
        if self.weight_column not in panel.covariates:
            declared = format_list(list(panel.covariates)) or "them"
            raise ParameterError(
                f"weight_column= names a declared column of the frame; {self.weight_column} is none of {declared}. "
                f"Say columns={{'past': ['{self.weight_column}']}}."
            )
        return replace(panel, covariates={name: one for name, one in panel.covariates.items() if name != self.weight_column})

    def _serialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        made = learned["regressors"]
        if self.per_series:
            held = {name: values for name, values in learned.by_series.items() if name != "regressors"}
            plain = [self._plain(one, foreign) for one in made]
            return replace(learned, by_series=held, shared={**learned.shared, "regressors": plain})
        return replace(learned, shared={**learned.shared, "regressors": self._plain(made, foreign)})

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        check(learned, self.per_series)
        said = learned["regressors"]
        shared = {name: value for name, value in learned.shared.items() if name != "regressors"}
        if not self.per_series:
            return replace(learned, shared={**shared, "regressors": self._living(said, foreign)})
        regressors = np.empty(len(said), dtype=object)
        regressors[:] = [self._living(one, foreign) for one in said]
        return replace(learned, by_series={**learned.by_series, "regressors": regressors}, shared=shared)

    def _plain(self, made: Made, foreign: SkopsSerializer) -> dict[str, Any]:
        return {"spread": made.spread, "models": [[self._written(one, foreign) for one in step] for step in made.models]}

    @one_thread_if_forked()
    def _living(self, said: Mapping[str, Any], foreign: SkopsSerializer) -> Made:
        return Made([[self._revived(one, foreign) for one in step] for step in said["models"]], said["spread"])

    # -- hooks of a family member ----------------------------------------------------------------------------------------------

    @abstractmethod
    def _train(self, sample: Sample, level: float | None) -> Any:
        """A regressor that learned a sample: the mean, or the quantile `level`."""

    @abstractmethod
    def _values(self, regressor: Any, rows: Any) -> Floats:
        """What it says of rows; each whatever stands beside it."""

    def _shares(self, regressor: Any, rows: Any) -> Floats:
        """What each column adds to what it says of rows, and last what it says without any: (rows, columns + 1), of several
        values a row (rows, columns + 1, values)."""
        raise NotImplementedError

    def _gains(self, regressor: Any) -> Floats | None:
        """What each column was worth to it, if it knows."""
        return None

    @abstractmethod
    def _written(self, regressor: Any, foreign: SkopsSerializer) -> dict[str, Any]:
        """A regressor as arrays, numbers and text."""

    @abstractmethod
    def _revived(self, said: Mapping[str, Any], foreign: SkopsSerializer) -> Any:
        """A regressor back from them."""


def _counted(panel: Panel, units: _units.Units) -> Panel:
    """The panel with its columns in units of their own."""
    if not units:
        return panel
    return replace(panel, covariates=_units.applied(panel.covariates, units), static=_units.applied(panel.static, units))


def _listed(categories: tuple[str, ...] | None) -> list[str] | None:
    return None if categories is None else list(categories)
