"""The outcome of `compare`: a table with a row a model, printed, plotted, reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deepforecast.data.frames import Frame
from deepforecast.errors import ParameterError, format_list, format_value

if TYPE_CHECKING:
    from deepforecast.evaluation.criteria import Criterion


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard:
    """Models from best to worst by the first metric; those that failed at the end, with their error.

    `table`: a pandas frame. For each model mean and median `rank` over series; the mean over series of each metric with its
    95 % bootstrap interval (`mase`, `mase-low`, `mase-high`; the mean of rmse by series is not the rmse of all points pooled);
    of a metric that is best at zero (bias) or at a level (coverage) the mean distance of the series from there besides, which
    puts models in order, for series too high and too low cancel in the mean (`bias-distance`, `bias-distance-low` ...);
    with levels those of `coverage-80`, `width-80`, `winkler-80` too; `left_out`: points without an actual value or where a
    metric is undefined; `fit_seconds` and `predict_seconds`, without what is compiled or imported once; `peak_mb`: memory
    beyond what was held before, sampled every few milliseconds, blank where it cannot be measured; `unused` covariates;
    `error`.
    `by_series`: the metrics of every series, as pandas. `forecasts`: the cross-validation frame of the models that ran.
    `significance`: for each pair of models the share of the `series` that the first `wins` and the p-value of the difference
    (Wilcoxon's signed-rank test, Holm's correction). `metrics`: their names, the one that decides first; `criteria`: all
    columns of scores. `settings`: all that was set, versions, machine, date. `history`: the frame compared on, as given.
    """

    table: Any
    by_series: Any
    forecasts: Frame
    significance: Any
    metrics: tuple[str, ...]
    settings: Mapping[str, Any]
    history: Frame
    criteria: Mapping[str, Criterion]

    @property
    def best_name(self) -> str:
        """The name of the best model."""
        return str(self.table["model"].iloc[0])

    @property
    def failed(self) -> list[str]:
        """Names of the models that failed."""
        return [str(name) for name in self.table.loc[self.table["error"] != "", "model"]]

    def __repr__(self) -> str:
        """The board as text, as wide as the terminal (120 characters where there is none)."""
        from shutil import get_terminal_size

        return self.text(get_terminal_size((120, 24)).columns)

    def text(self, width: int = 120) -> str:
        """The board as text of at most `width` characters; columns without room are left out and named."""
        from deepforecast.evaluation.leaderboard_text import render_text

        return render_text(self, width)

    def headline(self) -> str:
        """What was compared, in a line."""
        from deepforecast.evaluation.leaderboard_summary import headline

        return headline(self)

    def printed(self) -> Any:
        """The table for reading, as pandas: short numbers, the interval beside the metric that decides, all text escaped."""
        import pandas as pd

        from deepforecast.evaluation.leaderboard_text import NAME_LENGTHS, format_columns

        text_columns = format_columns(self, NAME_LENGTHS[0])
        return pd.DataFrame(dict(enumerate(column.cells for column in text_columns))).set_axis([column.name for column in text_columns], axis=1)

    def _repr_html_(self) -> str:
        from deepforecast.evaluation.leaderboard_text import render_html

        return render_html(self)

    def plot(self, metric: str | None = None, *, backend: str = "matplotlib") -> Any:
        """The models in order of a metric (default: the one that decides), with their intervals.

        A metric that is best at zero (bias) or at its level (coverage) is drawn as the mean distance of the series from there.
        """
        from deepforecast.plotting import plot_leaderboard

        return plot_leaderboard(self, metric, backend=backend)  # type: ignore[arg-type]

    def tidy(self) -> Any:
        """Every metric of every model that did not fail, for plots of your own.

        The columns are `model, metric, value, low, high, seconds, lower_is_better, best`; `best` is the value at which a metric
        is best that is best neither low nor high (bias, coverage).
        """
        import pandas as pd

        metric_frames = []
        for name, criterion in self.criteria.items():
            best = float("nan") if criterion.best is None else criterion.best
            metric_frames.append(self._score_frame(name, name).assign(lower_is_better=criterion.metric.better != "high", best=best))
        return pd.concat(metric_frames, ignore_index=True)

    def distances(self, metric: str) -> Any:
        """`tidy` of one metric and `lower_is_better`; of one that is best neither low nor high the mean distance from there."""
        if metric not in self.criteria:
            columns = format_list(list(self.criteria), max_shown=20)
            raise ParameterError(
                f"`metric` must be a column of scores of the board, got {format_value(metric)}. There are: {columns}."
            )
        criterion = self.criteria[metric]
        label = metric if criterion.best is None else f"{metric}, {describe_direction(criterion)}"
        return self._score_frame(criterion.ranking_column, label).assign(lower_is_better=criterion.metric.better != "high")

    def _score_frame(self, column: str, label: str) -> Any:
        """A column of scores with its interval, under the usual names."""
        successful = self.table[self.table["error"] == ""]
        selected = successful[["model", column, f"{column}-low", f"{column}-high"]]
        scores = selected.set_axis(["model", "value", "low", "high"], axis=1).reset_index(drop=True)
        scores.insert(1, "metric", label)
        scores["seconds"] = (successful["fit_seconds"] + successful["predict_seconds"]).to_numpy()
        return scores

    def report(self, path: Any) -> None:
        """Write one HTML page with tables and plots that opens offline, on a phone too."""
        from deepforecast.evaluation.report import write_report

        write_report(self, path)


def describe_direction(criterion: Criterion) -> str:
    """Where a good value lies, in words."""
    if criterion.best is not None:
        return f"distance from {criterion.best:g}"
    return f"{'lower' if criterion.metric.better == 'low' else 'higher'} is better"
