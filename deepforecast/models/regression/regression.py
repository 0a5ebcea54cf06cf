"""Any regressor of scikit-learn, or compatible with it, on lags, date features and covariates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from deepforecast.core.encoding import SkopsSerializer
from deepforecast.core.params import param
from deepforecast.core.registry import Capabilities, register
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from deepforecast.models.regression import _custom_estimator
from deepforecast.models.regression._base import RegressionForecaster
from deepforecast.models.regression._custom_estimator import FittedEstimator, Regressor
from deepforecast.models.regression._options import attribute_to_options
from deepforecast.models.regression._regressor_arrays import LinearRegressor
from deepforecast.models.regression._samples import Sample
from deepforecast.models.regression._sklearn_regressors import REGRESSORS, RegressorName, accepts_weights


@register
class Regression(RegressionForecaster):
    """A scikit-learn regressor on lags, date features and covariates, one model for all series.

    `regressor` is a name or an object with `fit`, `predict` and `get_params`, such as a pipeline;
    clones of the object are fitted. "quantile" is linear quantile regression, "svr" is for up to
    about ten thousand samples. Features and target of named regressors are standardized where that
    matters. The tags of an object state whether it supports missing values and several outputs.
    Trees get categories as integers, other regressors one-hot encoded.

    Measured coverage of 80 % intervals with regressor='ridge', intervals='conformal': M1 monthly 84
    %, NN5 daily 88 %, EPF Nord Pool hourly 69 % (benchmarks/bench_coverage.py).

    >>> from sklearn.linear_model import LinearRegression
    >>> from deepforecast import datasets
    >>> plain = {"lag_transforms": None, "calendar": None, "differences": None}
    >>> model = Regression(LinearRegression(), horizon=3, lags=[1, 12], **plain)
    >>> model.fit(datasets.load("air_passengers")).predict()["Regression"].round(0).tolist()
    [457.0, 437.0, 460.0]

    References
    ----------
    Pedregosa et al. (2011), "Scikit-learn: Machine Learning in Python", arXiv:1201.0490.
    """

    capabilities = replace(RegressionForecaster.capabilities, explains=True)

    regressor: RegressorName | Regressor = param(
        kw_only=False,
        help="name of a regressor, such as 'ridge', or an object compatible with scikit-learn",
    )
    options: dict[str, Any] | None = param(
        default=None,
        help="arguments of the scikit-learn class of a regressor given by name; None: defaults",
    )

    feature_dtype: ClassVar[type] = np.float64
    warm_up_params: ClassVar[dict[str, Any]] = {"regressor": "ridge", "options": None}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also those of a regressor object, as `regressor__alpha`."""
        parameters = super().get_params(deep)
        if deep and not isinstance(self.regressor, str):
            parameters |= {f"regressor__{name}": value for name, value in self.regressor.get_params().items()}  # type: ignore[attr-defined]
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; `regressor__alpha` is set on a clone of the regressor object. On an error none is changed."""
        nested = {name: value for name, value in parameters.items() if name.startswith("regressor__")}
        direct = {name: value for name, value in parameters.items() if name not in nested}
        regressor = direct.get("regressor", getattr(self, "regressor", None))
        if not nested or isinstance(regressor, str) or not isinstance(regressor, Regressor):
            return super().set_params(**parameters)
        return super().set_params(**{**direct, "regressor": _custom_estimator.set_nested_params(regressor, nested)})

    @property
    def coverage_slow(self) -> bool:
        """Whether measuring the coverage of its intervals takes over two seconds."""
        return self.regressor == "quantile"

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Configurations for the contract checks."""
        lines = {"regressor": "quantile", "strategy": "direct", "quantiles": [0.05, 0.5, 0.95]}
        return [{"regressor": "ridge", "strategy": "direct_multioutput"}, lines]

    @property
    def accepts_missing(self) -> bool:  # type: ignore[override]
        """Whether features may be missing."""
        regressor = self.regressor
        return (
            REGRESSORS[regressor].accepts_missing
            if isinstance(regressor, str)
            else _custom_estimator.accepts_missing(regressor)
        )

    @property
    def supports_multioutput(self) -> bool:  # type: ignore[override]
        """Whether one regressor can predict several steps."""
        regressor = self.regressor
        return (
            REGRESSORS[regressor].supports_multioutput
            if isinstance(regressor, str)
            else _custom_estimator.supports_multioutput(regressor)
        )

    @property
    def needs_encoding(self) -> bool:  # type: ignore[override]
        """Whether categorical and cyclic features are one-hot encoded."""
        regressor = self.regressor
        return (
            REGRESSORS[regressor].needs_encoding if isinstance(regressor, str) else _custom_estimator.needs_encoding(regressor)
        )

    @property
    def supports_quantiles(self) -> bool:  # type: ignore[override]
        """Whether it can be trained for a quantile."""
        return isinstance(self.regressor, str) and REGRESSORS[self.regressor].supports_quantiles

    @property
    def supports_contributions(self) -> bool:  # type: ignore[override]
        """Whether predictions are sums of contributions of the features, as in linear models."""
        return isinstance(self.regressor, str) and REGRESSORS[self.regressor].fitted_type is LinearRegressor

    def _narrow(self, declared: Capabilities) -> Capabilities:
        """Capabilities with this regressor; equivariance only for numerically stable ones."""
        capabilities, regressor = super()._narrow(declared), self.regressor
        is_stable = isinstance(regressor, str) and REGRESSORS[regressor].numerically_stable
        is_odd_function = is_stable and self.needs_encoding  # trees, the others, are not symmetric in the sign
        uses_weights = REGRESSORS[regressor].accepts_weights if isinstance(regressor, str) else accepts_weights(regressor)
        return replace(
            capabilities,
            weights=uses_weights,
            scale_equivariant=capabilities.scale_equivariant and is_stable,
            shift_equivariant=capabilities.shift_equivariant and is_stable,
            sign_equivariant=capabilities.sign_equivariant and is_odd_function,
        )

    def _min_observations(self, panel: Panel) -> int:
        """The minimum of the base class; `ParameterError` for `options` with a regressor object."""
        if self.options and not isinstance(self.regressor, str):
            raise ParameterError(
                "`options` cannot be used with a regressor object.",
                hint="Set the parameters of the object, for example Regression(Ridge(alpha=2)).",
                parameter="options",
            )
        return super()._min_observations(panel)

    def _train(self, sample: Sample, level: float | None) -> Any:
        if isinstance(self.regressor, str):
            with attribute_to_options(self.options, f"Regression({self.regressor!r})"):
                return REGRESSORS[self.regressor].train(sample, level, self.options or {})
        return _custom_estimator.fit_copy(self.regressor, sample)

    def _predict_rows(self, regressor: Any, rows: Any) -> Floats:
        return np.asarray(regressor.predict(rows))

    def _contributions(self, regressor: Any, rows: Any) -> Floats:
        return np.asarray(regressor.contributions(rows))

    def _feature_importance(self, regressor: Any) -> Floats | None:
        return getattr(regressor, "gains", None)

    def _serialize_regressor(self, regressor: Any, serializer: SkopsSerializer) -> dict[str, Any]:
        if not isinstance(regressor, FittedEstimator):
            return dict(regressor.to_dict())
        return {"object": serializer.serialize(regressor.estimator, "the fitted regressor"), "centre": regressor.feature_means}

    def _deserialize_regressor(self, stored: Mapping[str, Any], serializer: SkopsSerializer) -> Any:
        if isinstance(self.regressor, str):
            return REGRESSORS[self.regressor].fitted_type.from_dict(stored)
        return FittedEstimator(serializer.deserialize(stored["object"], "the fitted regressor"), stored["centre"])
