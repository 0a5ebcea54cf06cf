"""What a leaderboard shows: as text of any width, in a notebook, as plots; never more than it knows, never raw text."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Drift, Mean, Naive, SeasonalNaive, compare, cross_validate, decompose, score
from deepforecast.core.forecast import Forecast, PointForecast
from deepforecast.core.state import LearnedState
from deepforecast.errors import DataError, ParameterError
from deepforecast.evaluation.leaderboard import Leaderboard
from deepforecast.evaluation.metrics import METRICS, Metric
from deepforecast.plotting import plot_cross_validation, plot_leaderboard, plot_pareto, plot_residuals
from deepforecast.plotting.scores import best_value
from tests.evaluation.boards import LastValue, seasonal

# The seasonal series are few and short: their intervals cover little, which is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*prediction intervals cover less than:UserWarning")

FRAME = seasonal()
HOSTILE = "<script>alert('m')</script>\x1b[31m\x07"


def board(*models: Any, **options: Any) -> Leaderboard:
    return compare(list(models), FRAME, **{"horizon": 4, "n_windows": 2, **options})


@pytest.fixture(scope="module")
def usual() -> Leaderboard:
    return board(Naive(), SeasonalNaive(), Mean(), LastValue(how="fit", alias=HOSTILE), level=[50, 80])


@pytest.fixture(scope="module")
def wide() -> Leaderboard:
    point = [name for name in METRICS if METRICS[name].needs == ("forecast",)]
    names = [f"a_model_with_a_long_name_for_series_of_the_{where}_kind_{i}" for i, where in enumerate(["first", "second"])]
    return board(*(Naive(alias=name) for name in names), Mean(), metrics=["mase", *point], level=[50, 80, 95])


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 240])
def test_text_keeps_to_the_width(usual: Leaderboard, wide: Leaderboard, width: int) -> None:
    for one in (usual, wide):
        lines = one.text(width).splitlines()
        assert max(map(len, lines)) <= width
        assert "MASE" in lines[0] + lines[1]


def test_columns_without_room_are_named(wide: Leaderboard) -> None:
    told = " ".join(wide.text(80).split())
    head = next(line for line in wide.text(80).splitlines() if line.startswith("model")).split()
    gone = told.partition("Columns not shown: ")[2].partition(". Use")[0].split(", ")
    shown = [name for name in wide.printed().columns if name not in gone]
    assert " ".join(head) == " ".join(shown)
    assert {"model", "rank", "mase [95 %]", "fit s"} <= set(shown)
    assert set(gone) >= {"peak MB", "predict s"}


def test_text_of_a_wide_terminal_holds_all(usual: Leaderboard) -> None:
    assert "Columns not shown" not in usual.text(200)
    head = next(line for line in usual.text(200).splitlines() if line.startswith("model"))
    assert head.split() == " ".join(usual.printed().columns).split()


def test_models_with_long_names_stay_apart(wide: Leaderboard) -> None:
    lines = wide.text(80).splitlines()
    head = next(row for row, line in enumerate(lines) if line.startswith("model"))
    names = [line.split()[0] for line in lines[head + 1 : head + 3]]
    assert len(set(names)) == 2
    assert all("…" in name for name in names)


def test_repr_takes_the_width_of_the_terminal(usual: Leaderboard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    assert repr(usual) == str(usual) == usual.text(70)


def test_no_control_character_reaches_a_terminal(usual: Leaderboard) -> None:
    assert all(character.isprintable() or character == "\n" for character in usual.text(300))
    assert "<script>alert('m')</script>\\x1b[31m\\x07 failed: ValueError: no <b>fit</b> \\x1b[31m today" in usual.text(300)


def test_failed_models_are_rows_without_numbers(usual: Leaderboard) -> None:
    last = usual.printed().iloc[-1]
    assert last["rank"] == "failed"
    assert (last.drop(["model", "rank"]) == "").all()
    assert usual.failed == [HOSTILE]


class Seen(HTMLParser):
    """The tags and the words of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_notebook_table_interprets_nothing(usual: Leaderboard) -> None:
    seen = Seen(usual._repr_html_())
    assert seen.tags == {"p", "table", "thead", "tbody", "tr", "th", "td"}
    assert "<script>alert('m')</script>\\x1b[31m\\x07" in seen.words
    assert "no <b>fit</b> \\x1b[31m today" in seen.words


