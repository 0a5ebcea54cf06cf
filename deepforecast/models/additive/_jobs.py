"""Jobs of a fit: series with the same timestamps and covariates share one design matrix."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.components import REGRESSOR, ComponentSpecs, condition_columns
from deepforecast.data.design_columns import time_component_columns
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.timestamps import Timestamps, timestamps_at
from deepforecast.models.additive._design_matrix import Design, build_design
from deepforecast.models.additive._scaling import Bounds, bounds, refuse_crossed_bounds, used_rows

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet

BLOCK = 250  # maximum series per job, for parallelism


@dataclass(frozen=True)
class Job:
    """Series with the same design: their numbers, values, caps and floors."""

    design: Design
    series_numbers: list[int]
    values: list[Floats]
    caps: list[Floats]
    floors: list[Floats]


@dataclass(frozen=True)
class FitData:
    """A panel with its design columns per timestamp (`time_columns`) and the used rows."""

    panel: Panel
    components: ComponentSpecs
    timestamps: Timestamps
    time_columns: dict[str, Floats]
    used_rows: NDArray[np.bool_]
    bounds: Bounds

    def rows(self, number: int) -> Ints:
        """The rows of a series that are used."""
        start, stop = self.panel.indptr[number], self.panel.indptr[number + 1]
        return np.asarray(start + np.flatnonzero(self.used_rows[start:stop]))

    def groups(self) -> list[list[int]]:
        """The numbers of the series in each job."""
        open_groups: dict[bytes, list[int]] = {}
        groups: list[list[int]] = []
        for number in range(len(self.panel)):
            key = self._key(self.rows(number))
            if key not in open_groups or len(open_groups[key]) == BLOCK:
                open_groups[key] = []
                groups.append(open_groups[key])
            open_groups[key].append(number)
        return groups

    def job(self, model: Prophet, numbers: list[int]) -> Job:
        """Build the job of these series."""
        rows = [self.rows(number) for number in numbers]
        design = build_design(model, self.components, self.time_columns, self.timestamps, rows[0], self.panel)
        values, caps, floors = (
            [column[series_rows] for series_rows in rows] for column in (self.panel.y, self.bounds.cap, self.bounds.floor)
        )
        return Job(design, numbers, values, caps, floors)

    def _key(self, rows: Ints) -> bytes:
        """Hash of timestamps and covariates; equal keys have the same design."""
        digest = blake2b(self.timestamps.index[rows].tobytes(), digest_size=16)
        for name in (
            *condition_columns(self.components),
            *(component.name for component in self.components if component.kind == REGRESSOR),
        ):
            digest.update(np.ascontiguousarray(self.panel.covariates[name].values[rows]).tobytes())
        return digest.digest()


def prepare_fit(model: Prophet, panel: Panel, components: ComponentSpecs) -> FitData:
    """Collect what the jobs of a fit have in common."""
    timestamps = timestamps_at(panel.calendar, panel.row_positions)
    used, limits = used_rows(model, panel, components), bounds(model, panel.covariates, len(panel.y))
    if model.growth == "logistic":
        refuse_crossed_bounds(model, panel, limits, used)
    return FitData(panel, components, timestamps, time_component_columns(components, timestamps, model.country), used, limits)
