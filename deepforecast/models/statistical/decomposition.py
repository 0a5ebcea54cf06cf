"""Seasonal-trend decomposition of every series of a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deepforecast.core.forecast import refuse_duplicate_columns
from deepforecast.core.seasonality import warn_short_series
from deepforecast.data import frames
from deepforecast.data.columns import Columns, warn_undeclared
from deepforecast.data.frames import Frame
from deepforecast.data.panel import METHODS, Panel, fill_missing
from deepforecast.errors import DataError, ParameterError, format_list, format_value, warn
from deepforecast.models.statistical._seasons import MIN_CYCLES, Smoothers, decompose_panel, resolve_season_lengths


@dataclass(frozen=True)
class Loess:
    """Advanced options of `decompose`.

    Parameters
    ----------
    low_pass_window : int or sequence of int, optional
        Odd window of the low-pass filter, above the season_length, for all seasons or one for each.
        None: the smallest such number.
    trend_degree, low_pass_degree : {0, 1}, default 1
        Degree of the local polynomial: constant or linear.
    seasonal_jump, trend_jump, low_pass_jump : int >= 1, default 1
        Distance of the points at which the smoother is evaluated, with linear interpolation
        between.
    inner, outer : int, optional
        Numbers of inner and outer iterations of STL. None: 5 and 0, or 2 and 15 with `robust`.
    rounds : int >= 1, default 2
        Number of rounds over the seasons, if there are several.
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
    """Decompose every series by loess: y = trend + season_<length> + remainder.

    One season is decomposed by STL, several by MSTL. The result equals that of statsmodels' `STL`
    and `MSTL` with the same settings (its defaults are seasonal_window=7 and seasonal_degree=1).

    Parameters
    ----------
    frame : DataFrame
        Series in long format.
    season_length : int or list of int, default "auto"
        Number of time steps per season, or a list of several. "auto": inferred from the frequency
        of the data.
    seasonal_window : int or sequence of int, optional
        Odd number of cycles in the seasonal loess window, for all seasons or one for each; the
        larger, the less the season changes. None: 11, 15, 19, ..., as in R's `mstl`.
    trend_window : int or sequence of int, optional
        Odd number of rows in the trend loess window. None: 1.5 * season / (1 - 1.5 /
        seasonal_window).
    seasonal_degree : {0, 1}, default 0
        Degree of the seasonal loess: constant or linear.
    robust : bool, default False
        Whether to downweight outliers.
    missing : str, default "auto"
        How missing values are filled. "auto": interpolated season by season, with a warning.
        Interpolated values have a missing remainder.
    freq : str or int, optional
        Frequency of the time column. None: inferred.
    columns : Columns or dict, optional
        Names of the columns.
    options : Loess, optional
        Advanced options.

    Returns
    -------
    DataFrame
        The id, time and target columns, `trend`, a column `season_<length>` per season and
        `remainder`.

    See Also
    --------
    MSTL : Forecasts with this decomposition.

    References
    ----------
    Cleveland, R. B., Cleveland, W. S., McRae, J. E. and Terpenning, I. (1990). STL: A
    seasonal-trend decomposition procedure based on loess. *Journal of Official Statistics* 6.

    Bandara, K., Hyndman, R. J. and Bergmeir, C. (2021). MSTL: A seasonal-trend decomposition
    algorithm for time series with multiple seasonal patterns. arXiv:2107.13462

    Examples
    --------
    >>> from deepforecast import datasets, decompose
    >>> list(decompose(datasets.load("air_passengers")).columns)
    ['unique_id', 'ds', 'y', 'trend', 'season_12', 'remainder']
    """
    panel = Panel.from_frame(frame, columns=columns, freq=freq)
    warn_undeclared(panel.undeclared)
    lengths = resolve_season_lengths(season_length, panel, "decompose")
    if not lengths:
        raise ParameterError(
            "`season_length` must be at least 2 for `decompose`, but there is no season.",
            hint="Pass `season_length`, the number of time steps per season.",
            parameter="season_length",
        )
    _check_lengths(panel, lengths[0] if season_length == "auto" else lengths[-1])
    smoothers = _smoothers(options or Loess(), seasonal_window, trend_window, seasonal_degree, robust)
    trend, seasons = decompose_panel(_fill_missing(panel, missing), lengths, smoothers)
    warn_short_series(panel, max(lengths, default=1), "decompose", MIN_CYCLES * max(lengths, default=1))
    return frames.build(panel.series.library, _columns(panel, trend, dict(zip(lengths, seasons, strict=True))))


