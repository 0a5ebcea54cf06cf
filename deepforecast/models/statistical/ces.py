"""Complex exponential smoothing with a given form of season."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from deepforecast.models.statistical._complex_smoothing import FORMS, MIN_VALUES, ComplexSmoothing


@register
class CES(ComplexSmoothing):
    """Complex exponential smoothing: level and error are one complex number, so that level and trend need not be told apart.

    `seasonal`: "none"; "simple", where a value follows that of a season before; "partial", with an additive season; "full", with
    a complex one, additive or multiplicative as the data have it. Parameters minimise the sum of squared errors after
    backcasting (forth, back and forth again), inside the region of stability.
    Interval: from the linear state space form. Missing values are stepped over (an error of 0); bands of the steps after such
    rows at the end count them. Bands: Student's t with n - k degrees of freedom and a variance 1 + k / n times as large, for k
    numbers fitted, first states among them; errors that grow with the forecasts (by likelihood) or follow each other (a
    correlation above 1.96 / sqrt(n)) make it wider. After 30 values an 80 % band 12 steps ahead holds about 70 %.
    Reference: Svetunkov, Kourentzes & Ord (2022), Complex exponential smoothing, *Naval Research Logistics* 69.

    Measured coverage of 80 % intervals at defaults: M1 yearly 65 %, M1 quarterly 68 %, M1 monthly
    78 %, M4 hourly (100 series) 92 %, NN5 daily 79 % (benchmarks/bench_coverage.py).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=12), "y": 6 * [10.0, 20.0]})
    >>> CES(seasonal="simple", horizon=2, season_length=2).fit(frame).predict().round({"CES": 3})
              ds   CES
    0 2024-01-13  10.0
    1 2024-01-14  20.0
    """

    seasonal: Literal["none", "simple", "partial", "full"] = param(
        default="none", search=FORMS, help="the form of the season",
    )

    @staticmethod
    def examples() -> list[dict[str, Any]]:
        """What the contract is checked with."""
        return [{"seasonal": season} for season in FORMS]

    @property
    def coverage_process(self) -> str:
        """The process that its intervals are checked on."""
        return "local_level" if self.seasonal == "none" else "seasonal_local_level"

    def _idle(self) -> Iterator[tuple[str, str]]:
        if self.seasonal == "none":
            yield "season_length", "with seasonal='none'. Say seasonal='full' (or 'simple', 'partial'), or leave it out"

    def _season(self, panel: Panel) -> int:
        return 1 if self.seasonal == "none" else super()._season(panel)

    def _min_observations(self, panel: Panel) -> int:
        if self.seasonal == "none":
            return MIN_VALUES
        length = self._season(panel)
        if length == 1:
            raise ParameterError(
                f"{self.name}: seasonal={self.seasonal!r} needs a season_length of 2 or more; it is 1. Say seasonal='none'."
            )
        return max(MIN_VALUES, 2 * length)

    def _forms(self, counts: Ints, season: int) -> Any:
        return np.tile(np.array(FORMS) == self.seasonal, (len(counts), 1))

    def _score(self, fit: Floats, n_parameters: Floats, count: Floats) -> Floats:
        return fit