def test_tidy_has_every_score_of_every_model_that_ran(usual: Leaderboard) -> None:
    tidy = usual.tidy()
    assert set(tidy["model"]) == {"Naive", "SeasonalNaive", "Mean"}
    assert list(tidy.columns) == ["model", "metric", "value", "low", "high", "seconds", "lower_is_better", "best"]
    assert len(tidy) == 3 * len(usual.criteria)
    assert "winkler-80" in set(tidy["metric"])


def test_distances_are_from_where_a_score_is_best(usual: Leaderboard) -> None:
    table, each = usual.table.iloc[:3], usual.by_series.groupby("model")
    for name, best in (("coverage-80", 0.8), ("relative_bias", 0.0)):
        away = each[name].apply(lambda values, best=best: (values - best).abs().mean())
        found = usual.distances(name)
        assert found["value"].tolist() == pytest.approx(away[table["model"]].tolist())
        assert table[f"{name}-distance"].tolist() == found["value"].tolist()
        assert set(found["metric"]) == {f"{name}, distance from {best:g}"}
        assert (found["low"] < found["value"]).all()
        assert (found["high"] > found["value"]).all()
    assert usual.distances("mase")["value"].tolist() == table["mase"].tolist()


def test_plots_put_the_best_on_top(usual: Leaderboard) -> None:
    def order(metric: str | None) -> list[str]:
        ticks = usual.plot(metric).axes[0].get_yticklabels()
        return [tick.get_text().split()[0] for tick in reversed(ticks)]

    assert order(None) == usual.table["model"].iloc[:3].tolist()
    away = usual.table.iloc[:3].set_index("model")["coverage-80-distance"]
    assert order("coverage-80") == away.sort_values().index.tolist()
    figure = usual.plot("mase", backend="plotly")
    assert figure.layout.yaxis.ticktext[-1].startswith(usual.best_name)
    with pytest.raises(ParameterError, match=r"got mse\. Use one of mase, rmsse"):
        usual.plot("mse")


def test_board_goes_into_every_plotter(usual: Leaderboard) -> None:
    first, second = (figure.axes[0] for figure in (usual.plot(), plot_leaderboard(usual)))
    assert [tick.get_text() for tick in first.get_yticklabels()] == [tick.get_text() for tick in second.get_yticklabels()]
    assert len(plot_leaderboard(usual, ["mase", "coverage-80"]).axes) == 2
    assert plot_pareto(usual).axes[0].get_ylabel() == "mase"
    assert plot_pareto(usual, "rmsse").axes[0].get_ylabel() == "rmsse"
    assert [axes.get_title(loc="left") for axes in plot_cross_validation(usual, ids="s0").axes] == ["s0"]
    assert "Residuals of Naive" in [axes.get_title(loc="left") for axes in plot_residuals(usual, "Naive").axes]
    with pytest.raises(ParameterError, match="must be a column of scores of the board, got mse"):
        plot_pareto(usual, "mse")


def test_board_with_other_column_names_is_drawn_and_scored() -> None:
    frame = seasonal(2).rename(columns={"unique_id": "shop", "ds": "month", "y": "sales"})
    columns = {"id": "shop", "time": "month", "target": "sales"}
    found = compare([Naive(), SeasonalNaive()], frame, horizon=4, n_windows=2, columns=columns)
    assert len(plot_cross_validation(found).axes) == 2
    assert score(found).equals(score(found.forecasts, columns=columns, train=frame))


def test_scores_of_a_board_are_those_of_its_forecasts(usual: Leaderboard) -> None:
    assert score(usual).equals(score(usual.forecasts, train=usual.history))
    assert score(usual, metrics=["mase"]).equals(score(usual.forecasts, metrics="mase", train=usual.history))
    monthly = board(Naive(), SeasonalNaive(), metrics=["mase"], season_length=3)
    expected = score(monthly.forecasts, metrics="mase", train=FRAME, season_length=3)
    assert score(monthly, metrics=["mase"]).equals(expected)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("integer", [False, True])
