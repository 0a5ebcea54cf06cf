"""What a leaderboard says in words: who is best, how sure that is, what failed, what was left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.forecast import interval_columns
from deepforecast.data.forecast_names import CUTOFF
from deepforecast.data.frames import Floats
from deepforecast.errors import format_list, format_value, pluralize
from deepforecast.evaluation.criteria import LEFT_OUT

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard

ACRONYMS = {
    "mae": "MAE", "rmse": "RMSE", "mape": "MAPE", "smape": "sMAPE", "wape": "WAPE", "mase": "MASE", "rmsse": "RMSSE",
    "owa": "OWA", "msis": "MSIS", "crps": "CRPS",
}  # fmt: skip
SURE = 0.05  # p-value below which a difference is more than chance
UNDERCOVERAGE = 0.1  # 80 % intervals that cover less than 70 % are reported
ENOUGH_FOR_COVERAGE = 30  # actual values; with fewer nothing is said
ONE_SIDED = 1.645  # quantile of the normal distribution at 95 %


def title(board: Leaderboard) -> str:
    """Who is best, in three words."""
    good = board.table[board.table["error"] == ""]
    if len(good) > 1 and _score(board, 0) == _score(board, 1):
        return f"{name(board.best_name)} and {name(good['model'].iloc[1])} are level"
    return f"{name(board.best_name)} leads" if len(board.table) > 1 else name(board.best_name)


def verdict(board: Leaderboard) -> str:
    """Who is best, and how sure that is against the next."""
    table, deciding = board.table, board.criteria[board.metrics[0]]
    row, judged = table.iloc[0], deciding.judged_by
    good = table[table["error"] == ""]
    said = f"{name(row['model'])} is best by {format_value(deciding.column, 40)}: {number(row[judged])}"
    if deciding.best is not None:
        said += f" away from {deciding.best:g} in the mean over series"
    if np.isfinite(row[f"{judged}-low"]):
        said += f" (95 % interval {number(row[f'{judged}-low'])} to {number(row[f'{judged}-high'])})"
    if len(good) < 2:
        return said + (". No other model was compared." if len(table) < 2 else ". No other model came through.")
    return f"{said}. {_against_next(board, good.iloc[1])}"


def _against_next(board: Leaderboard, next_row: Any) -> str:
    """The difference between the first and the second, in a sentence."""
    pair = board.significance
    pair = pair[(pair["model"] == board.best_name) & (pair["against"] == next_row["model"])].iloc[0]
    series, wins, p_value = int(pair["series"]), float(pair["wins"]), float(pair["p_value"])
    second = f"{name(next_row['model'])} ({number(next_row[board.criteria[board.metrics[0]].judged_by])})"
    if not series:
        return f"{second} is next; no series has a score of both, so nothing tells how sure that is."
    if series == 1:
        return f"{second} is next; one series cannot tell how sure that is."
    counted = f"better in {percent(wins)} of {series:,} series, p {p_text(p_value)}"
    if p_value == 1 and _score(board, 0) == _score(board, 1):
        return f"{second} is level with it."
    if p_value >= SURE:
        return f"{second} is next, and the difference may be chance: {counted}."
    if wins <= 0.5:
        return f"{second} is next, yet most series speak for it: the best is {counted}. A few series decide the mean."
    return f"That is more than chance against {second}, the next: {counted}."


def _score(board: Leaderboard, place: int) -> float:
    """The number that decides, of the model at a place."""
    return float(board.table[board.criteria[board.metrics[0]].judged_by].iloc[place])


def headline(board: Leaderboard) -> str:
    """What was compared, in a line.

    >>> from deepforecast import Naive, SeasonalNaive, compare, datasets
    >>> compare([Naive(), SeasonalNaive()], datasets.load("air_passengers"), horizon=12).headline()
    '2 models, 1 series, horizon 12, 3 windows; ranked by MASE'
    """
    settings, first = board.settings, board.criteria[board.metrics[0]]
    counts = f"{pluralize(len(board.table), 'model')}, {settings['series']:,} series"
    windows = f"horizon {settings['horizon']}, {pluralize(settings['n_windows'], 'window')}"
    metric = ACRONYMS.get(first.column, format_value(first.column, 40))
    distance = "" if first.best is None else f" (mean distance from {first.best:g})"
    return f"{counts}, {windows}; ranked by {metric}{distance}"


def notes(board: Leaderboard) -> list[str]:
    """What failed, which intervals are too narrow, and what did not count."""
    told = [f"{name(row.model)} failed: {format_value(row.error, 300)}" for row in board.table.itertuples() if row.error]
    return told + undercoverage(board) + left_out(board)


def undercoverage(board: Leaderboard) -> list[str]:
    """Name the models whose intervals cover over 10 percentage points too little, by more than chance, for each level.

    Errors of neighbouring steps are alike, so the mean of each series in each window counts as one observation: the share
    covered must lie below the level by 1.645 standard errors of these means (one-sided test at 5 %). A single one is taken
    for all covered or none.
    """
    sentences = []
    for column, criterion in board.criteria.items():
        if not column.startswith("coverage-") or criterion.best is None or criterion.level is None:
            continue
        least = criterion.best - UNDERCOVERAGE
        groups: dict[tuple[int, bool], list[str]] = {}
        for _, row in board.table[board.table[column] < least - 1e-9].iterrows():
            means, values = _coverage_by_window(board, row["model"], criterion.level)
            if values < ENOUGH_FOR_COVERAGE:
                continue
            variance = np.var(means, ddof=1) if len(means) > 1 else criterion.best * (1 - criterion.best)
            if row[column] + ONE_SIDED * np.sqrt(variance / len(means)) < criterion.best:
                group = groups.setdefault((values, row["model"] in board.settings["conformal"]), [])
                group.append(f"{name(row['model'])} ({percent(row[column])})")
        of = f"{board.settings['series']:,} series in {pluralize(board.settings['n_windows'], 'window')}"
        for (values, conformal), models in groups.items():
            advice = "more calibration windows" if conformal else "intervals='conformal'"
            sentences.append(
                f"{percent(criterion.best)} prediction intervals cover less than {percent(least)} of {values:,} actual values "
                f"of {of}: {format_list(models)}. Do not rely on them; try {advice} or longer histories."
            )
    return sentences


def _coverage_by_window(board: Leaderboard, model: str, level: float) -> tuple[Floats, int]:
    """The share covered of each series in each window, and the number of actual values."""
    from deepforecast.data import frames

    table, names = frames.to_narwhals(board.forecasts), board.settings["columns"]
    ((_, low, high),) = interval_columns(model, [level])
    y, lower, upper = (table[column].to_numpy() for column in (names["target"], low, high))
    there = np.flatnonzero(~np.isnan(y))
    starts = np.zeros(len(there), dtype=bool)  # of the windows: rows are in the order of series, cutoff, step
    for key in (names["id"], CUTOFF):
        if key in table.columns:
            column = table[key].to_numpy()[there]
            starts[1:] |= column[1:] != column[:-1]
    window = np.cumsum(starts)
    inside = ((y >= lower) & (y <= upper))[there]
    return np.bincount(window, weights=inside) / np.bincount(window), len(there)


def left_out(board: Leaderboard) -> list[str]:
    """Points without an actual value, and where a metric is undefined; covariates not used."""
    from deepforecast.data import frames

    points = len(frames.to_narwhals(board.forecasts))
    told = []
    columns = {LEFT_OUT: "without an actual value"}
    columns |= {f"{one}-{LEFT_OUT}": f"where {format_value(one, 40)} is undefined" for one in board.criteria}
    per_model = board.by_series.groupby("model", sort=False)
    for column, why in columns.items():
        if column in board.by_series and (count := int(per_model[column].sum().max())):
            told.append(f"Left out: {count:,} of {points:,} points {why}.")
    if board.settings["not_judged"]:
        told.append(f"No window judges these series: {board.settings['not_judged']}.")
    return told + [
        f"{name(row.model)} ran without covariates it cannot use: {format_value(row.unused, 200)}."
        for row in board.table.itertuples()
        if row.unused
    ]


def name(model: object, longest: int = 60) -> str:
    """A model's name as it may be printed: escaped and cut."""
    return format_value(str(model), longest)


def number(value: Any, digits: int = 4) -> str:
    """A number with few digits; blank for none.

    >>> number(12345.678), number(0.00012345), number(1e12), number(float("nan"))
    ('12,346', '0.0001234', '1e+12', '')
    """
    value = float("nan") if value is None else float(value)
    if not np.isfinite(value):
        return ""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.{digits}g}"


def seconds(value: float) -> str:
    """Seconds, as exactly as they can be told apart from chance."""
    return "" if np.isnan(value) else "<0.01" if value < 0.01 else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.8), percent(0.996)
    ('80 %', '99.6 %')
    """
    if np.isnan(share):
        return ""
    text = f"{100 * share:.0f}"
    return f"{100 * share:.1f} %" if text in ("0", "100") and share not in (0.0, 1.0) else f"{text} %"


def p_text(value: float) -> str:
    """A p-value with its sign.

    >>> p_text(0.0312), p_text(1e-9)
    ('= 0.031', '< 0.001')
    """
    return "< 0.001" if value < 0.001 else f"= {value:.2g}"
