"""The outcome of `compare`: a table with a row a model, printed, plotted, reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.frequency import seasons
from deepforecast.data.panel import Panel
from deepforecast.errors import shown
from deepforecast.evaluation import significance
from deepforecast.evaluation.metrics import get
from deepforecast.evaluation.score import score

if TYPE_CHECKING:
    from deepforecast.evaluation.compare import Run

SCALED = ("mase", "rmsse", "smape", "relative_bias")
PLAIN = ("mae", "rmse", "smape", "relative_bias")  # where no season is known to scale by
OF_LEVELS = ("coverage", "width", "winkler")


@dataclass(frozen=True)
class Leaderboard:
    """Models from best to worst by the first metric; those that failed at the end, with their error.

    `table`: a pandas frame with, for each model, mean and median `rank` over series, each metric with its 95 % bootstrap interval over
    series (`mase-low`, `mase-high`), coverage and width of each level, `fit_seconds`, `predict_seconds`, `peak_mb` (blank where it cannot
    be measured), `unused` covariates, `error`. `by_series`: the metrics of every series. `forecasts`: the cross-validation frame.
    `significance`: for each pair of models the share of series the first wins and the Holm-corrected p-value of the difference.
    """

    table: Any
    by_series: Any
    forecasts: Frame
    significance: Any
    metrics: tuple[str, ...]
    settings: Mapping[str, Any]
    history: Frame

    @property
    def best(self) -> str:
        """The name of the best model."""
        return str(self.table["model"].iloc[0])

    @property
    def failed(self) -> list[str]:
        """Names of the models that failed."""
        return [str(name) for name in self.table.loc[self.table["error"] != "", "model"]]

    def __repr__(self) -> str:
        return "\n".join([self.headline(), *_lines(self.printed()), *self._notes()])

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return f"<p>{escape(self.headline())}</p>{self.printed().to_html(index=False, border=0, escape=True)}{notes}"

    def headline(self) -> str:
        """What was compared, in a line."""
        said = self.settings
        return (
            f"{len(self.table)} models on {said['series']:,} series, horizon {said['horizon']}, {said['n_windows']} windows; "
            f"{self.metrics[0]} decides ({get(self.metrics[0]).rewards.rstrip('.').lower()})"
        )

    def printed(self) -> Any:
        """The table for reading: intervals beside their metric, short numbers, no column that says nothing."""
        import pandas as pd

        table = self.table
        out: dict[str, Any] = {"model": table["model"].tolist(), "rank": [_short(value, 3) for value in table["rank"]]}
        for name in self.metrics:
            interval = name == self.metrics[0] and bool(table[f"{name}-low"].notna().any())
            low, high = (table[f"{name}-low"], table[f"{name}-high"]) if interval else (table[name], table[name])
            out[f"{name} [95 %]" if interval else name] = [
                f"{_short(v)} [{_short(lo)}, {_short(hi)}]" if interval and np.isfinite(lo) else _short(v)
                for v, lo, hi in zip(table[name], low, high, strict=True)
            ]
        for name in table.columns:
            if str(name).startswith("coverage-"):
                out[str(name)] = [f"{100 * value:.0f} %" if np.isfinite(value) else "" for value in table[name]]
        out["fit s"] = [_seconds(value) for value in table["fit_seconds"]]
        out["predict s"] = [_seconds(value) for value in table["predict_seconds"]]
        if table["peak_mb"].notna().any():
            out["peak MB"] = ["" if np.isnan(value) else f"{value:,.0f}" for value in table["peak_mb"]]
        if (table["unused"] != "").any():
            out["left out"] = table["unused"].tolist()
        return pd.DataFrame(out)

    def plot(self, metric: str | None = None, *, backend: str = "matplotlib") -> Any:
        """The models in order of a metric (default: the first), with their intervals."""
        from deepforecast.plotting import plot_leaderboard

        return plot_leaderboard(self.tidy(), metric or self.metrics[0], backend=backend)  # type: ignore[arg-type]

    def tidy(self) -> Any:
        """`model, metric, value, low, high`: what the plots draw."""
        import pandas as pd

        good = self.table[self.table["error"] == ""]
        parts = [
            pd.DataFrame({"model": good["model"], "metric": name, "value": good[name], "low": good[f"{name}-low"], "high": good[f"{name}-high"]})
            for name in self.metrics
        ]
        return pd.concat(parts, ignore_index=True)

    def report(self, path: Any) -> None:
        """Write one self-contained HTML page that opens offline."""
        from deepforecast.evaluation.report import write

        write(self, path)

    def _notes(self) -> list[str]:
        notes = [f"{row.model} failed: {shown(row.error, 300)}" for row in self.table.itertuples() if row.error]
        if "left_out" in self.table and (self.table["left_out"] > 0).any():
            notes.append(f"Left out of the scores: {int(self.table['left_out'].max())} points (missing actuals or undefined metrics).")
        return notes


def ranked(runs: Sequence[Run], forecasts: Frame, panel: Panel, history: Frame, metrics: Sequence[Any] | None, settings: Mapping[str, Any]) -> Leaderboard:
    """Score the forecasts of all runs that ended well and put the models in order."""
    import pandas as pd

    good = [run for run in runs if not run.error]
    by_series = _by_series(forecasts, panel, history, metrics, [run.name for run in good])
    names = tuple(str(name) for name in by_series.columns if name not in _keys(panel) and not str(name).endswith("left_out"))
    asked = tuple(name for name in names if not name.startswith(OF_LEVELS))
    values = {name: _values(by_series, good, name) for name in names}
    table = pd.DataFrame({"model": [run.name for run in good], **_statistics(values, asked)})
    table["left_out"] = _left_out(by_series, good)
    table = table.iloc[_order(table[asked[0]].to_numpy(), asked[0])]
    failed = pd.DataFrame({"model": [run.name for run in runs if run.error]})
    table = pd.concat([table, failed], ignore_index=True) if len(failed) else table.reset_index(drop=True)
    costs = {run.name: run for run in runs}
    for column, cost in (("fit_seconds", "fit_seconds"), ("predict_seconds", "predict_seconds"), ("peak_mb", "peak_mb")):
        table[column] = np.array([getattr(costs[name], cost) for name in table["model"]], dtype=np.float64)
    table["unused"] = [", ".join(costs[name].unused) for name in table["model"]]
    table["error"] = [costs[name].error for name in table["model"]]
    return Leaderboard(table, by_series, forecasts, _significance(values[asked[0]], good, asked[0]), asked, settings, history)


def _by_series(forecasts: Frame, panel: Panel, history: Frame, metrics: Sequence[Any] | None, models: Sequence[str]) -> Any:
    """Every metric for every series and model, as pandas."""
    columns = panel.series.columns
    keys = {"id": columns.id, "time": columns.time, "target": columns.target}
    train = history if seasons(panel.calendar.frequency) else None
    wanted = list(metrics) if metrics is not None else list(SCALED if train is not None else PLAIN)
    levels = any(f"{name}-lo-" in column for name in models for column in frames.opened(forecasts).columns)
    wanted += [name for name in OF_LEVELS if levels and name not in wanted]
    by = ["series"] if columns.id is not None and len(panel) > 1 else ["model"]
    found = score(forecasts, metrics=wanted, train=train, by=by, columns=keys, models=models, freq=panel.calendar.frequency)
    return frames.opened(found).to_pandas()


def _keys(panel: Panel) -> tuple[str, ...]:
    return (str(panel.series.columns.id), "model")


def _values(by_series: Any, runs: Sequence[Run], metric: str) -> Floats:
    """One metric as an array (models, series)."""
    return np.stack([by_series.loc[by_series["model"] == run.name, metric].to_numpy(dtype=np.float64) for run in runs])


def _statistics(values: Mapping[str, Floats], asked: Sequence[str]) -> dict[str, Floats]:
    """Ranks by the first metric; every metric's mean over series with its interval."""
    ranks = significance.ranks(get(asked[0]).distance(values[asked[0]]))
    ranks = ranks[:, ~np.isnan(ranks).any(axis=0)]
    unknown = np.full(len(ranks), np.nan)
    found: dict[str, Floats] = {
        "rank": ranks.mean(axis=1) if ranks.size else unknown,
        "rank-median": np.median(ranks, axis=1) if ranks.size else unknown,
    }
    for name, held in values.items():
        interval = significance.mean_interval(held)
        found[name] = interval.mean
        if name in asked:
            found[f"{name}-low"], found[f"{name}-high"] = interval.low, interval.high
    return found