def _columns(panel: Panel, trend: Any, seasons: Mapping[int, Any]) -> dict[str, Any]:
    """Columns of the result; raise an error if names of the components are among those of the frame."""
    columns: dict[str, Any] = {}
    names = panel.series.columns
    if names.id is not None and panel.series.ids is not None:
        columns[names.id] = panel.series.ids[panel.row_series]
    columns[names.time] = panel.series.time_column(panel.row_positions)
    columns[names.target] = panel.y
    components = {"trend": trend, **{f"season_{length}": values for length, values in seasons.items()}}
    refuse_duplicate_columns([*components, "remainder"], columns)
    return {**columns, **components, "remainder": panel.y - sum(components.values())}


def _fill_missing(panel: Panel, missing: str) -> Panel:
    """The panel with missing values filled by a method; for "auto" and "interpolate" the decomposition fills them.

    Warn for "auto"; raise a `DataError` for series without any value.
    """
    if missing not in ("auto", *METHODS):
        raise ParameterError(
            f"`missing` must be 'auto' or one of {format_list(METHODS)}, got {format_value(missing)!r}.",
            parameter="missing",
            value=missing,
        )
    if panel.complete:
        return panel
    empty = np.flatnonzero(panel.observed == 0)
    if len(empty):
        raise DataError(
            f"Each series must have at least one value; column {panel.series.columns.target} has only missing values for "
            f"series {panel.series.labels(empty)}.",
            hint="Drop these series.",
            series=panel.series.id_texts(empty),
        )
    if missing == "auto":
        incomplete = np.flatnonzero(panel.observed < panel.lengths)
        warn(
            f"decompose interpolates missing values: column {panel.series.columns.target} is missing in "
            f"{int(panel.missing().sum())} rows of series {panel.series.labels(incomplete)}."
        )
    return panel if missing in ("auto", "interpolate") else replace(panel, y=fill_missing(panel.y, panel.indptr, missing))


def _check_lengths(panel: Panel, season: int) -> None:
    """Raise a `DataError` if a series has fewer than two cycles of a season."""
    n_required = MIN_CYCLES * season
    short_series = np.flatnonzero(panel.lengths < n_required)
    if len(short_series):
        lengths = [f"{panel.series.label(int(index))} ({panel.lengths[index]} rows)" for index in short_series]
        raise DataError(
            f"Each series must have at least {MIN_CYCLES} full seasonal cycles, {n_required} rows for "
            f"season_length={season}; too short: {format_list(lengths)}.",
            hint="Drop these series, or pass a smaller season_length.",
        )


def _smoothers(options: Loess, seasonal_window: Any, trend_window: Any, seasonal_degree: int, robust: bool) -> Smoothers:
    """The `Smoothers` of the arguments of `decompose`; raise a `ParameterError` for invalid degrees, jumps and counts."""
    degrees = (seasonal_degree, options.trend_degree, options.low_pass_degree)
    jumps = (options.seasonal_jump, options.trend_jump, options.low_pass_jump)
    if any(degree not in (0, 1) for degree in degrees):
        raise ParameterError(
            "`seasonal_degree`, `trend_degree` and `low_pass_degree` must be 0 (constant) or 1 (linear), got "
            f"{format_value(degrees)}.",
            parameter="seasonal_degree",
            value=degrees,
        )
    counts = {"each jump": min(jumps), "`inner`": options.inner or 5, "`rounds`": options.rounds}
    for name, value in counts.items():
        if value < 1:
            raise ParameterError(f"Loess: {name} must be at least 1, got {format_value(value)}.", parameter=name)
    return Smoothers(
        seasonal_window=seasonal_window,
        trend_window=trend_window,
        low_pass_window=options.low_pass_window,
        degrees=degrees,
        jumps=jumps,
        robust=robust,
        inner=options.inner,
        outer=options.outer,
        n_rounds=options.rounds,
    )