def test_a_board_brings_what_its_scores_are_scaled_by(gaps: bool, integer: bool) -> None:
    names = {"unique_id": "shop", "ds": "when", "y": "sales"}
    frame = FRAME.assign(ds=FRAME.groupby("unique_id").cumcount()) if integer else FRAME
    frame = frame.drop(index=[5, 70, 200]) if gaps else frame
    columns = {"id": "shop", "time": "when", "target": "sales"}
    found = compare(
        [Naive(missing="ffill"), Mean(missing="ffill")], frame.rename(columns=names), horizon=4, n_windows=2, columns=columns,
        season_length=4 if integer else None, metrics=["mase"],
    )  # fmt: skip
    by_series = score(found, metrics=["mase"], by="series")
    means = by_series.groupby("model")["mase"].mean()
    assert means["Naive"] > 0
    assert score(found, metrics=["mase"]).set_index("model")["mase"].to_dict() == pytest.approx(means.to_dict())
    assert found.table.set_index("model")["mase"].to_dict() == pytest.approx(means.to_dict())


def test_a_board_without_a_season_has_the_scores_that_need_none() -> None:
    frame = FRAME.assign(ds=FRAME.groupby("unique_id").cumcount())
    found = compare([Naive(), Mean()], frame, horizon=4, n_windows=2)
    assert list(score(found).columns) == ["model", "mae", "rmse", "smape", "wape", "bias"]


@pytest.mark.parametrize("plotter", [plot_leaderboard, plot_pareto, plot_cross_validation, plot_residuals, score])
def test_a_model_in_place_of_its_scores_or_forecasts(plotter: Any) -> None:
    model = SeasonalNaive(horizon=4).fit(FRAME)
    with pytest.raises(DataError, match=re.escape("got SeasonalNaive(horizon=4). Pass ")) as refused:
        plotter(model)
    advice = str(refused.value).partition(" Pass ")[2].removesuffix(".")
    assert advice in ("compare([model], history, horizon=12)", "cross_validate([model], history, horizon=12)")
    passed = eval(advice, {"compare": compare, "cross_validate": cross_validate, "model": model, "history": FRAME})
    assert plotter(passed) is not None


def test_a_decomposition_is_not_scored_as_models() -> None:
    parts = decompose(FRAME)
    with pytest.raises(DataError, match="got a decomposition with the columns unique_id, ds, y, trend"):
        score(parts)
    assert score(parts, models=["trend"])["model"].tolist() == ["trend"]


def test_plots_of_tidy_and_of_scores_put_models_in_the_order_of_the_board(usual: Leaderboard) -> None:
    tidy, melted = usual.tidy(), score(usual, metrics=["coverage", "bias"]).melt("model", var_name="metric")
    for table, metric in ((tidy, "coverage-80"), (tidy, "relative_bias"), (melted, "coverage-80"), (melted, "bias")):
        part = table[table["metric"] == metric]
        best = 0.8 if metric == "coverage-80" else 0.0
        order = part["model"].iloc[(part["value"] - best).abs().argsort()]
        ticks = plot_leaderboard(table, metric).axes[0].get_yticklabels()
        assert [tick.get_text().split()[0] for tick in ticks] == list(order)[::-1]
    label = plot_pareto(tidy, "coverage-80").axes[0].get_ylabel()
    assert label == plot_pareto(usual, "coverage-80").axes[0].get_ylabel() == "coverage-80, distance from 0.8"


@pytest.mark.parametrize("metric", [[], 3, [3]])
def test_what_is_no_metric_is_refused_by_name(usual: Leaderboard, metric: Any) -> None:
    with pytest.raises(ParameterError, match=r"`metric` must be the name of a metric or a non-empty list of names.*Available: mase, "):
        plot_leaderboard(usual, metric)


def test_plots_know_where_each_metric_is_best() -> None:
    for name, metric in METRICS.items():
        column = f"{name}-80" if metric.better == "level" else name
        expected = {"zero": 0.0, "level": 0.8}.get(metric.better, math.nan)
        assert best_value(column) == pytest.approx(expected, nan_ok=True)


def test_advice_of_the_error_on_a_table_of_scores_works(usual: Leaderboard) -> None:
    table = score(usual, metrics=["mae", "rmse"])
    with pytest.raises(DataError, match=re.escape("table.melt('model', var_name='metric')")):
        plot_leaderboard(table)
    assert len(plot_leaderboard(table.melt("model", var_name="metric")).axes) == 2
    with pytest.raises(DataError, match="Pass the result of `compare`"):
        plot_pareto(usual.table)
    with pytest.raises(ParameterError, match=r"must be passed for a table of several metrics.*Pass for example metric='mase'"):
        plot_pareto(usual.tidy())
    assert plot_pareto(usual.tidy(), metric="mase").axes[0].get_ylabel() == "mase"