def _order(means: Floats, metric: str) -> Any:
    """Best first: by the distance a ranking of this metric goes by; the undefined last."""
    return np.argsort(np.nan_to_num(get(metric).distance(means), nan=np.inf), kind="stable")


def _left_out(by_series: Any, runs: Sequence[Run]) -> list[int]:
    columns = [name for name in by_series.columns if str(name).endswith("left_out")]
    return [int(by_series.loc[by_series["model"] == run.name, columns].to_numpy().sum()) if columns else 0 for run in runs]


def _significance(values: Floats, runs: Sequence[Run], metric: str) -> Any:
    """A row for each pair of models."""
    import pandas as pd

    found = significance.pairwise(get(metric).distance(values))
    pairs = [(i, j) for i in range(len(runs)) for j in range(len(runs)) if i != j]
    return pd.DataFrame(
        {
            "model": [runs[i].name for i, _ in pairs],
            "against": [runs[j].name for _, j in pairs],
            "wins": [found.wins[i, j] for i, j in pairs],
            "p_value": [found.corrected[i, j] for i, j in pairs],
        }
    )


def _seconds(value: float) -> str:
    return "" if np.isnan(value) else "<0.01" if value < 0.01 else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _short(value: Any, digits: int = 4) -> str:
    """A number with few digits; blank for none."""
    number = float("nan") if value is None else float(value)
    if not np.isfinite(number):
        return ""
    text = f"{number:.{digits}g}"
    return f"{number:,.0f}" if "e" in text and abs(number) >= 1 else text


def _lines(table: Any) -> list[str]:
    """A text table: names to the left, numbers to the right."""
    columns = [[str(name), *map(str, table[name])] for name in table.columns]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(cell.ljust(width) if number == 0 else cell.rjust(width) for number, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in zip(*columns, strict=True)
    ]
