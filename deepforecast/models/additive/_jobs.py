"""Jobs of a fit: series with the same timestamps and covariates share one design matrix."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.calendar import Timestamps, timestamps_at
from deepforecast.data.components import REGRESSOR, ComponentSpecs, condition_columns, time_component_columns
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.additive._design_matrix import Design, build_design
from deepforecast.models.additive._scaling import Bounds, bounds, refuse_crossed_bounds, used_rows

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet

BLOCK = 250  # maximum number of series per job, so that jobs can run in parallel


@dataclass(frozen=True)
class Job:
    """Series with the same design: their indices in the panel, and values, caps and floors at the used rows."""

    design: Design
    series_indices: list[int]
    values: list[Floats]
    caps: list[Floats]
    floors: list[Floats]


@dataclass(frozen=True)
class FitData:
    """A panel with its design columns per distinct timestamp (`time_columns`), and a mask of the used rows."""

    panel: Panel
    components: ComponentSpecs
    timestamps: Timestamps
    time_columns: dict[str, Floats]
    used_rows: NDArray[np.bool_]
    bounds: Bounds

    def rows(self, index: int) -> Ints:
        """Indices of the used rows of a series in the panel."""
        start, stop = self.panel.indptr[index], self.panel.indptr[index + 1]
        return np.asarray(start + np.flatnonzero(self.used_rows[start:stop]))

    def groups(self) -> list[list[int]]:
        """The indices of the series in each job: at most `BLOCK` series with the same timestamps and covariates."""
        open_groups: dict[bytes, list[int]] = {}
        groups: list[list[int]] = []
        for index in range(len(self.panel)):
            key = self._key(self.rows(index))
            if key not in open_groups or len(open_groups[key]) == BLOCK:
                open_groups[key] = []
                groups.append(open_groups[key])
            open_groups[key].append(index)
        return groups

    def job(self, model: Prophet, series_indices: list[int]) -> Job:
        """Build the job of a group of series; the design is that of the first of them."""
        rows = [self.rows(index) for index in series_indices]
        design = build_design(model, self.components, self.time_columns, self.timestamps, rows[0], self.panel)
        values, caps, floors = (
            [column[series_rows] for series_rows in rows] for column in (self.panel.y, self.bounds.cap, self.bounds.floor)
        )
        return Job(design, series_indices, values, caps, floors)

    def _key(self, rows: Ints) -> bytes:
        """Hash of timestamps, conditions and regressors at `rows`; series with equal keys have the same design."""
        digest = blake2b(self.timestamps.index[rows].tobytes(), digest_size=16)
        for name in (
            *condition_columns(self.components),
            *(component.name for component in self.components if component.kind == REGRESSOR),
        ):
            digest.update(np.ascontiguousarray(self.panel.covariates[name].values[rows]).tobytes())
        return digest.digest()


def prepare_fit(model: Prophet, panel: Panel, components: ComponentSpecs) -> FitData:
    """Compute what the jobs of a fit share; `DataError` if cap and floor cross with a logistic trend."""
    timestamps = timestamps_at(panel.calendar, panel.row_positions)
    used = used_rows(model, panel, components)
    row_bounds = bounds(model, panel.covariates, len(panel.y))
    if model.growth == "logistic":
        refuse_crossed_bounds(model, panel, row_bounds, used)
    time_columns = time_component_columns(components, timestamps, model.country)
    return FitData(panel, components, timestamps, time_columns, used_rows=used, bounds=row_bounds)
