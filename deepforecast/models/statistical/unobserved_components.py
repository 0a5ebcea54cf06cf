"""Structural time series models, estimated by statsmodels."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from deepforecast.core.encoding import InvalidManifest, SkopsSerializer
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import Not, param
from deepforecast.core.preprocessing import describe_short
from deepforecast.core.registry import register
from deepforecast.core.state import LearnedState, check_vectors
from deepforecast.data.frames import Floats
from deepforecast.data.frequency import PER_YEAR, seasons
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, TrainingWarning, format_value, warn
from deepforecast.models.statistical._perfect_fit import RESIDUAL_ARRAYS
from deepforecast.models.statistical._time_series_components import Structural

Level = Literal[
    "irregular", "fixed intercept", "deterministic constant", "local level", "random walk", "fixed slope",
    "deterministic trend", "local linear deterministic trend", "random walk with drift", "local linear trend", "smooth trend",
    "random trend",
]  # fmt: skip
LEVELS: tuple[Level, ...] = get_args(Level)

SHORTEST_PERIOD = 2  # time steps; shorter ones appear as longer ones (aliasing)
BUSINESS_CYCLE = (1.5, 12)  # years, as in statsmodels
BOUND_TOLERANCE = 0.01  # relative distance to a bound at which the maximum lies beyond it


@register
class UnobservedComponents(Structural):
    """Structural time series model: level, trend, seasons, cycle and regressors as states.

    Estimated by maximum likelihood in statsmodels (`UnobservedComponents`, exact diffuse
    initialization), each series in a separate process. The learned state consists of matrices, so
    that forecasts, `update` and `load` do not need statsmodels; `summary(unique_id)` returns its
    table. Missing values are handled by the Kalman filter; future covariates enter linearly.
    Intervals include the variance of states and noise and take the parameters as known.

    A constant series is forecast by its value without a fit, and as a random walk once it varies.
    Covariates that are far from 0, large, small or nearly collinear are centred, scaled and
    orthogonalized for the optimizer, whose stopping rule limits scale equivariance to 1e-4. With a
    cycle the likelihood has local maxima at many periods: it is maximized from six starting points,
    at six times the cost.

    Measured coverage of 80 % intervals at defaults: M1 yearly 68 %, M1 quarterly 63 %, M1 monthly
    76 %, NN5 daily 89 % (benchmarks/bench_coverage.py; 40 series of each set).

    References
    ----------
    Harvey, A. C. (1989). *Forecasting, Structural Time Series Models and the Kalman Filter*.
    doi:10.1017/CBO9781107049994

    Durbin, J. and Koopman, S. J. (2012). *Time Series Analysis by State Space Methods*, 2nd ed.
    doi:10.1093/acprof:oso/9780199641178.001.0001

    Examples
    --------
    >>> from deepforecast import datasets
    >>> model = UnobservedComponents(horizon=3, level="smooth trend").fit(datasets.load("air_passengers"))
    >>> sorted(set(model.explain()["component"]))
    ['level', 'season', 'trend']
    """

    level: Level = param(
        default="local linear trend", search=LEVELS[3:],
        help="specification of level and trend, one of statsmodels' names",
    )
    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1,
        help="period of the dummy-variable seasonal component; 1: no such component; 'auto': inferred from the"
        " frequency of the data, or 1 with `trigonometric`",
    )
    stochastic_season: bool = param(
        default=True, search=(False, True), needs={"season_length": Not(1)},
        help="whether the dummy-variable seasonal component is stochastic",
    )
    trigonometric: list[int] | None = param(
        default=None, at_least=2,
        help="periods of trigonometric seasonal components, suited to long or multiple seasonalities; None: no such"
        " component",
    )
    harmonics: int | None = param(
        default=None, at_least=1, needs={"trigonometric": Not(None, ())},
        help="largest number of harmonics per trigonometric seasonal component; None: half its period",
    )
    cycle: bool = param(default=False, help="whether to add a cycle with an estimated period")
    cycle_period: tuple[float, float] | Literal["auto"] = param(
        default="auto", at_least=SHORTEST_PERIOD, needs={"cycle": True},
        help="shortest and longest period of the cycle in time steps; 'auto': 1.5 to 12 years, at most"
        " the length of the history",
    )
    stochastic_cycle: bool = param(default=False, needs={"cycle": True}, help="whether the cycle is stochastic")
    damped_cycle: bool = param(default=False, needs={"cycle": True}, help="whether to damp the cycle")
    autoregressive: int | None = param(
        default=None, at_least=1, help="order of the autoregressive component; None: no such component",
    )

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Parameters for the contract checks."""
        return [{"level": "local level", "season_length": 1}]

    def _min_observations(self, panel: Panel) -> int:
        n_trigonometric = sum(season["harmonics"] * 2 for season in self._trigonometric_seasons())
        n_level, n_dummies, n_cycle = 2, max(self._season(panel) - 1, 0), 2 * self.cycle
        n_states = n_level + n_dummies + n_trigonometric + n_cycle + (self.autoregressive or 0)
        return n_states + len(panel.series.columns.future) + 3

    def _min_observations_to_fit(self, panel: Panel) -> int:
        periods = self._cycle_periods(panel)
        # By default the longest period is the length of the history, which must be above the shortest one.
        n_cycle_rows = 0 if (periods is None or self.cycle_period != "auto") else int(periods[0, 0]) + 1
        return max(super()._min_observations_to_fit(panel), n_cycle_rows)

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        """Check the arrays of a model file; raise `InvalidManifest` if they are inconsistent."""
        names = learned["names"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InvalidManifest("the names of the parameters must be strings")
        check_vectors(learned, ["converged", "exact", "scale", "centre", "irregular", *RESIDUAL_ARRAYS])
        return learned

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        """Fit; check the bounds of the cycle first, and warn of series whose estimated period lies at a bound."""
        periods = self._cycle_periods(panel)
        if periods is not None:
            self._check_cycle_periods(panel, periods)
        learned = super()._fit(panel, monitor)
        if periods is not None:
            self._warn_at_bound(panel, learned, periods)
        return learned

    def _warn_at_bound(self, panel: Panel, learned: LearnedState, periods: Floats) -> None:
        """Warn of series whose estimated period lies at one of the bounds `periods`, (series, 2)."""
        position = learned["names"].index("frequency.cycle")
        is_estimated = learned["scale"] > 0  # not constant
        period = 2 * np.pi / np.where(is_estimated, learned["params"][:, position], np.nan)
        shortest, longest = periods.T
        at_bound = np.flatnonzero((period < (1 + BOUND_TOLERANCE) * shortest) | (period > (1 - BOUND_TOLERANCE) * longest))
        if len(at_bound):
            example = at_bound[0]
            warn(
                f"{self.name}: the estimated period of the cycle lies at a bound of `cycle_period` for series "
                f"{panel.series.labels(at_bound)} (the first: {period[example]:.4g} time steps, bounds {shortest[example]:.4g} "
                f"and {longest[example]:.4g}). Set cycle_period=(shortest, longest) around the period of your data.",
                TrainingWarning, subject=self.name,
            )

    def _check_cycle_periods(self, panel: Panel, periods: Floats) -> None:
        """Raise a `DataError` for series whose history is not longer than the shortest period of the cycle."""
        shortest, longest = periods.T
        short = np.flatnonzero(shortest >= longest)
        if len(short):
            raise DataError(
                f"{self.name}: the shortest period of the cycle, {shortest[0]:g} time steps, must be shorter than the history; "
                f"series {describe_short(panel, short)}.",
                hint="Set cycle_period=(shortest, longest), or cycle=False."
            )

    def _season(self, panel: Panel) -> int:
        """Period of the dummy-variable seasonal component; 1: no such component."""
        if self.season_length != "auto":
            return int(self.season_length)
        if self.trigonometric:
            return 1
        frequency = panel.calendar.frequency
        if not frequency.base:
            raise ParameterError(
                f"{self.name}: season_length='auto' cannot be inferred from an integer time column.",
                hint="Pass `season_length` (1: "
                "non-seasonal).",
                parameter="season_length",
            )
        return (seasons(frequency) or (1,))[0]

    def _cycle_periods(self, panel: Panel) -> Floats | None:
        if not self.cycle:
            return None
        shortest, longest = self._cycle_period(panel)
        limit = panel.lengths if self.cycle_period == "auto" else np.inf  # by default the history contains a whole cycle
        return np.column_stack([np.full(len(panel), shortest), np.minimum(longest, limit) * np.ones(len(panel))])

    def _cycle_period(self, panel: Panel) -> tuple[float, float]:
        """Bounds of the period of the cycle in time steps, by default those of a business cycle."""
        if self.cycle_period != "auto":
            shortest, longest = (float(period) for period in self.cycle_period)
            if shortest >= longest:
                valid = (longest, shortest) if shortest > longest else (max(shortest / 2, SHORTEST_PERIOD), 2 * shortest)
                raise ParameterError(
                    f"{self.name}: `cycle_period` must be (shortest, longest) with shortest < longest, got "
                    f"{format_value(self.cycle_period)}.",
                    hint=f"Set, for example, cycle_period=({valid[0]:g}, {valid[1]:g}).",
                    parameter="cycle_period",
                )
            return shortest, longest
        frequency = panel.calendar.frequency
        steps_per_year = PER_YEAR.get(frequency.base, 0) / frequency.n
        shortest, longest = (years * steps_per_year for years in BUSINESS_CYCLE)
        if longest <= SHORTEST_PERIOD:
            time = f"frequency {panel.calendar.freq}" if frequency.base else "integer time"
            raise ParameterError(
                f"{self.name}: cycle_period='auto' is not available for {time}.",
                hint="Pass (shortest, longest) in time "
                "steps, for example cycle_period=(10, 40).",
                parameter="cycle_period",
            )
        return max(shortest, SHORTEST_PERIOD), longest

    def _trigonometric_seasons(self) -> list[dict[str, int]]:
        """statsmodels' `freq_seasonal`: period and number of harmonics of each trigonometric season."""
        max_harmonics = self.harmonics or 10**6
        return [{"period": period, "harmonics": min(period // 2, max_harmonics)} for period in self.trigonometric or ()]

    def _specification(self, panel: Panel) -> dict[str, Any]:
        """Arguments of statsmodels' `UnobservedComponents` besides values, regressors and cycle bounds."""
        season = self._season(panel)
        return {
            "level": self.level,
            "seasonal": season if season > 1 else None,
            "stochastic_seasonal": self.stochastic_season,
            "freq_seasonal": self._trigonometric_seasons() or None,
            "cycle": self.cycle,
            "stochastic_cycle": self.stochastic_cycle,
            "damped_cycle": self.damped_cycle,
            "autoregressive": self.autoregressive,
        }

    def _simplifications(self) -> list[str]:
        changes = ["a simpler level, such as 'random walk'"]
        if self.cycle:
            changes.append("a narrower cycle_period")
        changes += [f"{name}=False" for name in ("damped_cycle", "stochastic_cycle") if getattr(self, name)]
        return [*changes, "longer series"]

    def _component_sizes(self, learned: LearnedState) -> dict[str, int]:
        n_trigonometric = sum(2 * season["harmonics"] for season in self._trigonometric_seasons())
        other_sizes = {"waves": n_trigonometric, "cycle": 2 * self.cycle, "autoregressive": self.autoregressive or 0}
        dummies = learned.shared["dummies"]
        level = learned["state"].shape[1] - dummies - sum(other_sizes.values())
        sizes = {"level": level, "season": dummies, **other_sizes}
        return {name: width for name, width in sizes.items() if width}
