"""Base of the regression models: features, target transformation, forecast strategy, training of the regressors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from deepforecast.core.encoding import SkopsSerializer
from deepforecast.core.forecast import Forecast, PointForecast, QuantileForecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.model_file import histories_required_error
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.preprocessing import refuse_short_series
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState
from deepforecast.core.threads import one_thread_if_forked
from deepforecast.data import frames
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.regression import _parameter_resolution, _rescaling, _samples, _series_state
from deepforecast.models.regression._differences import choose_differences
from deepforecast.models.regression._future_steps import FutureSteps
from deepforecast.models.regression._plan import Plan, check_plan
from deepforecast.models.regression._samples import Sample, SampleBuilder

Strategy = Literal["recursive", "direct", "direct_multioutput", "blocks"]
NONSEASONAL_LAGS = 3  # shortest number of lags in a search if no season is known
MAX_SEARCHED_LAGS = 192  # largest number of lags in a search


@dataclass(frozen=True)
class TrainedRegressors:
    """The trained regressors of a global model, or of one series.

    models: `models[step][0]` forecasts the mean at this step of a block, `models[step][1 + k]` the k-th smallest
    quantile. A multi-output regressor forecasts all steps of a block, so that `models` has length 1.
    residual_std: standard deviation of the residuals in training, on the scale of the regressors, if the target has a
    power transformation, else 0.
    """

    models: list[list[Any]]
    residual_std: float


class RegressionForecaster(Forecaster):
    """A regressor on lags, date features and covariates, trained on all series, or per series."""

    capabilities = Capabilities(future=True, past=True, static=True, weights=True, categorical=True, local=False, missing=True,
                                scale_equivariant=True, shift_equivariant=True, precision=1e-5)  # fmt: skip

    feature_dtype: ClassVar[type] = np.float32  # dtype of the feature matrix
    needs_encoding: ClassVar[bool] = False  # whether categorical and cyclic features are one-hot encoded
    accepts_missing: ClassVar[bool] = False  # whether features may be missing
    supports_quantiles: ClassVar[bool] = False  # whether it can be trained for a quantile
    supports_multioutput: ClassVar[bool] = False  # whether one regressor can predict several steps
    supports_contributions: ClassVar[bool] = False  # whether contributions of features are available

    lags: int | list[int] | Literal["auto"] | None = param(
        default="auto", at_least=1, search=("auto", 7, 14, 28),
        help=(
            "lags of the target used as features; an integer n: the last n values; 'auto': chosen by "
            "seasonal periods and series length; None: no lags"
        ),
    )
    lag_transforms: list[str] | Literal["auto"] | None = param(
        default="auto", search=("auto", None),
        help=(
            "rolling statistics of past values as features, such as 'mean_28', 'std_28@7' (from lag 7 on) or "
            "'ewm_0.3'; 'auto': means and standard deviations over seasonal periods; None: no such features"
        ),
    )
    season_length: int | list[int] | Literal["auto"] = param(
        default="auto", at_least=1,
        help=(
            "number of time steps per season, or a list for several seasons; 'auto': inferred from the "
            "frequency; 1: non-seasonal"
        ),
    )
    calendar: list[str] | Literal["auto"] | None = param(
        default="auto", search=("auto", None),
        help=(
            "date features, such as 'day_of_week'; 'auto': chosen by frequency; None: no date features"
        ),
    )
    holidays: str | None = param(
        default=None,
        help=(
            "country ('DE') or subdivision ('DE-BY') whose public holidays are features; requires the extra "
            "'holidays'; None: no holiday features"
        ),
    )
    fourier: int = param(
        default=0, at_least=0,
        help="number of Fourier terms (pairs of sine and cosine) per seasonal period",
    )
    time_index: bool = param(
        default=False,
        help="whether to use the index of the time step as a feature",
    )
    series_id: bool = param(
        default=False,
        help="whether to use the series id as a categorical feature; for tree-based regressors only",
    )
    past_lags: int | list[int] = param(
        default=1, at_least=1,
        help=(
            "lags of past covariates used as features, counted from the last observation; an integer n: the last n "
            "values"
        ),
    )
    future_lags: list[int] | None = param(
        default=None,
        help=(
            "offsets relative to the forecast step at which future covariates are read, such as [-1, 0, 1]; "
            "None: the forecast step only"
        ),
    )
    strategy: Strategy = param(
        default="recursive",
        help=(
            "how several steps are forecast; 'recursive': one step at a time, with earlier forecasts as lags; "
            "'direct': one regressor per step; 'direct_multioutput': one regressor for all steps; 'blocks': "
            "recursive over blocks of block_size steps, with one regressor per step of a block"
        ),
    )
    block_size: int = param(
        default=7, at_least=1, needs={"strategy": "blocks"},
        help="number of steps per block",
    )
    differences: list[int] | Literal["auto"] | None = param(
        default="auto", at_least=1, search=("auto", None),
        help=(
            "lags at which the target is differenced, one after the other; 'auto': differences that unit-root tests "
            "suggest and that improve rolling forecasts; None: no differencing"
        ),
    )
    transform: Literal["log", "box_cox"] | None = param(
        default=None,
        help=(
            "transformation of the target before training; 'log': logarithm; 'box_cox': Box-Cox power estimated "
            "per series; None: no transformation"
        ),
    )
    detrend: bool = param(
        default=False,
        help="whether to remove a linear trend from each series before training",
    )
    scale: bool = param(
        default=True,
        help="whether to standardize each series to mean 0 and variance 1 before training",
    )
    half_life: float | None = param(
        default=None, above=0,
        help=(
            "number of time steps after which the weight of an observation is halved, in addition to the weights of "
            "columns={'weight': ...}; None: weights do not decrease with age"
        ),
    )
    quantiles: list[float] | None = param(
        default=None, above=0, below=1,
        help=(
            "probabilities of the quantiles for which additional regressors are trained, for prediction intervals; "
            "None: no quantile regressors"
        ),
    )
    per_series: bool = param(
        default=False,
        help="whether to train one regressor per series instead of one for all series",
    )

    warm_up_params: ClassVar[dict[str, Any]] = {}  # see evaluation.warm_up
    learning_example: ClassVar[dict[str, Any]] = {
        "lags": None, "lag_transforms": None, "differences": None, "scale": False, "strategy": "direct",
        "block_size": 7,
    }  # fmt: skip
    coverage_process: ClassVar[str] = "trend_and_season"

    @property
    def coverage_example(self) -> dict[str, Any]:
        """Parameters for measuring the coverage of intervals: quantiles for a level of 95 %."""
        return {"quantiles": [0.025, 0.1, 0.5, 0.9, 0.975]} if self.quantiles else {}

    @one_thread_if_forked()
    def importance(self, frame: Frame | None = None, *, static: Frame | None = None) -> Frame:
        """Compute the importance of each feature.

        Parameters
        ----------
        frame : DataFrame, optional
            Data for permutation importance: the increase of the squared one-step error when a
            feature is shuffled. Use data that the model was not trained on. Without it, trees
            return the gain of the splits on a feature, linear models the change of the forecast
            for a typical change of the feature.
        static : DataFrame, optional
            Static covariates of the series in `frame`, one row per series.

        Returns
        -------
        DataFrame
            Columns `feature` and `importance` (shares of the total), largest first.
        """
        from deepforecast.models.regression import _importance

        state = self.fitted_state()
        return frames.build(state.series.library, _importance.importances(self, state, frame, static))

    # -- hooks of the contract -------------------------------------------------------------------------------------------------

    def _search_choices(self, seasons: tuple[int, ...], rows: int) -> dict[str, list[Any]]:
        """Candidate numbers of lags: one, two and four of the shortest seasons, if series have three times as many rows.

        `rows` is the length of the series, 0 if it is not known.
        """
        if self.season_length != "auto":
            season_length = self.season_length
            seasons = tuple(int(season) for season in (season_length if isinstance(season_length, list) else [season_length]))
        if not seasons:
            return {}
        shortest = min((season for season in seasons if season > 1), default=NONSEASONAL_LAGS)
        candidates = [k * shortest for k in (1, 2, 4) if k * shortest <= MAX_SEARCHED_LAGS]
        n_lags = [candidate for candidate in candidates if not rows or 3 * candidate <= rows]
        return {"lags": ["auto", *(n_lags or [1])]}

    def _narrow(self, declared: Capabilities) -> Capabilities:
        """Capabilities with these parameters, e.g. no static covariates with `per_series`."""
        capabilities = replace(declared, local=self.per_series, static=not self.per_series)
        if self.quantiles:
            capabilities = replace(capabilities, distribution="quantiles", learns_distribution=True)
        # Contributions are those of the regressor of the point forecast, which must exist if this is the median.
        has_point_regressor = not self.quantiles or 0.5 in self.quantiles or self.point == "mean"
        explains = self.supports_contributions and self.transform is None and has_point_regressor
        capabilities = replace(capabilities, explains=explains)
        if self.transform:
            capabilities = replace(capabilities, shift_equivariant=False, scale_equivariant=self.transform == "log")
        if self.transform:
            capabilities = replace(capabilities, domain="positive")
        if not self.scale:
            capabilities = replace(capabilities, scale_equivariant=False, shift_equivariant=False)
        return capabilities

    def _min_observations(self, panel: Panel) -> int:
        n_lost = sum(self.differences) if isinstance(self.differences, list) else 0
        return n_lost + 3  # at least two samples with one lag

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        """Train the regressors; series that are too short are refused with `per_series`, or if all of them are."""
        plan = _parameter_resolution.make_plan(self, panel, choose_differences(self, panel))
        n_needed = max(plan.target.n_lost + plan.block_size, plan.target.n_start_values(plan.block_size)) + 2
        if self.per_series or int(panel.observed.max()) < n_needed:
            refuse_short_series(self, panel, n_needed, "values")
        _, scales = plan.target.fit(panel, self.name)
        covariates = {**panel.covariates, **panel.static}
        units = {} if self.per_series else _rescaling.fit_scales(covariates)
        panel = _rescaling.rescale_panel(panel, units)
        series_index = np.arange(len(panel), dtype=np.float64)
        state = _series_state.initial_state(plan, panel, scales, panel.start, series_index)
        groups = [np.array([index]) for index in range(len(panel))] if self.per_series else [None]
        regressors = [self._train_regressors(plan, panel, scales, group) for group in groups]
        categories = {name: _to_list(covariate.categories) for name, covariate in covariates.items()}
        shared = {"plan": plan.to_dict(), "categories": categories, "units": units}
        if not self.per_series:
            return LearnedState(state, {**shared, "regressors": regressors[0]})
        state["regressors"] = np.empty(len(panel), dtype=object)
        state["regressors"][:] = regressors
        return LearnedState(state, shared)

    @one_thread_if_forked()
    def _train_regressors(self, plan: Plan, panel: Panel, scales: Mapping[str, Any], group: Ints | None) -> TrainedRegressors:
        """Train the regressors of all steps and quantiles on a panel, or on the series with the indices `group`."""
        if group is not None:
            panel, scales = panel.take(group), {name: values[group] for name, values in scales.items()}
        sampling = SampleBuilder(plan, panel, scales, self.feature_dtype, self.accepts_missing)
        sampling.weight = _samples.sample_weights(panel, self.half_life)
        models = []
        residual_std = 0.0
        for step in range(1 if plan.multioutput else plan.block_size):
            sample = sampling.build(step)
            models.append([self._train(sample, level) for level in (None, *sorted(set(self.quantiles or ())))])
            if plan.target.power_method is not None and step == 0:
                residuals = sample.target - self._predict_rows(models[0][0], sample.rows)
                residual_std = float(np.sqrt(np.mean(residuals * residuals)))
        return TrainedRegressors(models, residual_std)

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        """The state after further rows, or after the histories in `panel`.

        Series seen in fit keep the scales measured there, except series that were constant; for these and for new series
        scales are measured in `panel`.
        """
        plan, panel = Plan.from_dict(learned["plan"]), _rescaling.rescale_panel(panel, learned["units"])
        if not from_start:
            return replace(learned, by_series=_series_state.update_state(plan, learned, panel))
        refuse_short_series(self, panel, plan.target.n_lost + 1, "values of history")
        fit_index = np.arange(len(panel)) if self.per_series else _series_state.match_series(learned, panel)
        _, scales = plan.target.fit(panel, self.name)
        train_start = panel.start
        series_index = fit_index.astype(np.float64)
        is_known = fit_index >= 0
        has_scale = is_known.copy()
        has_scale[is_known] = learned["scale"][fit_index[is_known]] > 0  # 0: constant in fit
        for name, values in scales.items():
            selected = has_scale if name in ("scale", "centre", "drift") else is_known
            values[selected] = learned[name][fit_index[selected]]
        train_start[is_known] = learned["began"][fit_index[is_known]]
        series_index[is_known] = learned["owner"][fit_index[is_known]]
        state = _series_state.initial_state(plan, panel, scales, train_start, series_index)
        if self.per_series:
            state["regressors"] = learned["regressors"]
        return replace(learned, by_series=state)

    @one_thread_if_forked()
    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        """The mean and, with `quantiles`, the quantile forecasts."""
        future_steps = self._future_steps(learned, steps, future)
        residual_std = self._residual_std(learned) if self.point_kind == "mean" else None
        mean = future_steps.invert(self._forecast_transformed(future_steps, 0), residual_std)
        if not self.quantiles:
            return PointForecast(mean, self.name)
        levels = tuple(sorted(set(self.quantiles)))
        quantile_forecasts = [future_steps.invert(self._forecast_transformed(future_steps, k + 1)) for k in range(len(levels))]
        return QuantileForecast(mean, levels, np.stack(quantile_forecasts, axis=-1), self.name)

    def _future_steps(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> FutureSteps:
        covariates = _rescaling.apply_scales(future, learned["units"])
        return FutureSteps(Plan.from_dict(learned["plan"]), learned, steps, covariates)

    @one_thread_if_forked()
    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        from deepforecast.models.regression import _contributions

        return _contributions.components(self, learned, steps, future)

    def _forecast_transformed(self, future_steps: FutureSteps, position: int) -> Floats:
        """Forecasts (series, steps) on the transformed scale.

        `position` selects the regressor of each step: 0 for the mean, 1 + k for the k-th smallest quantile.
        """
        regressors = future_steps.learned["regressors"]
        if not self.per_series:
            return future_steps.predict(regressors.models, position, self._predict_rows)
        return np.concatenate(
            [
                future_steps.select_series(index).predict(series_regressors.models, position, self._predict_rows)
                for index, series_regressors in enumerate(regressors)
            ]
        )

    def _residual_std(self, learned: LearnedState) -> Floats | None:
        """Standard deviation (series,) of the residuals on the transformed scale; None without `transform`."""
        if self.transform is None:
            return None
        regressors = learned["regressors"]
        return (
            np.array([series_regressors.residual_std for series_regressors in regressors])
            if self.per_series
            else np.full(len(learned["began"]), regressors.residual_std)
        )

    def _drop_histories(self, learned: LearnedState) -> LearnedState:
        reason = "series seen in fit keep the scale they had there, and trees split at values of the training data"
        raise histories_required_error(self, None if self.per_series else reason)

    def _serialize(self, learned: LearnedState, serializer: SkopsSerializer) -> LearnedState:
        """Move the regressors to `shared` as a list of dicts, because `by_series` can only have arrays of numbers."""
        regressors = learned["regressors"]
        if self.per_series:
            arrays = {name: values for name, values in learned.by_series.items() if name != "regressors"}
            serialized = [self._serialize_trained(series_regressors, serializer) for series_regressors in regressors]
            return replace(learned, by_series=arrays, shared={**learned.shared, "regressors": serialized})
        return replace(learned, shared={**learned.shared, "regressors": self._serialize_trained(regressors, serializer)})

    def _deserialize(self, learned: LearnedState, serializer: SkopsSerializer) -> LearnedState:
        """Restore the regressors; `InvalidManifest` if the plan of the file does not match its arrays."""
        check_plan(learned, self.per_series)
        stored = learned["regressors"]
        shared = {name: value for name, value in learned.shared.items() if name != "regressors"}
        if not self.per_series:
            return replace(learned, shared={**shared, "regressors": self._deserialize_trained(stored, serializer)})
        regressors = np.empty(len(stored), dtype=object)
        regressors[:] = [self._deserialize_trained(fields, serializer) for fields in stored]
        return replace(learned, by_series={**learned.by_series, "regressors": regressors}, shared=shared)

    def _serialize_trained(self, regressors: TrainedRegressors, serializer: SkopsSerializer) -> dict[str, Any]:
        """The fields of `TrainedRegressors` as lists, arrays and numbers."""
        return {
            "spread": regressors.residual_std,
            "models": [
                [self._serialize_regressor(regressor, serializer) for regressor in step] for step in regressors.models
            ],
        }

    @one_thread_if_forked()
    def _deserialize_trained(self, stored: Mapping[str, Any], serializer: SkopsSerializer) -> TrainedRegressors:
        regressors = [[self._deserialize_regressor(fields, serializer) for fields in step] for step in stored["models"]]
        return TrainedRegressors(regressors, stored["spread"])

    # -- hooks of a family member ----------------------------------------------------------------------------------------------

    @abstractmethod
    def _train(self, sample: Sample, level: float | None) -> Any:
        """Train a regressor for the mean, or for the quantile at probability `level`."""

    @abstractmethod
    def _predict_rows(self, regressor: Any, rows: Any) -> Floats:
        """Predictions (rows,) or, with several outputs, (rows, outputs) for rows of the feature matrix.

        The prediction of a row must not depend on the other rows.
        """

    def _contributions(self, regressor: Any, rows: Any) -> Floats:
        """Additive contributions of the columns to each prediction, then the base value: (rows, columns + 1).

        They add up to the prediction. With several outputs per row: (rows, columns + 1, outputs).
        """
        raise NotImplementedError

    def _feature_importance(self, regressor: Any) -> Floats | None:
        """Importance (columns,) on any scale, of 0 or more, or None if the regressor does not define it."""
        return None

    @abstractmethod
    def _serialize_regressor(self, regressor: Any, serializer: SkopsSerializer) -> dict[str, Any]:
        """Convert a regressor to arrays, numbers and text."""

    @abstractmethod
    def _deserialize_regressor(self, stored: Mapping[str, Any], serializer: SkopsSerializer) -> Any:
        """Restore a regressor from the result of `_serialize_regressor`."""


def _to_list(categories: tuple[str, ...] | None) -> list[str] | None:
    return None if categories is None else list(categories)
