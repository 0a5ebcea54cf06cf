"""Report of the problems of a frame (`check`), and insertion of missing steps (`fill_gaps`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from deepforecast.data import frames, key_columns
from deepforecast.data.calendar import format_timestamp, may_be_business_days
from deepforecast.data.columns import Columns, resolve
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.frequency import seasons
from deepforecast.data.future_covariates import leaking_columns
from deepforecast.data.keys import Keys, read_keys
from deepforecast.data.panel import METHODS, Panel, empty_frame_error, ended_early, fill_missing
from deepforecast.errors import (
    DataError,
    DeepForecastError,
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
    errors: list[DeepForecastError] = []
    panel = None
    try:
        with suppress_warnings():  # they are findings here
            panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static, report=errors.append)
    except DataError as error:
        errors.append(error)
    findings = [_error_finding(error) for error in errors if isinstance(error, DataError)]
    try:
        rows = _FrameRows.read(frame, columns)
    except DataError:  # among the errors
        return CheckReport({"series": 0, "rows": 0}, tuple(findings), None)
    gaps: Any = np.full(len(rows.keys.indptr) - 1, np.nan)  # unknown without a calendar
    if panel is not None:
        inserted = _source_rows(frame, panel) < 0
        gaps = np.add.reduceat(inserted.astype(np.int64), panel.indptr[:-1])
        findings += [*rows.missing_findings(panel, inserted), *_panel_findings(panel, freq, rows)]
    else:
        findings += rows.missing_findings(None, None)
    summary = {
        "series": len(gaps),
        "rows": len(rows.y),
        "freq": panel.calendar.freq if panel is not None else "unknown",
        "from": format_timestamp(int(rows.keys.timestamps.min()), rows.keys.time),
        "to": format_timestamp(int(rows.keys.timestamps.max()), rows.keys.time),
    }
    return CheckReport(summary, tuple(findings), rows.series_frame(gaps))


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
        except for ids, timestamps and static columns.

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
    names = resolve(columns, table.columns, frame=table.to_native())
    panel = Panel.from_frame(_encode_text_covariates(table, names), columns=columns, freq=freq, allow_empty=True)
    names = panel.series.columns
    source = _source_rows(table.to_native(), panel)
    first_source = source[np.repeat(panel.indptr[:-1], panel.lengths)]
    filled_columns: dict[str, Any] = {}
    for name in table.columns:
        filled_columns[name] = frames.take_rows_or_missing(table[name], first_source if name in names.static else source)
    filled_columns |= panel.key_columns()  # timestamps given as text are returned as datetimes
    if fill is not None:
        filled_columns[names.target] = fill_missing(panel.y, panel.indptr, fill)
    return frames.build(panel.series.library, filled_columns)


def _encode_text_covariates(table: nw.DataFrame[Any], names: Columns) -> Frame:
    """The native frame with covariates that are neither numeric nor categorical cast to categories."""
    declared = [table[name] for name in (*names.future, *names.past, *names.static) if name in table.columns]
    text_columns = [
        column.name for column in declared if not (column.dtype.is_numeric() or column.dtype in (nw.Categorical, nw.Enum))
    ]
    return (
        table.with_columns(nw.col(*text_columns).cast(nw.String).cast(nw.Categorical)).to_native()
        if text_columns
        else table.to_native()
    )


def _source_rows(frame: Frame, panel: Panel) -> Ints:
    """The row of the frame of each panel row, -1 for inserted rows."""
    keys = read_keys(frames.read_table(frame), panel.series.columns, report=_ignore)
    position = keys.place_on_calendar(None, panel.calendar)[1]
    lengths = np.diff(keys.indptr)
    step = (position - np.repeat(panel.start, lengths)) // panel.calendar.step
    source = np.full(len(panel.y), -1, dtype=np.int64)
    source[step + np.repeat(panel.indptr[:-1], lengths)] = np.arange(len(position)) if keys.order is None else keys.order
    return source


def _ignore(error: DeepForecastError) -> None:
    """Ignore duplicates, which were reported before."""


def _error_finding(error: DataError) -> Finding:
    return Finding("error", error.problem, error.count, error.where, error.hint)


@dataclass(frozen=True)
class _FrameRows:
    """The rows of a frame as they are, sorted by id and time: keys with duplicates, and the target."""

    keys: Keys
    y: Floats

    @classmethod
    def read(cls, frame: Frame, columns: Any) -> _FrameRows:
        """Read and sort the rows; `DataError` if keys or targets are invalid."""
        table = frames.read_table(frame)
        names = resolve(columns, table.columns, frame=table.native)
        if not len(table.native):
            raise empty_frame_error()
        keys = read_keys(table, names, report=None)
        return cls(keys, keys.sorted(frames.read_numbers(table.native[names.target], names.target)))

    def missing_findings(self, panel: Panel | None, inserted: NDArray[np.bool_] | None) -> list[Finding]:
        """Findings on time steps without a row, and on rows without a target."""
        findings = []
        if panel is not None and inserted is not None and inserted.any():
            gap_rows = np.flatnonzero(inserted)
            findings.append(Finding("warning", "gaps", len(gap_rows), panel.where(gap_rows), MISSING_HINT))
        missing = np.flatnonzero(np.isnan(self.y))
        if len(missing):
            findings.append(Finding("warning", "missing", len(missing), self.keys.where(missing), MISSING_HINT))
        return findings

    def series_frame(self, gaps: Any) -> Frame:
        """The statistics of each series, with the ids first; these replace a statistic of the same name."""
        keys, begin, finite = self.keys, self.keys.indptr[:-1], np.isfinite(self.y)
        counts = {
            "duplicates": keys.is_duplicate,
            "missing": np.isnan(self.y),
            "infinite": np.isinf(self.y),
            "zeros": self.y == 0,
        }
        table: dict[str, Any] = {"rows": np.diff(keys.indptr)}
        table["start"] = key_columns.time_series("start", keys.timestamps[begin], keys.time, keys.library)
        table["end"] = key_columns.time_series("end", keys.timestamps[keys.indptr[1:] - 1], keys.time, keys.library)
        table["gaps"] = gaps
        table |= {name: np.add.reduceat(rows.astype(np.int64), begin) for name, rows in counts.items()}
        has_value = np.add.reduceat(finite.astype(np.int64), begin) > 0
        table["min"] = np.where(has_value, np.minimum.reduceat(np.where(finite, self.y, np.inf), begin), np.nan)
        table["max"] = np.where(has_value, np.maximum.reduceat(np.where(finite, self.y, -np.inf), begin), np.nan)
        if keys.names.id is not None:
            table = {keys.names.id: keys.ids, **{name: values for name, values in table.items() if name != keys.names.id}}
        return frames.build(keys.library, table)


def _panel_findings(panel: Panel, freq: Any, rows: _FrameRows) -> list[Finding]:
    """What `fit` or `predict` warns about, what some models refuse, and what makes forecasts poor."""
    findings = [finding for name in panel.covariates for finding in _covariate_findings(panel, name)]
    for name in leaking_columns(panel):
        fix = "declare it as past, unless its future values are known at the cutoff"
        findings.append(Finding("warning", f"{name} follows the target", len(panel), "almost perfectly correlated", fix))
    if panel.undeclared:
        where, fix = format_list(panel.undeclared), "declare them in columns=, or drop them"
        findings.append(Finding("note", "columns without a role", len(panel.undeclared), where, fix))
    findings += [*_ended_findings(panel), *_series_findings(panel)]
    keys = rows.keys
    if freq is None and may_be_business_days(panel.calendar.frequency, keys.timestamps, keys.indptr, keys.time):
        where, fix = "no series continues after a weekend; freq D is assumed", "freq='B' if weekends have no data"
        findings.append(Finding("note", "days or business days", len(panel), where, fix))
    return findings


def _covariate_findings(panel: Panel, name: str) -> list[Finding]:
    """Findings on a future or past covariate: what `fit` or a backtest raises or warns about."""
    covariate, is_future = panel.covariates[name], name in panel.series.columns.future
    first_rows, last_rows = panel.indptr[:-1], panel.indptr[1:] - 1
    missing = covariate.missing()
    is_observed = ~(missing | np.isnan(panel.y))
    low = np.minimum.reduceat(np.where(is_observed, covariate.values, np.inf), first_rows)
    high = np.maximum.reduceat(np.where(is_observed, covariate.values, -np.inf), first_rows)
    n_observed = np.add.reduceat(is_observed.astype(np.int64), first_rows)
    constant = (low == high) & (n_observed > 1)
    findings = []
    if missing.any():
        rows, fix = np.flatnonzero(missing), "use a model with capabilities.missing, or set missing='interpolate'"
        findings.append(Finding("warning", f"{name} missing", len(rows), panel.where(rows), fix))
    if not is_future:
        return findings + _on_series(panel, "note", f"{name} constant", constant, "has no effect in these series")
    if missing[last_rows].any():
        rows, fix = last_rows[missing[last_rows]], "fill it: steps without future covariates cannot be cross-validated"
        findings.append(Finding("warning", f"{name} missing at the end", len(rows), panel.where(rows), fix))
    fix = "models with capabilities.local cannot learn its effect: leave it out, or pool the series"
    findings += _on_series(panel, "warning", f"{name} constant", constant, fix)
    fix = "models with capabilities.local reject it: leave it out, or these series"
    return findings + _on_series(panel, "warning", f"{name} never observed with a target", n_observed == 0, fix)


def _ended_findings(panel: Panel) -> list[Finding]:
    """The finding, in a list, on series whose forecasts would lie in the past, of which `predict` warns."""
    last, calendar = panel.series.last, panel.calendar
    ended = ended_early(last, calendar)
    if not len(ended):
        return []
    first = calendar.format(int(last[ended[0]]))
    where = f"{_labels(panel, ended)}, the first at {first}, the last of the others at {calendar.format(int(last.max()))}"
    fix = "drop these series, or add their later observations: their forecasts lie in the past"
    return [Finding("note", "ended early", len(ended), where, fix)]


def _series_findings(panel: Panel) -> list[Finding]:
    """Findings on short and constant series, and those with an incomplete season."""
    season = (seasons(panel.calendar.frequency) or (1,))[0]
    observed, first_rows = panel.observed, panel.indptr[:-1]
    low, high = np.fmin.reduceat(panel.y, first_rows), np.fmax.reduceat(panel.y, first_rows)
    short = (observed > 0) & (observed < MIN_SEASONS * season)
    fix = f"use a model with season_length=1, or set on_failure='fallback'; others need {MIN_SEASONS} seasons"
    findings = _on_series(panel, "warning", f"short (< {MIN_SEASONS} seasons of {season})", short, fix)
    fix = "set missing='interpolate' for seasonal models"
    findings += _on_series(panel, "warning", f"season of {season} incomplete", _incomplete_seasons(panel, season), fix)
    return findings + _on_series(panel, "note", "constant", (observed > 1) & (low == high), "forecasts will be that constant")


def _incomplete_seasons(panel: Panel, season: int) -> NDArray[np.bool_]:
    """Mask of the series with at least one season of values, but none at some position in the season."""
    is_incomplete = (panel.observed < panel.lengths) & (panel.observed >= season) & (season > 1)
    candidates = panel.take(np.flatnonzero(is_incomplete))  # few series
    if len(candidates.y):
        lengths = candidates.lengths
        phase = (np.arange(len(candidates.y)) - np.repeat(candidates.indptr[:-1], lengths)) % season
        cell = np.repeat(np.arange(len(lengths)) * season, lengths) + phase
        n_observed = np.bincount(cell, weights=~candidates.missing(), minlength=len(lengths) * season)
        is_incomplete[is_incomplete] = (n_observed.reshape(-1, season) == 0).any(axis=1)
    return np.asarray(is_incomplete)


def _on_series(panel: Panel, severity: str, problem: str, affected: NDArray[np.bool_], fix: str) -> list[Finding]:
    """The finding, in a list, on the affected series; an empty list if there are none."""
    numbers = np.flatnonzero(affected)
    return [Finding(severity, problem, len(numbers), _labels(panel, numbers), fix)] if len(numbers) else []


def _labels(panel: Panel, numbers: Ints) -> str:
    """The ids of the first few series and their number."""
    return "the series" if panel.series.native_ids is None else panel.series.labels(numbers)
