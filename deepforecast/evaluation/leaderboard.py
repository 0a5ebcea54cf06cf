"""The result of `compare`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deepforecast.data.frames import Frame
from deepforecast.errors import ParameterError, format_list, format_value

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.evaluation.criteria import Criterion


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard:
    """Models from best to worst by the first metric, followed by those that failed.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per model: `rank` and `rank-median` over series; the mean over series of each
        metric with its 95 % bootstrap interval (`mase`, `mase-low`, `mase-high`), including
        `coverage-80`, `width-80` and `winkler-80` if levels were requested; for metrics that are
        best at zero (bias) or at a level (coverage) also the mean distance from it
        (`bias-distance`), which ranks the models because errors of opposite sign cancel in the
        mean; `left_out`, the number of points without an actual value or with an undefined
        metric; `fit_seconds` and `predict_seconds` without compilation and imports; `peak_mb`,
        the sampled increase in memory, missing where it cannot be measured; `failed_series`, the
        number of series that the model could not fit in some window and that a naive method forecast;
        `unused` covariates; and `error`.
    by_series : pandas.DataFrame
        The metrics of every series.
    forecasts : DataFrame
        The cross-validation frame of the models that did not fail.
    significance : pandas.DataFrame
        For each ordered pair of models the share of series that the first one `wins`, the
        Holm-corrected p-value of the Wilcoxon signed-rank test, and the number of `series`.
    metrics : tuple of str
        Names of the metrics; the first one ranks the models.
    settings : dict
        Arguments of `compare`, versions, machine and date.
    history : DataFrame
        The frame that was passed to `compare`.
    criteria : dict
        The metric and level of each column of scores.
    models : dict
        The compared models by name, unfitted, with the common horizon and seed, and with
        conformal intervals where these were ranked.

    See Also
    --------
    compare : Create a leaderboard.
    """

    table: Any
    by_series: Any
    forecasts: Frame
    significance: Any
    metrics: tuple[str, ...]
    settings: Mapping[str, Any]
    history: Frame
    criteria: Mapping[str, Criterion]
    models: Mapping[str, Forecaster] = field(default_factory=dict)

    @property
    def best_name(self) -> str:
        """Name of the best model."""
        return str(self.table["model"].iloc[0])

    @property
    def best_model(self) -> Forecaster:
        """An unfitted clone of the best model.

        Examples
        --------
        >>> from deepforecast import Naive, SeasonalNaive, compare, datasets
        >>> frame = datasets.load("air_passengers")
        >>> board = compare([Naive(), SeasonalNaive()], frame, horizon=12)
        >>> board.best_model.fit(frame).predict().shape
        (12, 3)
        """
        return self.models[self.best_name].clone()

    @property
    def failed(self) -> list[str]:
        """Names of the models that failed."""
        return [str(name) for name in self.table.loc[self.table["error"] != "", "model"]]

    def __repr__(self) -> str:
        """The board as text, as wide as the terminal (120 characters without one)."""
        from shutil import get_terminal_size

        return self.text(get_terminal_size((120, 24)).columns)

    def text(self, width: int = 120) -> str:
        """Return the board as text of at most `width` characters, without the columns that do not
        fit."""
        from deepforecast.evaluation.leaderboard_text import render_text

        return render_text(self, width)

    def headline(self) -> str:
        """Return a one-line summary of what was compared."""
        from deepforecast.evaluation.leaderboard_summary import headline

        return headline(self)

    def printed(self) -> Any:
        """Return the table as a pandas frame of short, escaped texts."""
        import pandas as pd

        from deepforecast.evaluation.leaderboard_text import NAME_LENGTHS, format_columns

        text_columns = format_columns(self, NAME_LENGTHS[0])
        return pd.DataFrame(dict(enumerate(column.cells for column in text_columns))).set_axis(
            [column.name for column in text_columns], axis=1
        )

    def _repr_html_(self) -> str:
        from deepforecast.evaluation.leaderboard_text import render_html

        return render_html(self)

    def plot(self, metric: str | None = None, *, backend: str = "matplotlib") -> Any:
        """Plot the models in order of a metric with 95 % intervals.

        Parameters
        ----------
        metric : str, optional
            Column of scores. None: the one that ranks the models. A metric that is best at zero
            (bias) or at its level (coverage) is shown as the mean distance from it.
        backend : str, default "matplotlib"
            Plotting library.

        Returns
        -------
        Figure
        """
        from deepforecast.plotting import plot_leaderboard

        return plot_leaderboard(self, metric, backend=backend)  # type: ignore[arg-type]

    def tidy(self) -> Any:
        """Return all metrics of the models that did not fail in long format, for custom plots.

        Returns
        -------
        pandas.DataFrame
            Columns `model, metric, value, low, high, seconds, lower_is_better, best`; `best` is the
            target value of metrics such as bias and coverage, otherwise NaN.
        """
        import pandas as pd

        metric_frames = []
        for name, criterion in self.criteria.items():
            best = float("nan") if criterion.target_value is None else criterion.target_value
            metric_frames.append(
                self._score_frame(name, name).assign(lower_is_better=criterion.metric.better != "high", best=best)
            )
        return pd.concat(metric_frames, ignore_index=True)

    def distances(self, metric: str) -> Any:
        """Return one metric in the format of `tidy`, as the mean distance from its best value if it
        has one.

        Raises
        ------
        ParameterError
            If `metric` is not a column of scores.
        """
        if metric not in self.criteria:
            columns = format_list(list(self.criteria), max_shown=20)
            raise ParameterError(
                f"`metric` must be a column of scores of the board, got {format_value(metric)}.",
                hint=f"Use one of {columns}.",
                parameter="metric",
                value=metric,
            )
        criterion = self.criteria[metric]
        label = metric if criterion.target_value is None else f"{metric}, {describe_direction(criterion)}"
        return self._score_frame(criterion.ranking_column, label).assign(lower_is_better=criterion.metric.better != "high")

    def _score_frame(self, column: str, label: str) -> Any:
        """A column of scores with its interval, in long format."""
        successful = self.table[self.table["error"] == ""]
        selected = successful[["model", column, f"{column}-low", f"{column}-high"]]
        scores = selected.set_axis(["model", "value", "low", "high"], axis=1).reset_index(drop=True)
        scores.insert(1, "metric", label)
        scores["seconds"] = (successful["fit_seconds"] + successful["predict_seconds"]).to_numpy()
        return scores

    def report(self, path: Any) -> None:
        """Write an HTML page with tables and plots that needs no other files.

        Parameters
        ----------
        path : str or path-like
            File to write; missing folders are created.
        """
        from deepforecast.evaluation.report import write_report

        write_report(self, path)


def describe_direction(criterion: Criterion) -> str:
    """Where the best value of a criterion lies."""
    if criterion.target_value is not None:
        return f"distance from {criterion.target_value:g}"
    return f"{'lower' if criterion.metric.better == 'low' else 'higher'} is better"