def test_a_metric_that_is_best_high_is_ranked_and_drawn_so() -> None:
    def closeness(actual: Any, forecast: Any) -> float:
        return float(-np.abs(actual - forecast).mean())

    metric = Metric.from_function(closeness, better="high")
    found, mae = (board(Naive(), SeasonalNaive(), Drift(), metrics=one) for one in (metric, "mae"))
    assert found.table["model"].tolist() == mae.table["model"].tolist()
    assert found.table["rank"].tolist() == mae.table["rank"].tolist()
    assert found.table["closeness"].tolist() == pytest.approx((-mae.table["mae"]).tolist())
    ticks = found.plot().axes[0].get_yticklabels()
    assert ticks[-1].get_text().startswith(found.best_name)


def test_as_many_levels_as_anybody_wants() -> None:
    found = board(Naive(), Mean(), level=list(range(5, 100, 5)))
    assert np.isfinite(found.table[[f"coverage-{level}" for level in range(5, 100, 5)]]).all(axis=None)
    assert max(map(len, found.text(80).splitlines())) <= 80


def test_level_metrics_can_decide() -> None:
    found = board(Naive(), SeasonalNaive(), Mean(), metrics=["coverage", "winkler-80"], level=[50, 80])
    assert found.metrics == ("coverage-50", "coverage-80", "winkler-80")
    assert found.table["coverage-50-distance"].is_monotonic_increasing
    assert found.headline().endswith("; ranked by coverage-50 (mean distance from 0.5)")


def up_and_down(*slopes: float) -> pd.DataFrame:
    """Twelve series along lines of these slopes in turn."""
    slope = np.array(slopes)[FRAME["unique_id"].str[1:].astype(int) % len(slopes)]
    return FRAME.assign(y=100 + slope * FRAME.groupby("unique_id").cumcount())


class Wild(LastValue):
    """Far too high in every other series, far too low in the rest: without bias over all, and worse than any in each."""

    def _forecast(self, learned: LearnedState, steps: int, future: Any) -> Forecast:
        last = learned["last"]
        return PointForecast(np.repeat((last + 2.5 + 50 * (-1) ** np.arange(len(last)))[:, None], steps, axis=1), self.name)


def test_series_too_high_and_too_low_do_not_cancel() -> None:
    found = compare([Wild(), Naive()], up_and_down(1.0), horizon=4, n_windows=2, metrics=["bias", "mae"])
    assert dict(zip(found.table["model"], found.table["bias"], strict=True)) == {"Naive": -2.5, "Wild": 0}
    assert found.best_name == "Naive"
    assert found.table["rank"].tolist() == [1.0, 2.0]
    assert found.table["bias-distance"].tolist() == pytest.approx(found.table["mae"].tolist())
    said = str(found).replace("\n  ", " ")
    assert "Naive is best by bias: 2.5 in mean distance from 0 (95 % interval 2.5 to 2.5)" in said
    assert "The difference to Wild (50), the second, is significant" in said
    line = next(line for line in found.text(200).splitlines() if line.startswith("Naive "))
    assert "2.5 [2.5, 2.5]" in line
    assert " -2.5 " in line
    assert found.plot().axes[0].get_yticklabels()[-1].get_text().startswith("Naive")


def test_what_rounding_leaves_of_a_bias_is_none() -> None:
    found = compare([Mean(), Naive()], up_and_down(0.1, 0.2, -0.3), horizon=4, n_windows=2, metrics=["mae", "bias"])
    assert (found.by_series.groupby("model")["bias"].mean() != 0).any()
    assert found.table["bias"].tolist() == [0.0, 0.0]
    assert found.printed()["bias"].tolist() == ["0", "0"]
    assert (found.table["bias-distance"] > 0.4).all()
    small = FRAME.assign(y=(up_and_down(1.0)["y"] - 100) * 1e-20)
    assert compare(Naive(), small, horizon=4, n_windows=2, metrics="bias").table["bias"].tolist() == pytest.approx([-2.5e-20])


def test_a_metric_is_not_named_as_a_column_of_another() -> None:
    metric = Metric.from_function(lambda actual, forecast: 0.0, name="bias-distance")
    with pytest.raises(ParameterError, match="two metrics have a column bias-distance"):
        board(Naive(), metrics=["bias", metric])
