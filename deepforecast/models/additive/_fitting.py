"""The work of a fit, cut into jobs: series on the same rows share one design, which is made when its job is done."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.parts import REGRESSOR, Parts, conditions
from deepforecast.data.stamps import Stamps, stamps_at
from deepforecast.data.time_columns import table
from deepforecast.models.additive._designing import Design, designed
from deepforecast.models.additive._scaling import Bounds, bounds, refuse_crossed, used_rows

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet

BLOCK = 250  # series of one job: work for several threads


@dataclass(frozen=True)
class Job:
    """Series of one design: their numbers, values, and cap and floor at their rows."""

    design: Design
    numbers: list[int]
    values: list[Floats]
    caps: list[Floats]
    floors: list[Floats]


@dataclass(frozen=True)
class Work:
    """A panel as it is fitted: `held` are the columns of the parts at each stamp, `used` the rows that count."""

    panel: Panel
    parts: Parts
    stamps: Stamps
    held: dict[str, Floats]
    used: NDArray[np.bool_]
    limits: Bounds

    def rows(self, number: int) -> Ints:
        """The rows of a series that count."""
        begin, end = self.panel.indptr[number], self.panel.indptr[number + 1]
        return np.asarray(begin + np.flatnonzero(self.used[begin:end]))

    def groups(self) -> list[list[int]]:
        """The series of each job, by number."""
        found: dict[bytes, list[int]] = {}
        every: list[list[int]] = []
        for number in range(len(self.panel)):
            key = self._key(self.rows(number))
            if key not in found or len(found[key]) == BLOCK:
                found[key] = []
                every.append(found[key])
            found[key].append(number)
        return every

    def job(self, model: Prophet, numbers: list[int]) -> Job:
        """The series of a job with their design."""
        rows = [self.rows(number) for number in numbers]
        design = designed(model, self.parts, self.held, self.stamps, rows[0], self.panel)
        values, caps, floors = (
            [what[one] for one in rows] for what in (self.panel.y, self.limits.cap, self.limits.floor)
        )
        return Job(design, numbers, values, caps, floors)

    def _key(self, rows: Ints) -> bytes:
        """Tells designs apart: the stamps of the values, and what covariates are there."""
        digest = blake2b(self.stamps.place[rows].tobytes(), digest_size=16)
        for name in (*conditions(self.parts), *(one.name for one in self.parts if one.kind == REGRESSOR)):
            digest.update(np.ascontiguousarray(self.panel.covariates[name].values[rows]).tobytes())
        return digest.digest()


def work_of(model: Prophet, panel: Panel, parts: Parts) -> Work:
    """What a fit has to do."""
    stamps = stamps_at(panel.calendar, panel.row_positions)
    used, limits = used_rows(model, panel, parts), bounds(model, panel.covariates, len(panel.y))
    if model.growth == "logistic":
        refuse_crossed(model, panel, limits, used)
    return Work(panel, parts, stamps, table(parts, stamps, model.country), used, limits)
