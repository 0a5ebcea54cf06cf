"""What the models of exponential smoothing share: estimation, states, forecasts in the units of the data.

Exponential     `_forms` says which forms are tried, `_settings` what is given; the best by `_scores` is kept
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast
from deepforecast.core.foreign import Foreign
from deepforecast.core.monitor import Monitor
from deepforecast.core.noise import standard_normal
from deepforecast.core.params import param
from deepforecast.core.state import Learned, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import TrainingError, say
from deepforecast.kernels.ets.forms import Form
from deepforecast.models._seasonality import say_short
from deepforecast.models.statistical import _ets as ets
from deepforecast.models.statistical._base import Statistical
from deepforecast.models.statistical._box_cox import guerrero, transformed
from deepforecast.models.statistical._ets_forecast import ExponentialForecast, errors_of
from deepforecast.models.statistical._explosive import steps_ahead, without_explosive
from deepforecast.models.statistical._holes import smoothing, spread_after_holes
from deepforecast.models.statistical._regressors import centred, design, effects_of
from deepforecast.models.statistical._since import spread_since, told
from deepforecast.models.statistical._soundness import unsound


class Exponential(Statistical):
    """Exponential smoothing in innovations form, by maximum likelihood, the initial states estimated too.

    Learned of each series: `form` (error, trend, damped, season), `rates` (alpha, beta, gamma, phi), `start` and `state`
    (level, slope, factors of the steps that follow; before the first row, and after the last value seen, `age` rows ago),
    `effects` of regressors with their `centre` and `scale`, `sigma`, `criteria` (log-likelihood, estimated parameters,
    values), `power` of the Box-Cox transformation, and what `_since` tells the spread by.
    """

    coverage_process: ClassVar[str] = "exponential_smoothing"

    capabilities = Capabilities(
        future=True,
        categorical=True,
        missing=True,
        distribution="analytic",
        scale_equivariant=True,
        precision=1e-6,
        simulates=True,
        explains=True,
    )
    seconds_per_value = 2e-7

    box_cox: float | Literal["auto"] | None = param(
        default=None, at_least=-1, at_most=2,
        help="power of a Box-Cox transformation, 0 for logarithms, below 0 forecasts may be infinite; auto: Guerrero's, 0 to 1;"
        " additive forms alone",
    )

    def parameters(self) -> Frame:
        """The form of each series with its parameters and criteria, a row each; with columns known ahead what one unit of each
        adds (`effect_<column>`), `level` then as it is where these are at their means. Transformed as `box_cox` transforms."""
        return super().parameters()

    def _estimated(self, learned: Learned, state: State) -> dict[str, Any]:
        return {**ets.table(learned), **effects_of(state, learned["effects"] / learned["scale"])}

    def summary(self, unique_id: Any = None) -> str:
        """statsmodels' summary of a series of the fit at the parameters found, a text; with missing values, regressors or a
        transformation, which statsmodels does not take, those of `parameters()`."""
        from deepforecast.models.statistical._ets_statsmodels import summary

        state = self.fitted()
        estimates = self._estimated(state.learned, state)
        return summary(self._history(state.learned), state.learned, unique_id, estimates)

    # -- hooks of a model ------------------------------------------------------------------------------------------------------

    def _forms(self) -> list[Form]:
        """The forms to choose from; those with a season are left out where the season is 1."""
        raise NotImplementedError

    def _season(self, panel: Panel) -> int:
        """Steps after which the season repeats; 1 without."""
        return 1

    def _settings(self, panel: Panel, y: Floats, season: int, forms: list[Form]) -> dict[str, Any]:
        """Of the kernel: what is given and how thoroughly to look."""
        return {"thorough": True, "tolerance": 1e-9}

    def _scores(self, fits: Any, counts: Floats, parameters: Floats) -> Floats:
        """What the form of a series is chosen by, the lower the better; (series, forms)."""
        return np.asarray(-fits.log_likelihood)

    def _revive(self, learned: Learned, foreign: Foreign) -> Learned:
        ets.check(learned)
        return learned

    # -- contract --------------------------------------------------------------------------------------------------------------

    def _needs(self, panel: Panel) -> int:
        season = self._season(panel)
        forms = ets.possible(self._forms(), season)
        fewest = min(ets.parameters_of(one, season, self._settings_given()) for one in forms)
        return max(fewest + len(panel.series.columns.future) + 1, 3)

    def _settings_given(self) -> tuple[bool, ...]:
        """Which of alpha, beta, gamma, phi and the states are given."""
        return (False,) * 5

    def _fit(self, panel: Panel, monitor: Monitor) -> Learned:
        season = self._season(panel)
        forms = ets.possible(self._forms(), season)
        seasonal = [ets.parameters_of(form, season, self._settings_given()) for form in forms if form.season]
        if 0 < len(seasonal) < len(forms):  # else `_needs` has refused
            needed = min(seasonal) + len(panel.series.columns.future) + 3
            say_short(panel, season, self.name, needed, panel.observed)
        learned = super()._fit(panel, monitor)
        self._say_replaced(panel, learned, forms)
        return learned

    def _say_replaced(self, panel: Panel, learned: Learned, forms: list[Form]) -> None:
        """Name the series that got another form than was asked for."""
        kept = np.isnan(learned["criteria"][:, 0])
        for form in forms:
            kept |= (learned["form"] == form).all(axis=1)
        other = np.flatnonzero(~kept)
        if len(other):
            say(
                f"{self.name}: a form that multiplies, as {forms[0]}, has no sound forecast of series "
                f"{panel.series.labels(other)}: none is likely, its errors are as large as the mean, or it leaves all "
                "values, or the last two seasons, far behind. They got the form that adds instead, see parameters(). Look for "
                "outliers, shifts of the level and values near 0, or choose additive parts."
            )

    def _estimate(self, panel: Panel) -> Learned:
        season = self._season(panel)
        forms = ets.possible(self._forms(), season)
        learned = self._learned(panel, season, forms)
        wrong = unsound(learned, panel, panel.y - self._offsets(learned.by_series, panel.covariates, panel.row_series))
        if len(wrong):
            part = panel.take(wrong)
            replaced = self._learned(part, season, ets.adding(forms))
            for name, values in replaced.by_series.items():
                learned.by_series[name][wrong] = values
        lost = np.flatnonzero(np.isneginf(learned["criteria"][:, 0]))
        if len(lost):
            raise TrainingError(
                f"{self.name} found no parameters under which series {panel.series.labels(lost)} is likely at all. Choose "
                "other parts, or AutoETS."
            )
        return learned

    def _learned(self, panel: Panel, season: int, forms: list[Form]) -> Learned:
        """The best of some forms for each series."""
        power = self._powers(panel, season)
        y = transformed(panel.y, np.repeat(power, panel.lengths))
        matrix, centre, scale = self._regressors(panel)
        fits = self._fits(panel, y, matrix, season, forms)
        counts = np.maximum(ets.observed(y, matrix, panel.indptr), 1)
        each = [ets.parameters_of(one, season, self._settings_given()) + matrix.shape[1] for one in forms]
        numbers = np.array(each, np.float64)[None, :]
        scores = self._scores(fits, counts[:, None], numbers)
        if len(forms) > 1:
            steps, free = steps_ahead(panel.lengths, self.own_horizon), counts[:, None] - numbers
            scores = without_explosive(scores, fits, forms, panel.with_target(y), matrix, free, steps)
        known = ets.chosen(fits, forms, scores, season)
        flat = ets.constant(y, panel.indptr)
        ets.lay_constant(known, flat, forms[0])
        best = known.pop("best")
        likelihood = np.where(np.isnan(flat), known.pop("log_likelihood"), np.nan)
        known |= {"centre": centre, "scale": scale, "power": power, "began": panel.start}
        known["criteria"] = np.column_stack([likelihood, np.array(each, np.float64)[best] + (self.box_cox == "auto"), counts])
        learned = Learned({**known, "sigma": np.zeros(len(panel)), "state": known["start"], "age": np.zeros(len(panel), int)})
        learned.by_series["sigma"][:] = self._sigma(learned, panel)
        spread = told(ets.in_units_of_errors(panel, y, learned["form"]), learned["sigma"])
        known = {**learned.by_series, "sigma": spread.pop("deviation"), **spread}
        learned = replace(learned, by_series=known)
        return self._advance(learned, panel, True)

    def _fits(self, panel: Panel, y: Floats, matrix: Floats, season: int, forms: list[Form]) -> Any:
        from deepforecast.kernels.ets.fitting import Settings, fit

        settings = Settings(**self._settings(panel, y, season, forms))
        return fit(y, panel.indptr, season, forms, design=matrix, settings=settings)

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        known = dict(learned.by_series)
        y = transformed(panel.y, np.repeat(known["power"], panel.lengths))
        offsets = self._offsets(known, panel.covariates, panel.row_series)
        if fresh:
            elsewhere = np.flatnonzero(panel.start != known["began"])
            if len(elsewhere):
                known["start"] = known["start"].copy()
                known["start"][elsewhere] = ets.restarted(known, y - offsets, panel.indptr, elsewhere)
                known["began"] = panel.start
        begin = ets.model(known, "start" if fresh else "state", None if fresh else known["age"])
        found, end = ets.follow(begin, y, offsets, panel.indptr)
        known |= {"state": end.states, "age": end.age}
        if not np.isnan(known["ripple"]).all():
            errors = self._errors(known, panel, y, found)
            before, rows = {**known, "deviation": known["sigma"]}, ets.in_units_of_errors(panel, y, known["form"])
            spread = spread_since(before, rows, errors, fresh)
            known |= {"sigma": spread["deviation"], "since": spread["since"]}
        return Learned(known, learned.shared, panel if fresh else None)

    def _fitted(self, learned: Learned, panel: Panel) -> Floats:
        found = self._one_step(learned, panel)[0]
        return transformed(found, np.repeat(learned["power"], panel.lengths), back=True)

    def _innovations(self, learned: Learned, panel: Panel) -> Floats:
        mean, y = self._one_step(learned, panel)
        return np.where(y == mean, 0.0, self._errors(learned.by_series, panel, y, mean))

    def _one_step(self, learned: Learned, panel: Panel) -> tuple[Floats, Floats]:
        """Forecasts of the rows from the start, and the values, both transformed."""
        known = learned.by_series
        y = transformed(panel.y, np.repeat(known["power"], panel.lengths))
        offsets = self._offsets(known, panel.covariates, panel.row_series)
        return ets.follow(ets.model(known, "start", None), y, offsets, panel.indptr)[0], y

    def _sigma(self, learned: Learned, panel: Panel) -> Floats:
        """Deviation of the errors with n - k degrees of freedom, as of rows without a hole before; NaN where there are none."""
        mean, y = self._one_step(learned, panel)
        errors = self._errors(learned.by_series, panel, y, mean)
        form = learned["form"]
        moves = (form[:, 1] < 2) & ((form[:, 0] == 1) | (form[:, 3] < 2))  # as linear states do, in shares if errors multiply
        rates, season = learned["rates"] * moves[:, None], learned["state"].shape[1] - 2
        errors = errors / spread_after_holes(~np.isnan(errors), panel.indptr, smoothing(rates, season))
        free = learned["criteria"][:, 2] - learned["criteria"][:, 1]
        flat = np.isnan(learned["criteria"][:, 0])
        return np.where(flat, 0.0, ets.root_mean_square(errors, panel.indptr, free))

    def _errors(self, known: Mapping[str, Any], panel: Panel, y: Floats, mean: Floats) -> Floats:
        """What forecasts of rows missed, as a share of them where errors multiply."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(np.repeat(known["form"][:, 0], panel.lengths) == 1, (y - mean) / mean, y - mean)

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        return ExponentialForecast.of(learned, self._offsets_ahead(learned, steps, future))

    def _simulate(self, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        keys = np.column_stack([learned[name] for name in ("rates", "state", "sigma", "age")])
        draws = standard_normal(seed, keys, (1 + int(learned["age"].max()) + steps, samples))
        return self._forecast_paths(learned, draws, self._offsets_ahead(learned, steps, future))

    def _forecast_paths(self, learned: Learned, draws: Floats, offsets: Floats) -> Floats:
        from deepforecast.kernels.ets.forecasting import paths

        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by name on its way out
            found = paths(ets.model(learned.by_series, "state"), errors_of(learned.by_series, draws), offsets)
            return transformed(found, learned["power"][:, None, None], back=True)

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        forecast = ExponentialForecast.of(learned, self._offsets_ahead(learned, steps, future))
        parts = forecast.parts()
        forms = self._forms()
        if all(form.trend == 0 for form in forms):
            parts["level"] += parts.pop("trend")
        if all(form.season == 0 for form in forms):
            parts["level"] += parts.pop("season")
        if not future:
            parts["level"] += parts.pop("regressors")
        with np.errstate(over="ignore", invalid="ignore"):
            rest = forecast.point(self.point_kind) - sum(parts.values())
        if self.box_cox is not None or self.point_kind == "median":
            parts["remainder"] = rest
        else:  # what rounding left, and what keeps a forecast from going below 0
            last = list(parts)[-1]
            parts[last] = parts[last] + rest
        return parts

    # -- parts -----------------------------------------------------------------------------------------------------------------

    def _powers(self, panel: Panel, season: int) -> Floats:
        """Powers of the Box-Cox transformation; NaN for none."""
        if self.box_cox is None:
            return np.full(len(panel), np.nan)
        if self.box_cox == "auto":
            return guerrero(panel.y, panel.indptr, season)
        return np.full(len(panel), float(self.box_cox))

    def _regressors(self, panel: Panel) -> tuple[Floats, Floats, Floats]:
        """Columns known ahead, centred and scaled within each series; centres and scales."""
        held = {name: panel.covariates[name] for name in panel.series.columns.future}
        if not held:
            nothing = np.empty((len(panel), 0))
            return np.empty((len(panel.y), 0)), nothing, nothing
        return centred(design(held), panel.indptr)

    def _offsets(self, known: Mapping[str, Any], held: Mapping[str, Covariate], rows: Any) -> Floats:
        """What regressors add at each row; NaN where one is missing."""
        if not known["effects"].shape[1] or not held:
            return np.zeros(len(rows))
        away = (design(held) - known["centre"][rows]) / known["scale"][rows]
        return np.asarray(np.sum(away * known["effects"][rows], axis=1))

    def _offsets_ahead(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Floats:
        rows = np.repeat(np.arange(len(learned["rates"])), steps)
        return self._offsets(learned.by_series, future, rows).reshape(-1, steps)
