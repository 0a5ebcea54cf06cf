"""Every series of a frame as trend, seasons and what is left over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deepforecast.core.forecast import refuse_duplicate_columns
from deepforecast.data import frames
from deepforecast.data.columns import Columns, warn_undeclared
from deepforecast.data.frames import Frame
from deepforecast.data.imputation import METHODS, fill_missing
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, format_list, format_value, warn
from deepforecast.models._seasonality import warn_short_series
from deepforecast.models.statistical._seasons import MIN_CYCLES, Smoothers, decompose_panel, resolve_season_lengths


@dataclass(frozen=True)
class Loess:
    """Rarer settings of `decompose`.

    low_pass_window: odd, above the season (None: the least such). trend_degree, low_pass_degree: constant (0) or line (1).
    The jumps smooth every so manieth place, straight lines between. inner, outer: loops of STL (None: 5 and 0, robust 2 and
    15); rounds: over several seasons.
    """

    low_pass_window: int | Sequence[int] | None = None
    trend_degree: int = 1
    low_pass_degree: int = 1
    seasonal_jump: int = 1
    trend_jump: int = 1
    low_pass_jump: int = 1
    inner: int | None = None
    outer: int | None = None
    rounds: int = 2


def decompose(
    frame: Frame,
    season_length: Any = "auto",
    *,
    seasonal_window: int | Sequence[int] | None = None,
    trend_window: int | Sequence[int] | None = None,
    seasonal_degree: int = 0,
    robust: bool = False,
    missing: str = "auto",
    freq: Any = None,
    columns: Columns | Mapping[str, Any] | None = None,
    options: Loess | None = None,
) -> Frame:
    """Take every series apart by loess: y = trend + season_<length> (one column for each season) + remainder.

    One season is STL, several are MSTL. season_length: one or several numbers of steps, or those usual at the frequency.
    seasonal_window: how many cycles a season is smoothed over, odd, one or one for each season (None: 11, 15, 19, ..., as R's
    `mstl`); the larger, the less it changes. trend_window: odd, in rows (None: 1.5 * season / (1 - 1.5 / seasonal_window)).
    robust: outliers count for little. Missing values are interpolated for it, season by season (said; missing= says how,
    quietly), and have no remainder. Equal to statsmodels' `STL` and `MSTL` with the same settings (its defaults are
    seasonal_window=7, seasonal_degree=1).
    Reference: Cleveland, Cleveland, McRae & Terpenning (1990), *Journal of Official Statistics* 6; Bandara, Hyndman & Bergmeir
    (2021), arXiv:2107.13462.

    >>> from deepforecast import datasets, decompose
    >>> list(decompose(datasets.load("air_passengers")).columns)
    ['unique_id', 'ds', 'y', 'trend', 'season_12', 'remainder']
    """
    panel = Panel.from_frame(frame, columns=columns, freq=freq)
    warn_undeclared(panel.undeclared)
    lengths = resolve_season_lengths(season_length, panel, "decompose")
    if not lengths:
        raise ParameterError("decompose takes seasons out: season_length is at least 2; there is none here.")
    _refuse_short(panel, lengths if season_length != "auto" else lengths[:1])
    smoothers = _smoothers(options or Loess(), seasonal_window, trend_window, seasonal_degree, robust)
    trend, seasons = decompose_panel(_prepared(panel, missing), lengths, smoothers)
    warn_short_series(panel, max(lengths, default=1), "decompose", MIN_CYCLES * max(lengths, default=1))
    return frames.build(panel.series.library, _columns(panel, trend, dict(zip(lengths, seasons, strict=True))))


def _columns(panel: Panel, trend: Any, seasons: Mapping[int, Any]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    names = panel.series.columns
    if names.id is not None and panel.series.ids is not None:
        columns[names.id] = panel.series.ids[panel.row_series]
    columns[names.time] = panel.series.time_column(panel.row_positions)
    columns[names.target] = panel.y
    components = {"trend": trend, **{f"season_{length}": values for length, values in seasons.items()}}
    refuse_duplicate_columns([*components, "remainder"], columns)
    return {**columns, **components, "remainder": panel.y - sum(components.values())}


def _prepared(panel: Panel, missing: str) -> Panel:
    """The panel without missing values, or with those that are interpolated when it is taken apart."""
    if missing not in ("auto", *METHODS):
        raise ParameterError(f"missing is 'auto' or one of {format_list(METHODS)}; got {format_value(missing)}.")
    if panel.complete:
        return panel
    empty = np.flatnonzero(panel.observed == 0)
    if len(empty):
        raise DataError(
            f"Every series has at least one value; column {panel.series.columns.target} is missing throughout in series "
            f"{panel.series.labels(empty)}. Leave these series out."
        )
    if missing == "auto":
        incomplete = np.flatnonzero(panel.observed < panel.lengths)
        warn(
            f"decompose interpolates missing values: column {panel.series.columns.target} is missing in "
            f"{int(panel.missing().sum())} rows of series {panel.series.labels(incomplete)}."
        )
    return panel if missing in ("auto", "interpolate") else replace(panel, y=fill_missing(panel.y, panel.indptr, missing))


def _refuse_short(panel: Panel, lengths: Sequence[int]) -> None:
    short_series = np.flatnonzero(panel.lengths < MIN_CYCLES * lengths[-1])
    if len(short_series):
        raise DataError(
            f"A season needs {MIN_CYCLES} cycles to be told from the trend, {MIN_CYCLES * lengths[-1]} rows for season_length "
            f"{lengths[-1]}; series {panel.series.labels(short_series)} has {panel.lengths[short_series[0]]}. Leave such series out, or give "
            "a smaller season_length."
        )


def _smoothers(options: Loess, seasonal_window: Any, trend_window: Any, seasonal_degree: int, robust: bool) -> Smoothers:
    degrees = (seasonal_degree, options.trend_degree, options.low_pass_degree)
    jumps = (options.seasonal_jump, options.trend_jump, options.low_pass_jump)
    if any(degree not in (0, 1) for degree in degrees):
        raise ParameterError(f"A degree is 0 (constant) or 1 (line); got {format_value(degrees)}.")
    counted = {"a jump": min(jumps), "inner": options.inner or 5, "rounds": options.rounds}
    for name, value in counted.items():
        if value < 1:
            raise ParameterError(f"{name} of Loess is at least 1; got {format_value(value)}.")
    return Smoothers(
        seasonal_window, trend_window, options.low_pass_window, degrees, jumps, robust, options.inner, options.outer,
        options.rounds,
    )  # fmt: skip
