"""Seasons taken out by loess and carried on; any model forecasts the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from deepforecast.core.bounds import check_integers
from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.foreign import Foreign
from deepforecast.core.idle import NO_SEASON, refuse_idle
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.preparing import refuse_outside
from deepforecast.core.registry import get, register
from deepforecast.core.state import Learned, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, ParameterError
from deepforecast.models._seasonality import say_short
from deepforecast.models.statistical import _carried
from deepforecast.models.statistical._bands import WidenedForecast
from deepforecast.models.statistical._base import Statistical
from deepforecast.models.statistical._carried import together, unpacked
from deepforecast.models.statistical._known import RANGES, Known
from deepforecast.models.statistical._one_step import foreseen
from deepforecast.models.statistical._seasons import CYCLES, Smoothers, season_lengths, taken_apart, widening
from deepforecast.models.statistical._shifted import Shifted


@register
class MSTL(Statistical):
    """Take the seasons out by loess, forecast the rest by another model, and carry the last cycle of each season on.

    One season is STL, several are MSTL (hourly data: a day and a week), the shortest first, twice over. Intervals are those of
    the model of the rest, wider by sqrt((1 + k / n) / (1 - k / n)) for the k degrees of freedom that the seasons take, by the
    trace of their smoothers; the choice of its form counts as known, and of few cycles the bands are narrow. Missing values
    are interpolated for the decomposition, season by season, and stay missing for the model. A series of less than two
    cycles of a season that the frequency suggests does without it, and is named. `update` goes on with the seasons of the
    fit, as does predict(frame=...) on histories that begin with the rows known; any other history is decomposed anew, the
    parameters of the model of the rest as they are. `fitted_values` foresee each row by seasons that are taken anew every
    cycle (of a long series up to 50 times) from the rows before it: none of the first two cycles.
    Reference: Bandara, Hyndman & Bergmeir (2021), MSTL, arXiv:2107.13462.

    Measured coverage of 80 % intervals at defaults: M1 yearly 61 %, M1 quarterly 68 %, M1 monthly
    75 %, M4 hourly (100 series) 89 %, NN5 daily 92 % (benchmarks/bench_coverage.py).

    >>> from deepforecast import Drift, datasets
    >>> model = MSTL(horizon=3, trend_model=Drift()).fit(datasets.load("air_passengers"))
    >>> model.predict(level=80).columns.tolist()
    ['unique_id', 'ds', 'MSTL', 'MSTL-lo-80', 'MSTL-hi-80']
    """

    coverage_process: ClassVar[str] = "decomposition"

    season_length: int | list[int] | Literal["auto"] = param(
        default="auto", at_least=1, help="steps after which a season repeats, or several of them"
    )
    trend_model: Forecaster | None = param(
        default=None,
        help="the model of what remains without the seasons; AutoETS(season_length=1) if not given",
    )
    seasonal_window: int | list[int] | None = param(
        default=None, at_least=3,
        help="cycles a season is smoothed over, odd, one or one for each; 11, 15, 19, ... if not given",
    )
    trend_window: int | list[int] | None = param(
        default=None, at_least=3,
        help="rows the trend is smoothed over, odd, above the season, one or one for each",
    )
    seasonal_degree: Literal[0, 1] = param(
        default=0, search=(0, 1), help="smooth seasons by constants or by lines",
    )
    robust: bool = param(
        default=False, search=(False, True),
        help="give outliers little weight in the decomposition",
    )

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """With which parameters the contract is checked."""
        return [{"season_length": 7}, {"season_length": [3, 7], "trend_model": get("Naive")(), "robust": True}]

    def _narrow(self, declared: Capabilities) -> Capabilities:
        inner: Capabilities = self._inner().capabilities
        return replace(inner, new_values="heard", precision=max(inner.precision, 1e-6))

    def _inner(self) -> Forecaster:
        """The model of the rest, as it is fitted here."""
        model = get("AutoETS")(season_length=1) if self.trend_model is None else self.trend_model
        return model.clone(horizon=self.own_horizon, missing="auto", alias=self.name)

    def _smoothers(self) -> Smoothers:
        return Smoothers(
            self.seasonal_window, self.trend_window, degrees=(self.seasonal_degree, 1, 1), robust=self.robust
        )

    def _idle(self) -> Iterator[tuple[str, str]]:
        if self.season_length == NO_SEASON:
            for name in ("seasonal_window", "trend_window", "seasonal_degree", "robust"):
                yield name, "without a season. Give a season_length above 1, or leave it out"

    def _needs(self, panel: Panel) -> int:
        inner = self._inner()
        if inner.calibrates or not inner.capabilities.by_series:
            raise ParameterError(
                f"trend_model learns each series by itself and makes no calibrated bands; {type(inner).__name__} is not of "
                "that kind. Say intervals='conformal' on MSTL instead, or choose another model."
            )
        if isinstance(inner, Statistical):
            refuse_idle(inner.clone(alias=type(inner).__name__), inner._idle())
        lengths = season_lengths(self.season_length, panel, self.name)
        return max(inner._needs(panel), CYCLES * self._told(lengths) if lengths else 1)

    def _fit(self, panel: Panel, monitor: Monitor) -> Learned:
        lengths = season_lengths(self.season_length, panel, self.name)
        say_short(panel, max(lengths, default=1), self.name, CYCLES * max(lengths, default=1))
        _, seasons = taken_apart(panel, lengths, self._smoothers())
        inner = self._inner()._fit(self._rest(panel, seasons), monitor)
        wider = widening(lengths, panel.observed, panel.lengths, self._smoothers())
        held = {**_carried.last_cycles(panel, lengths, seasons), "wider": wider}
        return together(inner, held, Known.of(panel), panel)

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        known = Known.held(learned)
        if not fresh:
            return self._went_on(learned, known, panel)
        count = known.rows_in(panel)
        again, on = np.flatnonzero(count < 0), np.flatnonzero(count >= 0)
        parts = [self._anew(learned.take(again), panel.take(again))] if len(again) else []
        if len(on):
            part = panel.take(on)
            parts.append(self._went_on(learned.take(on), known.take(on), part.between(count[on], part.lengths)))
        found = parts[0] if len(parts) == 1 else parts[0].join(parts[1])
        return replace(found.take(np.argsort(np.concatenate([again, on]))), history=panel)

    def _rest(self, panel: Panel, seasons: Floats) -> Panel:
        """The series without their seasons, missing values as they were; of values that the model of the rest takes."""
        rest, inner = panel.with_target(panel.y - seasons.sum(axis=0)), self._inner()
        refuse_outside(inner.clone(alias=f"{type(inner).__name__} of what is left without the seasons"), rest)
        return rest

    def _anew(self, learned: Learned, panel: Panel) -> Learned:
        """Another history: decomposed anew, the model of the rest with the parameters it has."""
        lengths = season_lengths(self.season_length, panel, self.name)
        _, seasons = taken_apart(panel, lengths, self._smoothers())
        inner = self._inner()._advance(unpacked(learned), self._rest(panel, seasons), True)
        held = {**_carried.last_cycles(panel, lengths, seasons), **_fixed(learned)}
        return together(inner, held, Known.of(panel), None)

    def _went_on(self, learned: Learned, known: Known, panel: Panel) -> Learned:
        """Rows that follow those known: the seasons go on as they were."""
        some = np.flatnonzero(panel.lengths > 0)
        if not len(some):
            return learned
        rows, here = panel.take(some) if len(some) < len(panel) else panel, learned.take(some)
        y, moved = _carried.carried_on(here, rows)
        inner = self._inner()._advance(unpacked(here), rows.with_target(y), False)
        return learned.put(some, together(inner, {**moved, **_fixed(here)}, known.take(some).extended(rows), None))

    def _revive(self, learned: Learned, foreign: Foreign) -> Learned:
        self._inner()._revive(unpacked(learned), foreign)  # whose state is what its file says: checked, and not changed
        check_integers(learned, "known", *RANGES)
        return learned

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        rest = self._inner()._forecast(unpacked(learned), steps, future)
        return Shifted(WidenedForecast(rest, learned["wider"]), _carried.season_ahead(learned, steps))

    def _simulate(self, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        paths = self._inner()._simulate(unpacked(learned), steps, samples, seed, future)
        middle = self._inner()._forecast(unpacked(learned), steps, future).mean[:, None, :]
        paths = middle + (paths - middle) * learned["wider"][:, None, None]
        return np.asarray(paths + _carried.season_ahead(learned, steps)[:, None, :])

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        return {**self._inner()._explain(unpacked(learned), steps, future), **_carried.seasons_ahead(learned, steps)}

    def _fitted(self, learned: Learned, panel: Panel) -> Floats:
        inner = self._inner()
        if not isinstance(inner, Statistical):
            raise CapabilityError(f"{type(inner).__name__} has no fitted values. Choose a trend_model that has, as AutoETS.")
        lengths, rest = season_lengths(self.season_length, panel, self.name), unpacked(learned)
        if not lengths:
            return inner._fitted(rest, panel)
        return foreseen(
            panel,
            lengths,
            CYCLES * self._told(lengths),
            lambda rows: taken_apart(rows, lengths, self._smoothers())[1],
            lambda rows, numbers: inner._fitted(rest.take(numbers), rows),
        )

    def _estimated(self, learned: Learned, state: State) -> dict[str, Any]:
        """Those of the model of the rest."""
        inner = self._inner()
        if not isinstance(inner, Statistical):
            raise CapabilityError(f"{type(inner).__name__} has no table of parameters. Choose a trend_model that has, as SES.")
        return inner._estimated(unpacked(learned), state)

    def _told(self, lengths: tuple[int, ...]) -> int:
        """The season of which every series has whole cycles: those that the frequency suggests a short one does without."""
        return lengths[0] if self.season_length == "auto" else lengths[-1]


def _fixed(learned: Learned) -> dict[str, Any]:
    """What stays as it was in the fit, whatever values follow."""
    return {name: learned[name] for name in ("wider", "unvaried") if name in learned.by_series}
