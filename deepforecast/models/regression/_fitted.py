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


class Fitted(Protocol):
    """A regressor that has learned."""

    def values(self, rows: Any) -> Floats:
        """What it says of rows; of several values a row, one column each."""
        ...

    def written(self) -> dict[str, Any]:
        """It as arrays and numbers."""
        ...


@dataclass(frozen=True)
class Scaled:
    """Features brought to mean 0 and spread 1, and the target too. A missing feature is as its mean."""

    centre: Floats
    spread: Floats
    middle: Floats
    scale: Floats

    @classmethod
    def of(cls, sample: Sample) -> Scaled:
        """The scales of a sample; a column that never varies counts as nothing."""
        target = sample.target.reshape(len(sample), -1)
        centre, middle = (np.average(one, axis=0, weights=sample.weight) for one in (sample.rows, target))
        spread = np.sqrt(np.average((sample.rows - centre) ** 2, axis=0, weights=sample.weight))
        scale = np.sqrt(np.average((target - middle) ** 2, axis=0, weights=sample.weight))
        divisors = sample.divisors(centre, spread, float(scale.max()))
        return cls(centre, divisors, middle, np.where(scale > 1e-12 * np.abs(middle), scale, 1.0))

    def rows(self, rows: Any) -> Floats:
        """Rows on that scale."""
        return np.asarray((np.where(np.isfinite(rows), rows, self.centre) - self.centre) / self.spread)

    def target(self, sample: Sample) -> Floats:
        """The target on that scale, flat if it is one value a row."""
        found = (sample.target.reshape(len(sample), -1) - self.middle) / self.scale
        return np.asarray(found.reshape(sample.target.shape))

    def back(self, found: Floats) -> Floats:
        """Forecasts on the scale of the target."""
        found = found.reshape(len(found), -1) * self.scale + self.middle
        return found[:, 0] if found.shape[1] == 1 else found


@dataclass(frozen=True)
class Held:
    """What all of them share: the scales, and their fields as what is written."""

    centre: Floats
    spread: Floats
    middle: Floats
    scale: Floats

    @cached_property
    def scaled(self) -> Scaled:
        """The scales of features and target."""
        return Scaled(self.centre, self.spread, self.middle, self.scale)

    def written(self) -> dict[str, Any]:
        """It as arrays and numbers."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Self:
        """Back from them; what does not fit together is refused."""
        found = cls(**said)
        if not (len(found.centre) == len(found.spread) == found._columns() and len(found.middle) == len(found.scale)):
            what = cls.__name__.lower()
            raise DataError(f"The {what} of a file has as many weights as columns; this one has not. Save it again.")
        return found

    def _columns(self) -> int:
        return len(self.centre)


@dataclass(frozen=True)
class Line(Held):
    """A linear model: `weights` (columns, values) of scaled features."""

    weights: Floats
    constant: Floats

    def values(self, rows: Any) -> Floats:
        """Each row whatever stands beside it."""
        return self.scaled.back(np.einsum("rc,cs->rs", self.scaled.rows(rows), self.weights) + self.constant)

    def shares(self, rows: Any) -> Floats:
        """What each column adds, and last the mean of the target: (rows, columns + 1, values)."""
        base = self.constant * self.scale + self.middle
        shares = self.scaled.rows(rows)[:, :, None] * (self.weights * self.scale)
        return np.concatenate([shares, np.broadcast_to(base, (len(rows), 1, len(base)))], axis=1)

    @property
    def gains(self) -> Floats:
        """How far a usual change of each column moves what it says."""
        return np.asarray(np.abs(self.weights * self.scale).sum(axis=1))

    def _columns(self) -> int:
        return len(self.weights)


@dataclass(frozen=True)
class Machine(Held):
    """A support vector machine with a Gaussian kernel."""

    vectors: Floats
    weights: Floats
    constant: float
    width: float

    def values(self, rows: Any) -> Floats:
        """The weighted nearness to the support vectors."""
        rows = self.scaled.rows(rows)
        apart = (rows**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1) - 2 * rows @ self.vectors.T
        return self.scaled.back(np.exp(-self.width * np.maximum(apart, 0)) @ self.weights + self.constant)

    def _columns(self) -> int:
        return int(self.vectors.shape[1])


@dataclass(frozen=True)
class Layers(Held):
    """A network: `weights` and `constants` of each layer, with a rectifier between them."""

    weights: list[Floats]
    constants: list[Floats]

    def values(self, rows: Any) -> Floats:
        """From layer to layer."""
        found = self.scaled.rows(rows)
        for number, (weights, constants) in enumerate(zip(self.weights, self.constants, strict=True)):
            found = (np.maximum(found, 0) if number else found) @ weights + constants
        return self.scaled.back(found)

    def _columns(self) -> int:
        return len(self.weights[0])


@dataclass(frozen=True)
class Neighbours(Held):
    """The rows it was fitted on: a forecast is the mean of the nearest ones, weighted by how near they are."""

    rows: Floats
    targets: Floats
    options: dict[str, Any]

    def values(self, rows: Any) -> Floats:
        """What followed on the nearest rows."""
        return self.scaled.back(np.asarray(self._index.predict(self.scaled.rows(rows))))

    @cached_property
    def _index(self) -> Any:
        from sklearn.neighbors import KNeighborsRegressor

        options = {**self.options, "n_neighbors": min(int(self.options.get("n_neighbors", 5)), len(self.rows))}
        return KNeighborsRegressor(**options).fit(self.rows, self.targets)

    def _columns(self) -> int:
        return int(self.rows.shape[1])
