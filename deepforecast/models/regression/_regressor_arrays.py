"""Fitted regressors as plain arrays: prediction and serialization."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.errors import DataError
from deepforecast.models.regression._samples import Sample


class FittedRegressor(Protocol):
    """Protocol of fitted regressors."""

    def predict(self, rows: Any) -> Floats:
        """Predictions of rows; one column per output if there are several."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Convert to arrays and numbers."""
        ...


@dataclass(frozen=True)
class Standardization:
    """Means and divisors of features and target; missing features are replaced by the mean.

    Divisors of features are standard deviations with a lower bound, and infinite for constant features, see
    `Sample.divisors`.
    """

    feature_means: Floats
    feature_scales: Floats
    target_means: Floats
    target_scales: Floats

    @classmethod
    def from_sample(cls, sample: Sample) -> Standardization:
        """Weighted means and divisors of a sample; constant targets are divided by 1."""
        target = sample.target.reshape(len(sample), -1)
        feature_means, target_means = (np.average(values, axis=0, weights=sample.weight) for values in (sample.rows, target))
        feature_std = np.sqrt(np.average((sample.rows - feature_means) ** 2, axis=0, weights=sample.weight))
        target_std = np.sqrt(np.average((target - target_means) ** 2, axis=0, weights=sample.weight))
        feature_scales = sample.divisors(feature_means, feature_std, float(target_std.max()))
        target_scales = np.where(target_std > 1e-12 * np.abs(target_means), target_std, 1.0)
        return cls(feature_means, feature_scales, target_means, target_scales)

    def scale_features(self, rows: Any) -> Floats:
        return np.asarray((np.where(np.isfinite(rows), rows, self.feature_means) - self.feature_means) / self.feature_scales)

    def scale_target(self, sample: Sample) -> Floats:
        """Scaled target, one-dimensional for a single output."""
        scaled = (sample.target.reshape(len(sample), -1) - self.target_means) / self.target_scales
        return np.asarray(scaled.reshape(sample.target.shape))

    def unscale_target(self, predictions: Floats) -> Floats:
        predictions = predictions.reshape(len(predictions), -1) * self.target_scales + self.target_means
        return predictions[:, 0] if predictions.shape[1] == 1 else predictions


@dataclass(frozen=True)
class ScaledRegressor:
    """Base class of regressors on standardized features; the fields of the dataclass are serialized."""

    feature_means: Floats
    feature_scales: Floats
    target_means: Floats
    target_scales: Floats

    @cached_property
    def standardization(self) -> Standardization:
        return Standardization(self.feature_means, self.feature_scales, self.target_means, self.target_scales)

    def to_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Restore from `to_dict`; inconsistent arrays raise `DataError`."""
        regressor = cls(**stored)
        if not (
            len(regressor.feature_means) == len(regressor.feature_scales) == regressor._n_columns()
            and len(regressor.target_means) == len(regressor.target_scales)
        ):
            raise DataError(
                f"The arrays of the fitted {cls.__name__} in the file must have the same number of features.",
                hint="Save the model again.",
            )
        return regressor

    def _n_columns(self) -> int:
        return len(self.feature_means)


@dataclass(frozen=True)
class LinearRegressor(ScaledRegressor):
    """Linear model of standardized features: `weights` (columns, outputs) and `constant` (outputs,)."""

    weights: Floats
    constant: Floats

    def predict(self, rows: Any) -> Floats:
        """Predictions; einsum instead of `@`, so that the prediction of a row does not depend on the number of rows."""
        return self.standardization.unscale_target(
            np.einsum("rc,cs->rs", self.standardization.scale_features(rows), self.weights) + self.constant
        )

    def contributions(self, rows: Any) -> Floats:
        """Contributions of the columns, then the base value (prediction at mean features): (rows, columns + 1, outputs)."""
        base = self.constant * self.target_scales + self.target_means
        contributions = self.standardization.scale_features(rows)[:, :, None] * (self.weights * self.target_scales)
        return np.concatenate([contributions, np.broadcast_to(base, (len(rows), 1, len(base)))], axis=1)

    @property
    def gains(self) -> Floats:
        """Absolute change of the prediction per standard deviation of each column, summed over outputs."""
        return np.asarray(np.abs(self.weights * self.target_scales).sum(axis=1))

    def _n_columns(self) -> int:
        return len(self.weights)


@dataclass(frozen=True)
class SupportVectorRegressor(ScaledRegressor):
    """Support vector regression with a radial basis function kernel, exp(-gamma |x - v|^2).

    `vectors` (support vectors, columns), with their dual coefficients `weights`.
    """

    vectors: Floats
    weights: Floats
    constant: float
    gamma: float

    def predict(self, rows: Any) -> Floats:
        """Predictions sum_i weights_i exp(-gamma |x - v_i|^2) + constant, on the scale of the target."""
        features = self.standardization.scale_features(rows)
        # |x - v|^2 = |x|^2 + |v|^2 - 2 x'v, which may be slightly negative due to rounding
        squared_distances = (features**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1) - 2 * features @ self.vectors.T
        return self.standardization.unscale_target(
            np.exp(-self.gamma * np.maximum(squared_distances, 0)) @ self.weights + self.constant
        )

    def _n_columns(self) -> int:
        return int(self.vectors.shape[1])


@dataclass(frozen=True)
class PerceptronRegressor(ScaledRegressor):
    """Multilayer perceptron with ReLU activations: `weights` (inputs, outputs) and `constants` of each layer."""

    weights: list[Floats]
    constants: list[Floats]

    def predict(self, rows: Any) -> Floats:
        """Predictions by a forward pass, with a linear output layer."""
        activations = self.standardization.scale_features(rows)
        for layer, (weights, constants) in enumerate(zip(self.weights, self.constants, strict=True)):
            activations = (np.maximum(activations, 0) if layer else activations) @ weights + constants
        return self.standardization.unscale_target(activations)

    def _n_columns(self) -> int:
        return len(self.weights[0])


@dataclass(frozen=True)
class NeighborsRegressor(ScaledRegressor):
    """k-nearest neighbours among the standardized training rows.

    `options`: `n_neighbors`, `weights` and `p` of scikit-learn's KNeighborsRegressor.
    """

    rows: Floats
    targets: Floats
    options: dict[str, Any]

    def predict(self, rows: Any) -> Floats:
        """Weighted mean of the targets of the nearest rows."""
        return self.standardization.unscale_target(np.asarray(self._index.predict(self.standardization.scale_features(rows))))

    @cached_property
    def _index(self) -> Any:
        from sklearn.neighbors import KNeighborsRegressor

        options = {**self.options, "n_neighbors": min(int(self.options.get("n_neighbors", 5)), len(self.rows))}
        return KNeighborsRegressor(**options).fit(self.rows, self.targets)

    def _n_columns(self) -> int:
        return int(self.rows.shape[1])
