"""Sentences about a leaderboard: the best model, significance, failures and points left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.forecast import interval_columns
from deepforecast.data.columns import CUTOFF
from deepforecast.data.frames import Floats
from deepforecast.errors import format_list, format_value, pluralize
from deepforecast.evaluation.criteria import LEFT_OUT

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard

ACRONYMS = {
    "mae": "MAE", "rmse": "RMSE", "mape": "MAPE", "smape": "sMAPE", "wape": "WAPE", "mase": "MASE", "rmsse": "RMSSE",
    "owa": "OWA", "msis": "MSIS", "crps": "CRPS",
}  # fmt: skip
SIGNIFICANCE_LEVEL = 0.05  # p-value below which a difference is more than chance
MAX_UNDERCOVERAGE = 0.1  # 80 % intervals that cover less than 70 % are reported
MIN_COVERAGE_VALUES = 30  # actual values; with fewer there is no note
ONE_SIDED_Z = 1.645  # quantile of the normal distribution at 95 %


def title(board: Leaderboard) -> str:
    """A short title: the best model, or two that are tied."""
    successful = board.table[board.table["error"] == ""]
    if len(successful) > 1 and _deciding_score(board, 0) == _deciding_score(board, 1):
        return f"{format_model_name(board.best_name)} and {format_model_name(successful['model'].iloc[1])} are tied"
    return f"{format_model_name(board.best_name)} leads" if len(board.table) > 1 else format_model_name(board.best_name)


def verdict(board: Leaderboard) -> str:
    """Sentences on the best model and on whether the difference to the second is significant."""
    table = board.table
    deciding = board.criteria[board.metrics[0]]
    row = table.iloc[0]
    ranking_column = deciding.ranking_column
    successful = table[table["error"] == ""]
    metric = format_value(deciding.column, 40)
    sentence = f"{format_model_name(row['model'])} is best by {metric}: {format_rounded(row[ranking_column])}"
    if deciding.target_value is not None:
        sentence += f" in mean distance from {deciding.target_value:g}"
    if np.isfinite(row[f"{ranking_column}-low"]):
        low, high = (format_rounded(row[f"{ranking_column}-{end}"]) for end in ("low", "high"))
        sentence += f" (95 % interval {low} to {high})"
    if len(successful) < 2:
        return sentence + (". No other model was compared." if len(table) < 2 else ". All other models failed.")
    return f"{sentence}. {_compare_with_next(board, successful.iloc[1])}"


def _compare_with_next(board: Leaderboard, next_row: Any) -> str:
    """A sentence on the difference between the first and the second model."""
    pairs = board.significance
    is_pair = (pairs["model"] == board.best_name) & (pairs["against"] == next_row["model"])
    pair = pairs[is_pair].iloc[0]
    n_series = int(pair["series"])
    win_share = float(pair["wins"])
    p_value = float(pair["p_value"])
    second = (
        f"{format_model_name(next_row['model'])} ({format_rounded(next_row[board.criteria[board.metrics[0]].ranking_column])})"
    )
    if not n_series:
        return f"{second} is second; no series has scores of both, so the difference cannot be tested."
    if n_series == 1:
        return f"{second} is second; the difference cannot be tested on one series."
    evidence = f"better in {format_percent(win_share)} of {n_series:,} series, p {format_p_value(p_value)}"
    if p_value == 1 and _deciding_score(board, 0) == _deciding_score(board, 1):
        return f"{second} is tied with it."
    if p_value >= SIGNIFICANCE_LEVEL:
        return f"{second} is second; the difference is not significant: {evidence}."
    if win_share <= 0.5:
        return f"{second} is second, although it wins in most series: the best is {evidence}. A few series dominate the mean."
    return f"The difference to {second}, the second, is significant: {evidence}."


def _deciding_score(board: Leaderboard, index: int) -> float:
    """The ranking score of the model in a row."""
    return float(board.table[board.criteria[board.metrics[0]].ranking_column].iloc[index])


def headline(board: Leaderboard) -> str:
    """A one-line summary of what was compared.

    >>> from deepforecast import Naive, SeasonalNaive, compare, datasets
    >>> compare([Naive(), SeasonalNaive()], datasets.load("air_passengers"), horizon=12).headline()
    '2 models, 1 series, horizon 12, 3 windows; ranked by MASE'
    """
    settings = board.settings
    criterion = board.criteria[board.metrics[0]]
    counts = f"{pluralize(len(board.table), 'model')}, {settings['series']:,} series"
    windows = f"horizon {settings['horizon']}, {pluralize(settings['n_windows'], 'window')}"
    metric = ACRONYMS.get(criterion.column, format_value(criterion.column, 40))
    distance = "" if criterion.target_value is None else f" (mean distance from {criterion.target_value:g})"
    return f"{counts}, {windows}; ranked by {metric}{distance}"


def notes(board: Leaderboard) -> list[str]:
    """Notes on failures, undercoverage and points left out."""
    sentences = [
        f"{format_model_name(row.model)} failed: {format_value(row.error, 300)}"
        for row in board.table.itertuples()
        if row.error
    ]
    return sentences + undercoverage_notes(board) + left_out_notes(board)


def undercoverage_notes(board: Leaderboard) -> list[str]:
    """List, for each level, models with significant undercoverage of more than 10 percentage
    points.

    Errors of neighbouring steps are correlated, so the mean of each series in each window counts as
    one observation: the coverage must be 1.645 standard errors of these means below the level
    (one-sided test at 5 %). The variance of a single observation is that of a Bernoulli variable.
    """
    sentences = []
    for column, criterion in board.criteria.items():
        if not column.startswith("coverage-") or criterion.target_value is None or criterion.level is None:
            continue
        threshold = criterion.target_value - MAX_UNDERCOVERAGE
        groups: dict[tuple[int, bool], list[str]] = {}
        for _, row in board.table[board.table[column] < threshold - 1e-9].iterrows():
            means, n_values = _coverage_by_window(board, row["model"], criterion.level)
            if n_values < MIN_COVERAGE_VALUES:
                continue
            variance = np.var(means, ddof=1) if len(means) > 1 else criterion.target_value * (1 - criterion.target_value)
            if row[column] + ONE_SIDED_Z * np.sqrt(variance / len(means)) < criterion.target_value:
                group = groups.setdefault((n_values, row["model"] in board.settings["conformal"]), [])
                group.append(f"{format_model_name(row['model'])} ({format_percent(row[column])})")
        extent = f"{board.settings['series']:,} series in {pluralize(board.settings['n_windows'], 'window')}"
        for (n_values, conformal), models in groups.items():
            advice = "more calibration windows" if conformal else "intervals='conformal'"
            sentences.append(
                f"{format_percent(criterion.target_value)} prediction intervals cover less than "
                f"{format_percent(threshold)} of {n_values:,} actual values "
                f"of {extent}: {format_list(models)}. Use {advice} or longer histories."
            )
    return sentences


def _coverage_by_window(board: Leaderboard, model: str, level: float) -> tuple[Floats, int]:
    """The coverage of each series in each window as a share, one flat array, and the number of actual
    values."""
    from deepforecast.data import frames

    table = frames.to_narwhals(board.forecasts)
    names = board.settings["columns"]
    ((_, low, high),) = interval_columns(model, [level])
    y, lower, upper = (table[column].to_numpy() for column in (names["target"], low, high))
    observed_rows = np.flatnonzero(~np.isnan(y + lower + upper))  # with an interval
    starts = np.zeros(len(observed_rows), dtype=bool)  # rows are sorted by series, cutoff and step
    for key in (names["id"], CUTOFF):
        if key in table.columns:
            column = table[key].to_numpy()[observed_rows]
            starts[1:] |= column[1:] != column[:-1]
    window = np.cumsum(starts)
    is_covered = ((y >= lower) & (y <= upper))[observed_rows]
    return np.bincount(window, weights=is_covered) / np.bincount(window), len(observed_rows)


def left_out_notes(board: Leaderboard) -> list[str]:
    """Notes on points without an actual value or with an undefined metric, and on unused
    covariates."""
    from deepforecast.data import frames

    n_points = len(frames.to_narwhals(board.forecasts))
    sentences = []
    columns = {LEFT_OUT: "without an actual value"}
    columns |= {
        f"{metric_name}-{LEFT_OUT}": f"where {format_value(metric_name, 40)} is undefined" for metric_name in board.criteria
    }
    per_model = board.by_series.groupby("model", sort=False)
    for column, reason in columns.items():
        if column in board.by_series and (n_left_out := int(per_model[column].sum().max())):
            sentences.append(f"Left out: {n_left_out:,} of {n_points:,} points {reason}.")
    if board.settings["not_judged"]:
        sentences.append(f"These series are in no window: {board.settings['not_judged']}.")
    if board.settings.get("dropped"):
        sentences.append(f"Left out for all models, as not all of them can fit these series: {board.settings['dropped']}.")
    outcome = "which a naive method forecast" if board.settings["on_failure"] == "fallback" else "which are left out"
    return (
        sentences
        + [
            f"{format_model_name(row.model)} ran without columns it cannot use: {format_value(row.unused, 200)}."
            for row in board.table.itertuples()
            if row.unused
        ]
        + [
            f"{format_model_name(row.model)} could not fit or forecast {row.failed_series:,} series, {outcome}."
            for row in board.table.itertuples()
            if row.failed_series
        ]
    )


def format_model_name(model: object, max_length: int = 60) -> str:
    """The name of a model, escaped and shortened."""
    return format_value(str(model), max_length)


def format_rounded(value: Any, digits: int = 4) -> str:
    """A number with few digits; empty for NaN.

    >>> format_rounded(12345.678), format_rounded(0.00012345), format_rounded(1e12), format_rounded(float("nan"))
    ('12,346', '0.0001234', '1e+12', '')
    """
    value = float("nan") if value is None else float(value)
    if not np.isfinite(value):
        return ""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.{digits}g}"


def format_seconds(value: float) -> str:
    """Seconds with two decimals below 10, otherwise rounded; empty for NaN."""
    if np.isnan(value):
        return ""
    if value < 0.01:
        return "<0.01"
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def format_percent(share: float) -> str:
    """A share as a percentage, with one decimal if it would be rounded to 0 or 100 %; empty for NaN.

    >>> format_percent(0.8), format_percent(0.996)
    ('80 %', '99.6 %')
    """
    if np.isnan(share):
        return ""
    rounded = f"{100 * share:.0f}"
    return f"{100 * share:.1f} %" if rounded in ("0", "100") and share not in (0.0, 1.0) else f"{rounded} %"


def format_p_value(value: float) -> str:
    """A p-value with its relation sign.

    >>> format_p_value(0.0312), format_p_value(1e-9)
    ('= 0.031', '< 0.001')
    """
    return "< 0.001" if value < 0.001 else f"= {value:.2g}"
