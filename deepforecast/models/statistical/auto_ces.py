"""Complex exponential smoothing with the form of season that fits a series best."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models import _seasonality as seasonality
from deepforecast.models.baselines._base import resolve_season
from deepforecast.models.statistical._complex_smoothing import FORMS, ComplexSmoothing, n_fitted_parameters


@register
class AutoCES(ComplexSmoothing):
    """Complex exponential smoothing without season, or with a simple, partial or full one: whichever `CES` fits best.

    A form needs two seasons and more values than it has numbers to fit; a series too short for every season is forecast
    without one, and named in a `DataWarning`. Parameters counted are those of smoothing and the
    variance, as Svetunkov, Kourentzes & Ord do. Interval: that of the model chosen. Missing values are stepped over (an error
    of 0); bands of the steps after such rows at the end count them. Bands as in `CES`: after 30 values an 80 % band 12 steps
    ahead holds about 70 %.
    Reference: Svetunkov, Kourentzes & Ord (2022), Complex exponential smoothing, *Naval Research Logistics* 69.

    Measured coverage of 80 % intervals at defaults: M1 yearly 65 %, M1 quarterly 69 %, M1 monthly
    78 %, M4 hourly (100 series) 90 %, NN5 daily 88 % (benchmarks/bench_coverage.py).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=12), "y": 6 * [10.0, 20.0]})
    >>> AutoCES(horizon=2, season_length=2).fit(frame).predict().round({"AutoCES": 3})
              ds  AutoCES
    0 2024-01-13     10.0
    1 2024-01-14     20.0
    """

    coverage_process: ClassVar[str] = "local_level"

    criterion: Literal["aicc", "aic", "bic"] = param(
        default="aicc", help="what the form of a series is chosen by",
    )

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        season = resolve_season(self.season_length, panel, self, "season_length")
        seasonality.warn_short_series(panel, season, self.name, int(_required_values(season)[1:].min()), panel.observed)
        return super()._fit(panel, monitor)

    def _forms(self, counts: Ints, season: int) -> Any:
        enough = counts[:, None] >= _required_values(season) if season > 1 else False
        return np.where(np.array(FORMS) == "none", True, np.broadcast_to(enough, (len(counts), len(FORMS))))

    def _score(self, fit: Floats, n_parameters: Floats, count: Floats) -> Floats:
        if self.criterion == "bic":
            return np.asarray(fit + np.log(count) * n_parameters)
        correction = 2 * n_parameters * (n_parameters + 1) / np.maximum(count - n_parameters - 1, 1e-9) if self.criterion == "aicc" else 0.0
        return np.asarray(fit + 2 * n_parameters + correction)


def _required_values(season: int) -> Ints:
    """How many values each form needs."""
    return np.maximum(n_fitted_parameters(season) + 1, 2 * season)
