"""Report of the problems of a frame (`check`), and insertion of missing steps (`fill_gaps`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from deepforecast.data import calendar as calendars
from deepforecast.data import datetimes, frames
from deepforecast.data.calendar import Calendar, find_off_grid, format_timestamp, infer, may_be_business_days
from deepforecast.data.columns import Columns, resolve
from deepforecast.data.covariates import Covariate, read_covariate
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.frequency import OFF_GRID, Frequency, parse, seasons
from deepforecast.data.future_covariates import leaking_columns
from deepforecast.data.keys import missing_timestamp_error, read_keys
from deepforecast.data.panel import METHODS, Panel, empty_frame_error, ended_early, fill_missing, is_blown_up
from deepforecast.data.sorting import SINGLE_RUN, Runs, find_runs
from deepforecast.errors import DataError, ParameterError, format_list, format_value

MIN_SEASONS = 2  # series with fewer seasons are reported as short


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
    series : DataFrame
        One row per series with its rows, start, end, gaps, duplicates, missing and infinite values,
        zeros, minimum and maximum.
    """

    summary: Mapping[str, Any]
    findings: tuple[Finding, ...]
    series: Frame

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
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary and the findings as plain values."""
        return {"ok": self.ok, "summary": dict(self.summary), "findings": [vars(finding).copy() for finding in self.findings]}


def check(frame: Frame, *, freq: Any = None, columns: Columns | Mapping[str, Any] | None = None) -> CheckReport:
    """Report gaps, duplicates, missing values and other problems of a frame without raising.

    Parameters
    ----------
    frame : DataFrame
        Long frame with id, time and target column, as in `fit`.
    freq : str, int or pandas offset, optional
        Frequency of the time column. Inferred by default.
    columns : Columns or dict, optional
        Names and roles of the columns. Declared covariates are checked too.

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
                               -> a model that takes missing values, or missing='interpolate'
    note     constant       1  the series
                               -> forecasts will be that constant
    """
    frame = frames.materialize(frame)
    try:
        table = frames.to_narwhals(frame)
        names = resolve(columns, table.columns, frame=table.to_native())
        if not len(table):
            raise empty_frame_error()
        sorted_rows = _SortedRows.from_table(table, names)
    except DataError as error:
        return CheckReport({"series": 0, "rows": 0}, (_error_finding(error),), None)
    report = sorted_rows.report(freq)
    if report.ok:
        try:
            panel = Panel.from_frame(frame, columns=columns, freq=freq)
        except DataError as error:  # raised by fit, but not covered by the rules above
            return replace(report, findings=(_error_finding(error), *report.findings))
        where, fix = "almost perfectly correlated", "declare it as past, unless its future values are known at the cutoff"
        leaks = (Finding("warning", f"{name} follows the target", len(panel), where, fix) for name in leaking_columns(panel))
        return replace(report, findings=(*report.findings, *leaks))
    return report


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
    panel = Panel.from_frame(_encode_text_covariates(table, names), columns=columns, freq=freq)
    names = panel.series.columns
    source = _source_rows(table, panel)
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


def _source_rows(table: nw.DataFrame[Any], panel: Panel) -> Ints:
    """The table row of each panel row, -1 for inserted rows."""
    keys = read_keys(frames.read_table(table.to_native()), panel.series.columns)
    position = keys.place_on_calendar(None, panel.calendar)[1]
    lengths = np.diff(keys.indptr)
    step = (position - np.repeat(panel.start, lengths)) // panel.calendar.step
    source = np.full(len(panel.y), -1, dtype=np.int64)
    source[step + np.repeat(panel.indptr[:-1], lengths)] = np.arange(len(position)) if keys.order is None else keys.order
    return source


def _error_finding(error: DataError) -> Finding:
    return Finding(severity="error", problem="frame", count=1, where=error.message.rstrip("."), hint=error.hint)


@dataclass(frozen=True)
class _SortedRows:
    """The rows sorted by id and time, including duplicates; series i has the rows `indptr[i]` to `indptr[i + 1]`.

    `unreadable` are findings on covariates that could not be read.
    """

    names: Columns
    library: str
    ids: Any
    indptr: Ints
    timestamps: Ints
    time: Any
    y: Floats
    covariates: Mapping[str, Covariate]
    unreadable: tuple[Finding, ...] = ()

    @classmethod
    def from_table(cls, table: nw.DataFrame[Any], names: Columns) -> _SortedRows:
        """Read and sort the rows; `DataError` if keys or targets are invalid. Static columns are not read."""
        if table[names.time].null_count():
            raise missing_timestamp_error(frames.read_table(table.to_native()), names)
        timestamps, time = datetimes.read_timestamps(table[names.time], names.time)
        runs = Runs(SINGLE_RUN, SINGLE_RUN, 1) if names.id is None else find_runs(table[names.id], names.id)
        order, indptr = runs.layout(timestamps)
        y = frames.read_numbers(table[names.target], names.target)
        order = np.arange(len(timestamps)) if order is None else order
        ids = frames.take_rows(table[names.id], order[indptr[:-1]]) if names.id is not None else None
        covariates: dict[str, Covariate] = {}
        unreadable = []
        for name in (*names.future, *names.past):
            try:
                covariates[name] = read_covariate(table[name].to_native(), name).take(order)
            except DataError as error:
                unreadable.append(_error_finding(error))
        return cls(
            names, frames.library_name(table), ids, indptr, timestamps[order], time, y[order], covariates, tuple(unreadable)
        )

    def report(self, freq: Any) -> CheckReport:
        """All findings: on the calendar, on rows, on covariates and on series; `freq` None is inferred."""
        is_duplicate = np.zeros(len(self.timestamps), dtype=bool)
        is_duplicate[1:] = self.timestamps[1:] == self.timestamps[:-1]
        is_duplicate[self.indptr[:-1]] = False
        calendar, absent, calendar_findings = self._place_on_calendar(is_duplicate, freq)
        rows = [
            ("error", "duplicates", is_duplicate, "drop the duplicates or aggregate them"),
            ("error", "infinite", np.isinf(self.y), "replace these values, e.g. by NaN"),
            ("warning", "gaps", absent, "a model that takes missing values, or missing='interpolate'"),
            ("warning", "missing", np.isnan(self.y), "a model that takes missing values, or missing='interpolate'"),
        ]
        findings = calendar_findings + [self._row_finding(*row, calendar) for row in rows if row[2].any()]
        findings += [*self.unreadable, *(finding for name in self.covariates for finding in self._covariate_findings(name))]
        table = self._series_table(is_duplicate, absent)
        season = (seasons(calendar.frequency) or (1,))[0] if calendar is not None else 1
        findings += self._ended_findings(calendar)
        findings += self._series_findings(
            table, season, self._incomplete_seasons(table, np.where(is_duplicate, 0, 1 + absent), season)
        )
        if (
            freq is None
            and calendar is not None
            and may_be_business_days(calendar.frequency, self.timestamps, self.indptr, self.time)
        ):
            where, fix = "no series continues after a weekend; freq D is assumed", "freq='B' if weekends have no data"
            findings.append(Finding("note", "days or business days", len(self.indptr) - 1, where, fix))
        summary = {
            "series": len(self.indptr) - 1,
            "rows": len(self.timestamps),
            "freq": calendar.freq if calendar is not None else "unknown",
            "from": format_timestamp(int(self.timestamps.min()), self.time),
            "to": format_timestamp(int(self.timestamps.max()), self.time),
        }
        return CheckReport(summary, tuple(findings), self._series_frame(table))

    def _place_on_calendar(self, is_duplicate: NDArray[np.bool_], freq: Any) -> tuple[Calendar | None, Ints, list[Finding]]:
        """The calendar, the number of missing steps before each row, and findings.

        If rows are irregular or do not fit `freq`, the calendar is None, the numbers are 0, and a finding says why.
        """
        absent = np.zeros(len(self.timestamps), dtype=np.int64)
        unique_indptr = np.concatenate([[0], np.cumsum(~is_duplicate)])[self.indptr]
        timestamps = self.timestamps[~is_duplicate]
        unique_rows = np.flatnonzero(~is_duplicate)
        frequency = parse(freq) if freq is not None else infer(timestamps, unique_indptr, self.time)
        if frequency is None and (off_grid := find_off_grid(timestamps, unique_indptr, self.time)):
            return (
                None,
                absent,
                [self._off_grid_finding(off_grid[0], unique_rows[off_grid[1]], "correct them, or resample events first")],
            )
        if frequency is None:
            fix = "pass freq=; resample irregular series"
            where = "cannot be inferred from the timestamps"
            return None, absent, [Finding("error", "frequency", len(self.indptr) - 1, where, fix)]
        try:
            calendar = calendars.make_calendar(frequency, self.time, int(timestamps[0]))
        except DataError as error:
            finding = Finding("error", "frequency", len(self.indptr) - 1, str(error), "pass the freq of the data")
            return None, absent, [finding]
        position = calendar.positions(timestamps)
        steps = np.diff(position, prepend=position[:1])
        steps[unique_indptr[:-1]] = calendar.step
        is_off_grid = (position == OFF_GRID) | (steps % calendar.step != 0)
        if is_off_grid.any():
            finding = self._off_grid_finding(calendar.frequency, unique_rows[is_off_grid], "pass the freq of the data")
            return None, absent, [finding]
        absent[unique_rows] = steps // calendar.step - 1
        n_rows = len(timestamps) + float(absent.sum(dtype=np.float64))
        if is_blown_up(n_rows, len(timestamps)):
            where = f"freq={calendar.freq!r} requires {n_rows:,.0f} rows, but there are {len(timestamps):,}"
            fix = "pass the freq of the data, or split the series"
            return None, np.zeros_like(absent), [Finding("error", "frequency", len(self.indptr) - 1, where, fix)]
        return calendar, absent, []

    def _off_grid_finding(self, frequency: Frequency, rows: Ints, fix: str) -> Finding:
        is_off_grid = np.zeros(len(self.timestamps), dtype=bool)
        is_off_grid[rows] = True
        return self._row_finding("error", f"off the grid of {str(frequency)!r}", is_off_grid, fix)

    def _row_finding(
        self, severity: str, problem: str, counts: NDArray[Any], fix: str, calendar: Calendar | None = None
    ) -> Finding:
        """A finding on rows: `counts` flags them, or holds the number of missing steps before each.

        It names the first flagged timestamp, or the first missing one, which follows the row before.
        """
        rows = np.flatnonzero(counts)
        first_timestamp = format_timestamp(int(self.timestamps[rows[0]]), self.time)
        if calendar is not None and counts.dtype != bool:
            row_before = calendar.positions(self.timestamps[rows[0] - 1 : rows[0]])
            first_timestamp = calendar.format(int(row_before[0]) + calendar.step)
        series = np.unique(np.searchsorted(self.indptr, rows, side="right") - 1)
        series_text = f" ({self._labels(series[:1])})" if len(series) > 1 else ""
        where = f"{self._labels(series)}, first at {first_timestamp}{series_text}"
        return Finding(severity, problem, int(counts.sum()), where, fix)

    def _series_table(self, is_duplicate: NDArray[np.bool_], absent: Ints) -> dict[str, Any]:
        """The statistics of each series, one row per series."""
        begin = self.indptr[:-1]
        finite = np.isfinite(self.y)
        counts = {"duplicates": is_duplicate, "missing": np.isnan(self.y), "infinite": np.isinf(self.y), "zeros": self.y == 0}
        table: dict[str, Any] = {"rows": np.diff(self.indptr)}
        table["start"] = datetimes.time_series("start", self.timestamps[begin], self.time, self.library)
        table["end"] = datetimes.time_series("end", self.timestamps[self.indptr[1:] - 1], self.time, self.library)
        table["gaps"] = np.add.reduceat(absent, begin)
        table |= {name: np.add.reduceat(rows.astype(np.int64), begin) for name, rows in counts.items()}
        has_value = np.add.reduceat(finite.astype(np.int64), begin) > 0
        table["min"] = np.where(has_value, np.minimum.reduceat(np.where(finite, self.y, np.inf), begin), np.nan)
        table["max"] = np.where(has_value, np.maximum.reduceat(np.where(finite, self.y, -np.inf), begin), np.nan)
        return table

    def _series_frame(self, table: dict[str, Any]) -> Frame:
        """The table as a frame with the ids first; they replace a statistic of the same name."""
        if self.ids is None or self.names.id is None:
            return frames.build(self.library, table)
        return frames.build(
            self.library, {self.names.id: self.ids, **{name: values for name, values in table.items() if name != self.names.id}}
        )

    def _incomplete_seasons(self, table: dict[str, Any], steps: Ints, season: int) -> NDArray[np.bool_]:
        """Mask of the series with at least one season of values, but none at some position in the season.

        `steps` are the time steps from row to row.
        """
        has_missing = table["missing"] + table["gaps"] > 0
        n_values = table["rows"] - table["missing"]
        is_incomplete = has_missing & (n_values >= season) & (season > 1)  # candidates, reduced below
        is_candidate_row = np.repeat(is_incomplete, table["rows"])
        lengths = table["rows"][is_incomplete]
        elapsed = np.cumsum(steps[is_candidate_row])
        # (series, position in the season) as one number; it does not matter which position is the first
        slot = np.repeat(np.arange(len(lengths)) * season, lengths) + elapsed % season
        n_observed = np.bincount(slot[~np.isnan(self.y[is_candidate_row])], minlength=len(lengths) * season)
        is_incomplete[is_incomplete] = (n_observed.reshape(-1, season) == 0).any(axis=1)
        return np.asarray(is_incomplete)

    def _covariate_findings(self, name: str) -> list[Finding]:
        """Findings on a future or past covariate: what `fit` raises or warns about."""
        covariate = self.covariates[name]
        first_rows, last_rows = self.indptr[:-1], self.indptr[1:] - 1
        missing, infinite = covariate.missing(), np.isinf(covariate.values)
        is_observed = ~(missing | np.isnan(self.y))
        low = np.minimum.reduceat(np.where(is_observed, covariate.values, np.inf), first_rows)
        high = np.maximum.reduceat(np.where(is_observed, covariate.values, -np.inf), first_rows)
        n_observed = np.add.reduceat(is_observed.astype(np.int64), first_rows)
        missing_at_end = np.zeros(len(missing), dtype=bool)
        missing_at_end[last_rows] = missing[last_rows]
        row_rules = [
            ("error", f"{name} infinite", infinite, "replace these values, e.g. by NaN"),
            ("warning", f"{name} missing", missing, "a model with capabilities.missing, or missing='interpolate'"),
        ]
        series_rules = [("note", f"{name} constant", (low == high) & (n_observed > 1), "has no effect in these series")]
        if name in self.names.future:
            fix = "fill it: steps without future covariates cannot be cross-validated"
            row_rules.append(("warning", f"{name} missing at the end", missing_at_end, fix))
            fix = "models with capabilities.local cannot learn its effect: leave it out, or pool the series"
            series_rules = [("warning", f"{name} constant", (low == high) & (n_observed > 1), fix)]
            fix = "models with capabilities.local reject it: leave it out, or these series"
            series_rules.append(("warning", f"{name} never observed with a target", n_observed == 0, fix))
        findings = [self._row_finding(*row) for row in row_rules if row[2].any()]
        for severity, problem, is_affected, fix in series_rules:
            if is_affected.any():
                where = self._labels(np.flatnonzero(is_affected))
                findings.append(Finding(severity, problem, int(is_affected.sum()), where, fix))
        return findings

    def _ended_findings(self, calendar: Calendar | None) -> list[Finding]:
        """The finding, in a list, on series whose forecasts would lie in the past, of which `predict` warns."""
        if calendar is None:
            return []
        last = calendar.positions(self.timestamps[self.indptr[1:] - 1])
        ended = ended_early(last, calendar)
        if not len(ended):
            return []
        first = calendar.format(int(last[ended[0]]))
        where = f"{self._labels(ended)}, the first at {first}, the last of the others at {calendar.format(int(last.max()))}"
        fix = "drop these series, or add their later observations: their forecasts lie in the past"
        return [Finding("note", "ended early", len(ended), where, fix)]

    def _series_findings(self, table: dict[str, Any], season: int, is_incomplete: NDArray[np.bool_]) -> list[Finding]:
        """Findings on series without values, short or constant ones, and those with an incomplete season."""
        n_values = table["rows"] - table["missing"]
        short = (n_values > 0) & (n_values < MIN_SEASONS * season)
        constant = (n_values > 1) & (table["min"] == table["max"]) & (table["infinite"] == 0)
        series_rules = [
            ("error", "all missing", n_values == 0, "drop these series"),
            ("warning", f"short (< {MIN_SEASONS} seasons of {season})", short, "leave them out of seasonal models"),
            ("warning", f"season of {season} incomplete", is_incomplete, "seasonal models with missing='interpolate'"),
            ("note", "constant", constant, "forecasts will be that constant"),
        ]
        return [
            Finding(severity, problem, int(is_affected.sum()), self._labels(np.flatnonzero(is_affected)), fix)
            for severity, problem, is_affected, fix in series_rules
            if is_affected.any()
        ]

    def _labels(self, series: Ints) -> str:
        """The ids of the first few series and their number, for messages."""
        if self.ids is None:
            return "the series"
        return format_list([format_value(self.ids[int(number)]) for number in series[:5]], len(series))
