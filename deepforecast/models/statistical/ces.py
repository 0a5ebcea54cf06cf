"""Complex exponential smoothing of a given form."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from deepforecast.core.params import Not, param
from deepforecast.core.registry import register
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from deepforecast.models.statistical._complex_smoothing import FORMS, MIN_VALUES, ComplexSmoothing


@register
class CES(ComplexSmoothing):
    """Complex exponential smoothing of a given form.

    Level and an error component form one complex number, which also describes trends.

    Forms of the season: "none"; "simple", where the recursion runs on lagged values of the season;
    "partial", with an additive season; "full", with a complex season, which may act as additive or
    multiplicative. Parameters minimize the sum of squared errors after backcasting (forward,
    backward and forward again), within the stability region. A missing value is treated as an error
    of 0.

    Intervals follow from the linear state space form, with Student's t with n - k degrees of
    freedom and a variance 1 + k / n times as large for k estimated parameters, initial states
    included. They are wider if errors grow with the forecasts (by likelihood) or are autocorrelated
    (a correlation above 1.96 / sqrt(n)), and after missing values at the end. With 30 values an 80
    % interval 12 steps ahead covers about 70 %.

    Measured coverage of 80 % intervals at defaults: M1 yearly 65 %, M1 quarterly 68 %, M1 monthly
    78 %, M4 hourly (100 series) 92 %, NN5 daily 79 % (benchmarks/bench_coverage.py).

    See Also
    --------
    AutoCES : Chooses the form of the season.

    References
    ----------
    Svetunkov, I., Kourentzes, N. and Ord, J. K. (2022). Complex exponential smoothing. *Naval
    Research Logistics* 69. doi:10.1002/nav.22074

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=12), "y": 6 * [10.0, 20.0]})
    >>> CES(seasonal="simple", horizon=2, season_length=2).fit(frame).predict().round({"CES": 3})
              ds   CES
    0 2024-01-13  10.0
    1 2024-01-14  20.0
    """

    season_length: int | Literal["auto"] = param(default="auto", needs={"seasonal": Not("none")}, off=1)
    seasonal: Literal["none", "simple", "partial", "full"] = param(
        default="none", search=FORMS,
        help="seasonal form; 'none': non-seasonal, 'simple': one complex state per phase, 'partial': additive"
        " real season, 'full': additive complex season",
    )

    @staticmethod
    def examples() -> list[dict[str, Any]]:
        """Parameters for the contract checks."""
        return [{"seasonal": season} for season in FORMS]

    @property
    def coverage_process(self) -> str:
        """Process on which the contract checks simulate the coverage of intervals."""
        return "local_level" if self.seasonal == "none" else "seasonal_local_level"

    def _season(self, panel: Panel) -> int:
        return 1 if self.seasonal == "none" else super()._season(panel)

    def _min_observations(self, panel: Panel) -> int:
        """Two seasons, at least 5; raise a `ParameterError` if a seasonal form has a season_length of 1."""
        if self.seasonal == "none":
            return MIN_VALUES
        length = self._season(panel)
        if length == 1:
            raise ParameterError(
                f"{self.name}: `season_length` must be at least 2 for seasonal={self.seasonal!r}, got 1.",
                hint="Use "
                "seasonal='none', or pass a longer season_length.",
                parameter="season_length",
            )
        return max(MIN_VALUES, 2 * length)

    def _forms(self, n_observed: Ints, season: int) -> Any:
        return np.tile(np.array(FORMS) == self.seasonal, (len(n_observed), 1))

    def _selection_criterion(self, minus_two_log_likelihood: Floats, n_parameters: Floats, n_observed: Floats) -> Floats:
        return minus_two_log_likelihood
