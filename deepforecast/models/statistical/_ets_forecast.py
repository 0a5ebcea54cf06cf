"""The forecast of exponential smoothing: Student's t where there is a formula, sample paths elsewhere, transformed back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.core.noise import standard_normal
from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats, Ints
from deepforecast.models.statistical import _ets as ets
from deepforecast.models.statistical._bands import StudentForecast, freedom_of, mixed
from deepforecast.models.statistical._box_cox import corrected, refuse_beyond, transformed

PATHS = 5000
AT_ONCE = 2_000_000  # numbers of sample paths held at a time


@dataclass(frozen=True)
class ExponentialForecast(Forecast):
    """`middle` and `base` (mu and q) are of the transformed series, without regressors; `offsets` is what these add."""

    learned: Learned
    middle: Floats
    base: Floats
    offsets: Floats
    first: int = 0

    @classmethod
    def of(cls, learned: Learned, offsets: Floats) -> ExponentialForecast:
        """From the state, `offsets` (series, steps) ahead."""
        from deepforecast.kernels.ets.forecasting import means

        return cls(learned, *means(ets.model(learned.by_series, "state"), offsets.shape[1]), offsets)

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """The point; corrected for the bend of a Box-Cox transformation."""
        found = self._height()[:, self.first :]
        power = self.learned["power"][:, None]
        if np.isnan(power).all():
            return found
        deviation = self._deviations()[:, self.first :]
        return refuse_beyond(corrected(found, np.where(np.isnan(deviation), 0.0, deviation), power), self.learned)

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Any probability."""
        freedom, wider = _freedom(self.learned.by_series)
        found = StudentForecast(self._height(), self._deviations() * wider[:, None], freedom).quantiles(probabilities)
        parts = self._parts_to_sample()
        draws = self._draws(parts[-1]) if parts else np.empty(0)
        for some in parts:
            found[some] = np.moveaxis(np.quantile(self._paths(some, draws), list(probabilities), axis=1), 0, -1)
        back = transformed(found, self.learned["power"][:, None, None], back=True)
        return refuse_beyond(back[:, self.first :], self.learned)

    def after(self, steps: int) -> ExponentialForecast:
        """The same without its first steps."""
        return replace(self, first=self.first + steps)

    def parts(self) -> dict[str, Floats]:
        """Level, trend, season and regressors, one on top of the other, in the units of the data."""
        power, level = self.learned["power"][:, None], self.learned["state"][:, :1]
        with np.errstate(over="ignore", invalid="ignore"):
            heights = [np.broadcast_to(level, self.base.shape), self.base, self.middle, self.middle + self.offsets]
            heights = [transformed(one, power, back=True) for one in heights]
            rest = {name: heights[i + 1] - heights[i] for i, name in enumerate(("trend", "season", "regressors"))}
        return {"level": np.array(heights[0]), **rest}

    def _height(self) -> Floats:
        """The mean of the transformed series. Where errors or a season multiply values are positive: it goes down to 0."""
        form = self.learned["form"]
        least = np.where((form[:, 0] == 1) | (form[:, 3] == 2), 0.0, -np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.maximum(self.middle + self.offsets, least[:, None])

    def _has_formula(self) -> Any:
        from deepforecast.kernels.ets.forecasting import has_formula

        return has_formula(self.learned["form"], bool(self.learned["effects"].shape[1]))

    def _deviations(self) -> Floats:
        """Standard deviations of the transformed series: by formula, 0 for what is certain, else of sample paths' quantiles."""
        from deepforecast.kernels.ets.forecasting import deviations

        formula = np.flatnonzero(self._has_formula())
        found = np.zeros(self.offsets.shape)
        if len(formula):
            mine = self.learned.take(formula) if len(formula) < len(found) else self.learned
            found[formula] = deviations(ets.model(mine.by_series, "state"), mine["sigma"], self.offsets[formula])
        return found

    def _parts_to_sample(self) -> list[Ints]:
        """The series whose quantiles need sample paths, as many at a time as memory allows, those of the least age first."""
        sampled = np.flatnonzero(~self._has_formula() & ~(self.learned["sigma"] == 0.0))
        sampled = sampled[np.argsort(self.learned["age"][sampled], kind="stable")]
        steps = self.learned["age"][sampled] + self.offsets.shape[1]  # increasing
        parts, first = [], 0
        for last in range(1, len(sampled) + 1):
            if last == len(sampled) or (last + 1 - first) * steps[last] * PATHS > AT_ONCE:
                parts.append(sampled[first:last])
                first = last
        return parts

    def _draws(self, some: Ints) -> Floats:
        """Normal draws for the longest sample paths of some series."""
        rows = int(self.learned["age"][some].max()) + self.offsets.shape[1]
        return standard_normal(0, np.zeros((1, 1)), (1 + rows, PATHS))

    def _paths(self, some: Ints, draws: Floats) -> Floats:
        """Sample paths of some series, from the same draws for all: whatever the units, and whatever stands beside them."""
        from deepforecast.kernels.ets.forecasting import paths

        known = {name: self.learned[name][some] for name in ("form", "rates", "state", "age", "sigma", "criteria", "ripple")}
        rows = 1 + int(known["age"].max()) + self.offsets.shape[1]
        return paths(ets.model(known, "state"), errors_of(known, draws[:, :rows]), self.offsets[some])


def errors_of(known: Mapping[str, Any], draws: Floats) -> Floats:
    """Errors of sample paths (series, rows, samples): of Student's t, those of a path by the first row of normal draws."""
    freedom, wider = _freedom(known)
    mixing = mixed(np.broadcast_to(draws[:, 0], (len(freedom), draws.shape[2])), freedom)
    return np.asarray(draws[:, 1:] * (mixing * (known["sigma"] * wider)[:, None])[:, None, :])


def _freedom(known: Mapping[str, Any]) -> tuple[Floats, Floats]:
    _, parameters, count = known["criteria"].T
    return freedom_of(count, parameters, known["ripple"])
