"""Report of the problems of a frame (`check`), and insertion of missing steps (`fill_gaps`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from deepforecast.data import frames, key_columns
from deepforecast.data.calendar import may_be_business_days
from deepforecast.data.columns import Columns, resolve_columns
from deepforecast.data.covariates import leaking_columns
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.frequency import seasons
from deepforecast.data.keys import Keys, read_keys
from deepforecast.data.panel import METHODS, Panel, empty_frame_error, ended_early, fill_missing
from deepforecast.errors import (
    DataError,
    ParameterError,
    escape_control_characters,
    format_list,
    format_value,
    suppress_warnings,
)

MIN_SEASONS = 2  # series with fewer seasons are reported as short
MISSING_HINT = "use a model with capabilities.missing, or set missing='interpolate'"


@dataclass(frozen=True)
class Finding:
    """A finding of `check`.

    Attributes
    ----------
    severity : str
        "error" (`fit` raises), "warning" (some models raise or ignore the affected data) or "note".
    problem : str
        The finding in a few words.
    count : int
        Number of affected rows or series.
    where : str
        The affected series and the first timestamp.
    hint : str
        The suggested fix.
    """

    severity: str
    problem: str
    count: int
    where: str
    hint: str


@dataclass(frozen=True)
class CheckReport:
    """The result of `check`; print it to read it.

    Attributes
    ----------
    summary : dict
        Number of series and rows, frequency, first and last timestamp.
    findings : tuple of Finding
        Errors, warnings and notes.
    series : DataFrame or None
        None if ids, timestamps or targets cannot be read. One row per series with its rows, start, end,
        gaps (missing if the frequency is unknown), duplicates, missing and infinite values,
        zeros, minimum and maximum.
    """

    summary: Mapping[str, Any]
    findings: tuple[Finding, ...]
    series: Frame | None

    @property
    def ok(self) -> bool:
        """Whether there are no errors. Models may still not support missing values."""
        return not any(finding.severity == "error" for finding in self.findings)

    def __repr__(self) -> str:
        """The summary in one line, then one line per finding, followed by its fix if it has one."""
        summary_line = ", ".join(f"{name} {value}" for name, value in self.summary.items())
        if not self.findings:
            return f"{summary_line}\nNo findings."
        width = max(len(finding.problem) for finding in self.findings)
        lines = [summary_line]
        for finding in self.findings:
            lines.append(f"{finding.severity:8s} {finding.problem:{width}s} {finding.count:>7,}  {finding.where}")
            if finding.hint:
                lines.append(" " * (width + 19) + f"-> {finding.hint}")
        return "\n".join(map(escape_control_characters, lines))

    def to_dict(self) -> dict[str, Any]:
        """Return the summary and the findings as plain values."""
        return {"ok": self.ok, "summary": dict(self.summary), "findings": [vars(finding).copy() for finding in self.findings]}


def check(
    frame: Frame, *, freq: Any = None, columns: Columns | Mapping[str, Any] | None = None, static: Frame | None = None
) -> CheckReport:
    """Report gaps, duplicates, missing values and other problems of a frame without raising.

    Parameters
    ----------
    frame : DataFrame
        Long frame with id, time and target column, as in `fit`.
    freq : str, int or pandas offset, optional
        Frequency of the time column. Inferred by default.
    columns : Columns or dict, optional
        Names and roles of the columns. Declared covariates are checked too.
    static : DataFrame, optional
        Static covariates, one row per series, as in `fit`.

    Returns
    -------
    CheckReport
        All findings. Invalid data do not raise; they are findings with severity "error".

    See Also
    --------
    fill_gaps : Insert the missing time steps.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=30).delete(4), "y": 1.0})
    >>> print(check(frame))
    series 1, rows 29, freq D, from 2024-01-01, to 2024-01-30
    warning  gaps           1  the series, first at 2024-01-05
                               -> use a model with capabilities.missing, or set missing='interpolate'
    note     constant       1  the series
                               -> forecasts will be that constant
    """
    frame = frames.materialize(frame)
    errors: list[Any] = []  # `DataError` all
    panel = None
    try:
        with suppress_warnings():  # they are findings here
            panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static, report=errors.append)
    except DataError as error:
        errors.append(error)
    findings = [Finding("error", error.problem, error.count, error.where, error.hint) for error in errors]
    try:
        keys, y = _read_rows(frame, columns)
    except DataError:  # among the errors
        return CheckReport({"series": 0, "rows": 0}, tuple(findings), None)
    missing = np.flatnonzero(np.isnan(y))
    if len(missing):
        findings.append(Finding("warning", "missing", len(missing), keys.where(missing), MISSING_HINT))
    gaps: Any = np.full(len(keys.indptr) - 1, np.nan)  # unknown without a calendar
    if panel is not None:
        is_inserted = _source_rows(keys, panel) < 0
        gaps = np.add.reduceat(is_inserted.astype(np.int64), panel.indptr[:-1])
        findings += _PanelCheck(panel).run(freq, keys, is_inserted)
    summary = {
        "series": len(gaps),
        "rows": len(y),
        "freq": panel.calendar.freq if panel is not None else "unknown",
        "from": keys.format_timestamp(keys.timestamps.argmin()),
        "to": keys.format_timestamp(keys.timestamps.argmax()),
    }
    return CheckReport(summary, tuple(findings), _series_frame(keys, y, gaps))


def fill_gaps(
    frame: Frame, *, freq: Any = None, columns: Columns | Mapping[str, Any] | None = None, fill: str | None = None
) -> Frame:
    """Insert a row for every missing time step between the first and last timestamp of each series.

    Parameters
    ----------
    frame : DataFrame
        Long frame with id, time and target column, as in `fit`.
    freq : str, int or pandas offset, optional
        Frequency of the time column. Inferred by default.
    columns : Columns or dict, optional
        Names and roles of the columns.
    fill : {"interpolate", "ffill", "zero"}, optional
        How to fill missing targets, those of existing rows included. By default they stay missing.

    Returns
    -------
    DataFrame
        All columns of the frame, sorted by id and time. Columns of inserted rows are missing,
        except for ids, timestamps, static columns and weights, which are 0 where the target was missing.

    See Also
    --------
    check : Report gaps and other problems.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-04"]), "y": [1.0, 2.0, 4.0]})
    >>> fill_gaps(frame, freq="D", fill="interpolate")
              ds    y
    0 2024-01-01  1.0
    1 2024-01-02  2.0
    2 2024-01-03  3.0
    3 2024-01-04  4.0
    """
    if fill is not None and fill not in METHODS:
        raise ParameterError(
            f"`fill` must be one of {format_list(METHODS)} or None, got {format_value(fill)}.", parameter="fill", value=fill
        )
    table = frames.to_narwhals(frame)
    declared = resolve_columns(columns, table.columns, frame=table.to_native()).covariates
    text_covariates = [
        name
        for name, dtype in table.schema.items()
        if name in declared and not dtype.is_numeric() and dtype not in (nw.Categorical, nw.Enum)
    ]
    with_categories = table.with_columns(nw.col(name).cast(nw.String).cast(nw.Categorical) for name in text_covariates)
    panel = Panel.from_frame(with_categories.to_native(), columns=columns, freq=freq, allow_all_missing=True)
    names = panel.series.columns
    source = _source_rows(read_keys(frames.read_table(table.to_native()), names), panel)
    first_source = source[np.repeat(panel.indptr[:-1], panel.lengths)]
    filled_columns = {
        name: frames.take_rows_or_missing(table[name], first_source if name in names.static else source) for name in table.columns
    }
    filled_columns |= panel.key_columns()  # timestamps given as text are returned as datetimes
    if names.weight is not None:
        filled_columns[names.weight] = panel.weight
    if fill is not None:
        filled_columns[names.target] = fill_missing(panel.y, panel.indptr, fill)
    return frames.build(panel.series.library, filled_columns)


def _source_rows(keys: Keys, panel: Panel) -> Ints:
    """The row of the frame with these keys of each panel row, -1 for inserted rows."""
    position = keys.place_on_calendar(None, panel.calendar)[1]
    series = np.repeat(np.arange(len(panel)), np.diff(keys.indptr))
    panel_rows = panel.indptr[series] + (position - panel.start[series]) // panel.calendar.step
    source = np.full(len(panel.y), -1, dtype=np.int64)
    source[panel_rows] = np.arange(len(position)) if keys.order is None else keys.order
    return source


def _read_rows(frame: Frame, columns: Any) -> tuple[Keys, Floats]:
    """The sorted keys, with duplicates, and targets of a frame; `DataError` if they cannot be read."""
    table = frames.read_table(frame)
    names = resolve_columns(columns, table.columns, frame=table.native)
    if not len(table.native):
        raise empty_frame_error()
    keys = read_keys(table, names, report=None)
    return keys, keys.sorted(frames.read_numbers(table.native[names.target], names.target))


def _series_frame(keys: Keys, y: Floats, gaps: Any) -> Frame:
    """The statistics of each series, with the ids first; these replace a statistic of the same name."""
    first_rows, last_rows = keys.indptr[:-1], keys.indptr[1:] - 1
    finite = np.where(np.isfinite(y), y, np.nan)
    counted = {"duplicates": keys.is_duplicate, "missing": np.isnan(y), "infinite": np.isinf(y), "zeros": y == 0}
    statistics: dict[str, Any] = {
        "rows": np.diff(keys.indptr),
        "start": key_columns.time_column("start", keys.timestamps[first_rows], keys.time, keys.library),
        "end": key_columns.time_column("end", keys.timestamps[last_rows], keys.time, keys.library),
        "gaps": gaps,
        **{name: np.add.reduceat(rows.astype(np.int64), first_rows) for name, rows in counted.items()},
        "min": np.fmin.reduceat(finite, first_rows),
        "max": np.fmax.reduceat(finite, first_rows),
    }
    ids = {} if keys.names.id is None else {keys.names.id: keys.ids}
    return frames.build(keys.library, ids | statistics | ids)


@dataclass(frozen=True)
class _PanelCheck:
    """Collects what `fit` or `predict` warns about, what some models refuse, and what makes forecasts poor."""

    panel: Panel
    findings: list[Finding] = field(default_factory=list)

    def run(self, freq: Any, keys: Keys, is_inserted: NDArray[np.bool_]) -> list[Finding]:
        """Return all findings; `freq` is the argument, `keys` are those of the frame, whose gaps are inserted rows."""
        panel = self.panel
        self.add_rows("gaps", is_inserted, MISSING_HINT)
        for name in panel.covariates:
            self.check_covariate(name)
        for name in leaking_columns(panel):
            where, hint = "almost perfectly correlated", "declare it as past, unless its future values are known at the cutoff"
            self.findings.append(Finding("warning", f"{name} follows the target", len(panel), where, hint))
        if panel.undeclared:
            where, hint = format_list(panel.undeclared), "declare them in columns=, or drop them"
            self.findings.append(Finding("note", "columns without a role", len(panel.undeclared), where, hint))
        self.check_ends()
        self.check_targets()
        if freq is None and may_be_business_days(panel.calendar.frequency, keys.timestamps, keys.indptr, keys.time):
            where, hint = "no series continues after a weekend; freq D is assumed", "freq='B' if weekends have no data"
            self.findings.append(Finding("note", "days or business days", len(panel), where, hint))
        return self.findings

    def add_rows(self, problem: str, is_affected: NDArray[np.bool_], hint: str) -> None:
        """Add a warning if any row of the panel is affected."""
        rows = np.flatnonzero(is_affected)
        if len(rows):
            self.findings.append(Finding("warning", problem, len(rows), self.panel.where(rows), hint))

    def add_series(self, severity: str, problem: str, is_affected: NDArray[np.bool_], hint: str, details: str = "") -> None:
        """Add a finding if any series is affected."""
        numbers = np.flatnonzero(is_affected)
        if len(numbers):
            labels = "the series" if self.panel.series.native_ids is None else self.panel.series.labels(numbers)
            self.findings.append(Finding(severity, problem, len(numbers), labels + details, hint))

    def check_covariate(self, name: str) -> None:
        """Check a future or past covariate for what `fit` or a backtest raises or warns about."""
        panel, covariate = self.panel, self.panel.covariates[name]
        first_rows = panel.indptr[:-1]
        missing = covariate.missing()
        is_observed = ~(missing | np.isnan(panel.y))
        observed = np.where(is_observed, covariate.values, np.nan)
        n_observed = np.add.reduceat(is_observed.astype(np.int64), first_rows)
        is_constant = (np.fmin.reduceat(observed, first_rows) == np.fmax.reduceat(observed, first_rows)) & (n_observed > 1)
        self.add_rows(f"{name} missing", missing, MISSING_HINT)
        if name not in panel.series.columns.future:
            self.add_series("note", f"{name} constant", is_constant, "has no effect in these series")
            return
        is_last = np.isin(np.arange(len(missing)), panel.indptr[1:] - 1)
        hint = "fill it: steps without future covariates cannot be cross-validated"
        self.add_rows(f"{name} missing at the end", missing & is_last, hint)
        hint = "models with capabilities.local cannot learn its effect: leave it out, or pool the series"
        self.add_series("warning", f"{name} constant", is_constant, hint)
        hint = "models with capabilities.local reject it: leave it out, or these series"
        self.add_series("warning", f"{name} never observed with a target", n_observed == 0, hint)

    def check_ends(self) -> None:
        """Check for series whose forecasts would lie in the past, of which `predict` warns."""
        last, calendar = self.panel.series.last, self.panel.calendar
        ended = ended_early(last, calendar)
        if len(ended):
            first_end, last_end = (calendar.format(int(position)) for position in (last[ended[0]], last.max()))
            hint = "drop these series, or add their later observations: their forecasts lie in the past"
            details = f", the first at {first_end}, the last of the others at {last_end}"
            self.add_series("note", "ended early", np.isin(np.arange(len(last)), ended), hint, details)

    def check_targets(self) -> None:
        """Check for short and constant series, and those with an incomplete season."""
        panel, season = self.panel, (seasons(self.panel.calendar.frequency) or (1,))[0]
        observed, first_rows = panel.observed, panel.indptr[:-1]
        short = (observed > 0) & (observed < MIN_SEASONS * season)
        hint = f"use a model with season_length=1, or set on_failure='fallback'; others need {MIN_SEASONS} seasons"
        self.add_series("warning", f"short (< {MIN_SEASONS} seasons of {season})", short, hint)
        hint = "set missing='interpolate' for seasonal models"
        self.add_series("warning", f"season of {season} incomplete", _incomplete_seasons(panel, season), hint)
        low, high = np.fmin.reduceat(panel.y, first_rows), np.fmax.reduceat(panel.y, first_rows)
        self.add_series("note", "constant", (observed > 1) & (low == high), "forecasts will be that constant")


def _incomplete_seasons(panel: Panel, season: int) -> NDArray[np.bool_]:
    """Mask of the series with at least one season of values, but none at some position in the season."""
    is_incomplete = (panel.observed < panel.lengths) & (panel.observed >= season) & (season > 1)
    candidates = panel.take(np.flatnonzero(is_incomplete))  # few series
    row_series = candidates.row_series
    phase = (np.arange(len(row_series)) - candidates.indptr[row_series]) % season
    n_observed = np.bincount(row_series * season + phase, weights=~candidates.missing(), minlength=len(candidates) * season)
    is_incomplete[is_incomplete] = (n_observed.reshape(-1, season) == 0).any(axis=1)
    return is_incomplete
