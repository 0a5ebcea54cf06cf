"""Fitted regressors as plain arrays: what each says of rows, and how it is written down and read back.

Line         linear models                    Machine      support vectors
Layers       networks                         Neighbours   the rows themselves
"""

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
    """A regressor that has learned."""

    def predict(self, rows: Any) -> Floats:
        """What it says of rows; of several values a row, one column each."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """It as arrays and numbers."""
        ...


@dataclass(frozen=True)
class Standardization:
    """Features brought to mean 0 and spread 1, and the target too. A missing feature is as its mean."""

    feature_means: Floats
    feature_scales: Floats
    target_means: Floats
    target_scales: Floats

    @classmethod
    def from_sample(cls, sample: Sample) -> Standardization:
        """The scales of a sample; a column that never varies counts as nothing."""
        target = sample.target.reshape(len(sample), -1)
        feature_means, target_means = (np.average(values, axis=0, weights=sample.weight) for values in (sample.rows, target))
        feature_std = np.sqrt(np.average((sample.rows - feature_means) ** 2, axis=0, weights=sample.weight))
        target_std = np.sqrt(np.average((target - target_means) ** 2, axis=0, weights=sample.weight))
        divisors = sample.divisors(feature_means, feature_std, float(target_std.max()))
        return cls(feature_means, divisors, target_means, np.where(target_std > 1e-12 * np.abs(target_means), target_std, 1.0))

    def scale_features(self, rows: Any) -> Floats:
        """Rows on that scale."""
        return np.asarray((np.where(np.isfinite(rows), rows, self.feature_means) - self.feature_means) / self.feature_scales)

    def scale_target(self, sample: Sample) -> Floats:
        """The target on that scale, flat if it is one value a row."""
        scaled = (sample.target.reshape(len(sample), -1) - self.target_means) / self.target_scales
        return np.asarray(scaled.reshape(sample.target.shape))

    def unscale_target(self, predictions: Floats) -> Floats:
        """Forecasts on the scale of the target."""
        predictions = predictions.reshape(len(predictions), -1) * self.target_scales + self.target_means
        return predictions[:, 0] if predictions.shape[1] == 1 else predictions


@dataclass(frozen=True)
class ScaledRegressor:
    """What all of them share: the scales, and their fields as what is written."""

    feature_means: Floats
    feature_scales: Floats
    target_means: Floats
    target_scales: Floats

    @cached_property
    def standardization(self) -> Standardization:
        """The scales of features and target."""
        return Standardization(self.feature_means, self.feature_scales, self.target_means, self.target_scales)

    def to_dict(self) -> dict[str, Any]:
        """It as arrays and numbers."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Back from them; what does not fit together is refused."""
        regressor = cls(**stored)
        if not (len(regressor.feature_means) == len(regressor.feature_scales) == regressor._n_columns() and len(regressor.target_means) == len(regressor.target_scales)):
            name = cls.__name__.lower()
            raise DataError(f"The {name} in the file must have one weight per feature. Save the model again.")
        return regressor

    def _n_columns(self) -> int:
        return len(self.feature_means)


@dataclass(frozen=True)
class LinearRegressor(ScaledRegressor):
    """A linear model: `weights` (columns, values) of scaled features."""

    weights: Floats
    constant: Floats

    def predict(self, rows: Any) -> Floats:
        """Each row whatever stands beside it."""
        return self.standardization.unscale_target(np.einsum("rc,cs->rs", self.standardization.scale_features(rows), self.weights) + self.constant)

    def contributions(self, rows: Any) -> Floats:
        """What each column adds, and last the mean of the target: (rows, columns + 1, values)."""
        base = self.constant * self.target_scales + self.target_means
        contributions = self.standardization.scale_features(rows)[:, :, None] * (self.weights * self.target_scales)
        return np.concatenate([contributions, np.broadcast_to(base, (len(rows), 1, len(base)))], axis=1)

    @property
    def gains(self) -> Floats:
        """How far a usual change of each column moves what it says."""
        return np.asarray(np.abs(self.weights * self.target_scales).sum(axis=1))

    def _n_columns(self) -> int:
        return len(self.weights)


@dataclass(frozen=True)
class SupportVectorRegressor(ScaledRegressor):
    """A support vector machine with a Gaussian kernel."""

    vectors: Floats
    weights: Floats
    constant: float
    gamma: float

    def predict(self, rows: Any) -> Floats:
        """The weighted nearness to the support vectors."""
        rows = self.standardization.scale_features(rows)
        squared_distances = (rows**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1) - 2 * rows @ self.vectors.T
        return self.standardization.unscale_target(np.exp(-self.gamma * np.maximum(squared_distances, 0)) @ self.weights + self.constant)

    def _n_columns(self) -> int:
        return int(self.vectors.shape[1])


@dataclass(frozen=True)
class PerceptronRegressor(ScaledRegressor):
    """A network: `weights` and `constants` of each layer, with a rectifier between them."""

    weights: list[Floats]
    constants: list[Floats]

    def predict(self, rows: Any) -> Floats:
        """From layer to layer."""
        activations = self.standardization.scale_features(rows)
        for layer, (weights, constants) in enumerate(zip(self.weights, self.constants, strict=True)):
            activations = (np.maximum(activations, 0) if layer else activations) @ weights + constants
        return self.standardization.unscale_target(activations)

    def _n_columns(self) -> int:
        return len(self.weights[0])


@dataclass(frozen=True)
class NeighborsRegressor(ScaledRegressor):
    """The rows it was fitted on: a forecast is the mean of the nearest ones, weighted by how near they are."""

    rows: Floats
    targets: Floats
    options: dict[str, Any]

    def predict(self, rows: Any) -> Floats:
        """What followed on the nearest rows."""
        return self.standardization.unscale_target(np.asarray(self._index.predict(self.standardization.scale_features(rows))))

    @cached_property
    def _index(self) -> Any:
        from sklearn.neighbors import KNeighborsRegressor

        options = {**self.options, "n_neighbors": min(int(self.options.get("n_neighbors", 5)), len(self.rows))}
        return KNeighborsRegressor(**options).fit(self.rows, self.targets)

    def _n_columns(self) -> int:
        return int(self.rows.shape[1])
