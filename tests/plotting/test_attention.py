"""`plot_attention`: who looks where, head by head and by how far back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Naive
from deepforecast.errors import DataError, ParameterError
from deepforecast.plotting import plot_attention
from deepforecast.plotting.chart import cell_edges
from deepforecast.plotting.lags import distance_back
from tests.frames import Stream

STEPS, ROWS, LAYERS, HEADS = 3, 5, 2, 2


def looked(freq: str = "D", tz: str | None = None, rows: int = ROWS, start: str = "2024-01-01") -> pd.DataFrame:
    """Two series; each step looks at a row so many steps back as the head says, and a little at all others."""
    days = pd.date_range(start, periods=rows + STEPS, freq=freq, tz=tz)
    found = []
    for key in ("a", "b"):
        for layer in range(LAYERS):
            for head in range(HEADS):
                for step in range(1, STEPS + 1):
                    weight = np.full(rows, 0.1 / (rows - 1))
                    weight[rows - 1 - (head + (key == "b"))] = 0.9
                    found.append(pd.DataFrame({
                        "unique_id": key, "ds": days[rows + step - 1], "cutoff": days[rows - 1], "step": step,
                        "lag": days[:rows], "kind": "cross", "layer": layer, "head": head, "weight": weight,
                    }))  # fmt: skip
    own = found[0].assign(kind="self", lag=days[rows], weight=1.0, ds=days[rows], step=1).head(1)
    return pd.concat([*found, own], ignore_index=True)


def shades(axes: Any) -> np.ndarray:
    (mesh,) = axes.collections
    return np.asarray(mesh.get_array().reshape(mesh._coordinates.shape[0] - 1, -1))


def test_a_matrix_is_the_mean_of_layers_and_heads(library: Callable[..., Any]) -> None:
    figure = plot_attention(library(looked().sample(frac=1, random_state=0)))
    axes, bar = figure.axes
    values = shades(axes)
    assert values.shape == (STEPS, ROWS)
    np.testing.assert_allclose(values, np.tile([0.025, 0.025, 0.025, 0.4625, 0.4625], (STEPS, 1)))
    assert (axes.get_xlabel(), axes.get_ylabel(), bar.get_ylabel()) == ("attended time step", "forecast step", "weight")
    assert axes.get_title(loc="left") == "a, cutoff 2024-01-05"
    assert figure.get_suptitle() == "cross-attention; mean of 2 layers and 2 heads; 1 of 2 series"
    days = np.array(["2023-12-31", "2024-01-05"], dtype="M8[D]").astype(int) + 0.5
    assert axes.get_xlim() == tuple(days)
    assert axes.get_ylim()[0] == axes.get_xlim()[1]  # the first step follows on the last row


def test_an_arrow_stream_is_read_once() -> None:
    assert len(plot_attention(Stream(looked())).axes) == 2


def test_series_layers_and_heads_are_chosen() -> None:
    figure = plot_attention(looked(), series=["b", "a"], layer=1, head=0)
    first, second = figure.axes[:2]
    assert shades(first)[0].argmax() == ROWS - 2
    assert shades(second)[0].argmax() == ROWS - 1
    assert shades(second).max() == pytest.approx(0.9)
    assert shades(plot_attention(looked(), kind="self").axes[0]).tolist() == [[1.0]]


def test_a_cutoff_is_chosen() -> None:
    later = looked(start="2024-02-01").assign(weight=0.2)
    both = pd.concat([looked(), later])
    assert plot_attention(both).axes[0].get_title(loc="left") == "a, cutoff 2024-01-05"
    chosen = plot_attention(both, cutoff="2024-02-05").axes[0]
    assert chosen.get_title(loc="left") == "a, cutoff 2024-02-05"
    assert shades(chosen).max() == pytest.approx(0.2)
    with pytest.raises(ParameterError, match=r"Unknown cutoff .2024-03-01.*Available: 2024-01-05, 2024-02-05"):
        plot_attention(both, cutoff="2024-03-01")
    with pytest.raises(ParameterError, match="`cutoff` must be a value of column 'cutoff'"):
        plot_attention(both, cutoff="soon")


def test_the_grid_has_a_row_a_layer_and_a_column_a_head() -> None:
    figure = plot_attention(looked(), view="heads", series="b")
    titles = [axes.get_title(loc="left") for axes in figure.axes[:4]]
    assert titles == [f"layer {layer}, head {head}" for layer in range(2) for head in range(2)]
    assert [shades(axes)[0].argmax() for axes in figure.axes[:4]] == [ROWS - 2, ROWS - 3] * 2
    assert [bool(axes.get_ylabel()) for axes in figure.axes[:4]] == [True, False, True, False]
    assert len(figure.axes) == 5  # one bar tells the shades of all
    assert not any(axes.yaxis.get_offset_text().get_visible() for axes in figure.axes[:4])  # a date on the title
    with pytest.raises(ParameterError, match="requires a single series"):
        plot_attention(looked(), view="heads", series=["a", "b"])


@pytest.mark.parametrize(("freq", "unit"), [("D", "days"), ("MS", "months"), ("ME", "months"), ("h", "hours"), ("YS", "years")])
def test_how_far_back_is_counted_in_the_unit_of_the_calendar(freq: str, unit: str) -> None:
    axes = plot_attention(looked(freq), view="lags", layer=0, head=0).axes[0]
    assert axes.get_xlabel() == f"lag ({unit})"
    values, ends, _ = axes.patches[0].get_data()
    np.testing.assert_allclose(ends, np.arange(0.5, ROWS + STEPS))
    # The three steps of a look 1, 2 and 3 back, those of b one farther; at 1 back only the first step has a row at all.
    wanted = [(0.9 + 0.025) / 2, (2 * 0.9 + 2 * 0.025) / 4, (2 * 0.9 + 4 * 0.025) / 6, (0.9 + 5 * 0.025) / 6]
    np.testing.assert_allclose(values[:4], wanted)
    assert plot_attention(looked(freq), view="lags", series="a").get_suptitle().endswith("; 1 of 2 series")


def test_integer_time_and_zones() -> None:
    numbers = looked().assign(ds=lambda f: (f.ds - pd.Timestamp("2024-01-01")).dt.days,
                              lag=lambda f: (f.lag - pd.Timestamp("2024-01-01")).dt.days,
                              cutoff=lambda f: (f.cutoff - pd.Timestamp("2024-01-01")).dt.days)  # fmt: skip
    assert shades(plot_attention(numbers).axes[0]).shape == (STEPS, ROWS)
    assert plot_attention(numbers, view="lags").axes[0].get_xlabel() == "lag"
    assert plot_attention(numbers, cutoff=4).axes[0].get_title(loc="left") == "a, cutoff 4"
    zoned = looked("D", "Europe/Berlin", rows=90)  # over a change of clocks
    assert plot_attention(zoned).axes[0].get_xlabel() == "attended time step (Europe/Berlin)"
    ends = plot_attention(zoned, view="lags").axes[0].patches[0].get_data()[1]
    np.testing.assert_allclose(ends, np.arange(0.5, 90 + STEPS))
    assert plot_attention(zoned, cutoff=zoned.cutoff[0]) is not None


def test_plotly_draws_the_same() -> None:
    figure = plot_attention(looked(), backend="plotly")
    (trace,) = figure.data
    np.testing.assert_allclose(trace.z, shades(plot_attention(looked()).axes[0]))
    np.testing.assert_array_equal(np.asarray(trace.x, dtype="M8[D]"), pd.date_range("2024-01-01", periods=ROWS).to_numpy())
    assert figure.layout.coloraxis.cmin == 0
    assert figure.layout.coloraxis.cmax == pytest.approx(0.4625)
    assert "rgba" in figure.layout.coloraxis.colorscale[0][1]  # the page's own ground shows through
    assert figure.layout.hovermode == "closest"
    grid = plot_attention(looked(), view="heads", backend="plotly")
    assert [one.coloraxis for one in grid.data] == ["coloraxis"] * 4
    assert grid.layout.xaxis.showticklabels is False
    assert grid.layout.xaxis3.showticklabels is None


def test_pairs_that_are_not_there_stay_empty() -> None:
    part = looked()
    part = part[(part.step > 1) | (part.lag > part.lag.min())]
    values = shades(plot_attention(part).axes[0])
    assert np.ma.getmaskarray(values)[0].tolist() == [True, False, False, False, False] or np.isnan(values[0, 0])


def test_a_model_in_place_of_its_explanation_is_told_the_way() -> None:
    with pytest.raises(DataError, match=r"DataFrame, got Naive\(\)\. Pass explain\(\) of a model with attention"):
        plot_attention(Naive())


def test_refusals() -> None:
    with pytest.raises(DataError, match=r"must have the columns cutoff.*, got unique_id.*Pass explain\(\) of a model"):
        plot_attention(looked().drop(columns="weight"))
    with pytest.raises(ParameterError, match=r"Unknown view .heads_.\. Did you mean 'heads"):
        plot_attention(looked(), view="heads_")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"Unknown series .*c.*Available: a, b"):
        plot_attention(looked(), series="c")
    with pytest.raises(ParameterError, match=r"Unknown layer 7.*Available: 0, 1"):
        plot_attention(looked(), layer=7)
    with pytest.raises(ParameterError, match=r"Unknown kind .crossed.\. Did you mean 'cross"):
        plot_attention(looked(), kind="crossed")
    for view in ("matrix", "heads", "lags"):
        with pytest.raises(ParameterError, match=r"`series` must contain at least one id, got an empty list"):
            plot_attention(looked(), view=view, series=[])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="requires a single series, got a, b"):
        plot_attention(looked(), view="heads", series=["a", "b"])
    holed = looked().assign(weight=lambda one: one.weight.where(one.step > 1))
    with pytest.raises(DataError, match=r"of the explanation must be finite; 40 of 120 rows are missing"):
        plot_attention(holed)
    many = pd.concat([looked().assign(head=lambda f, n=n: f["head"] + 2 * n) for n in range(20)])
    with pytest.raises(ParameterError, match="can plot at most 64 heads, got 2 layers of 40 heads"):
        plot_attention(many, view="heads")


def test_columns_of_any_name() -> None:
    renamed = looked().rename(columns={"unique_id": "shop", "ds": "day"})
    assert plot_attention(renamed, series="b").axes[0].get_title(loc="left") == "b, cutoff 2024-01-05"
    alone = looked()[lambda one: one.unique_id == "a"].drop(columns="unique_id")
    assert plot_attention(alone).axes[0].get_title(loc="left") == "cutoff 2024-01-05"
    with pytest.raises(DataError, match=r"only a time column and an id column .* other columns: unique_id, ds, more"):
        plot_attention(looked().assign(more=1))


def test_ends_of_cells() -> None:
    months = np.array(["2024-01-01", "2024-02-01", "2024-03-01"], dtype="M8[us]")
    found = cell_edges(months).astype("M8[h]").astype(str).tolist()
    assert found == ["2023-12-16T12", "2024-01-16T12", "2024-02-15T12", "2024-03-15T12"]
    assert cell_edges(np.array([3])).tolist() == [2.5, 3.5]
    assert cell_edges(months[:1]).astype("M8[h]").astype(str).tolist() == ["2023-12-31T23", "2024-01-01T01"]


def test_minutes_and_seconds() -> None:
    at = np.array(["2024-01-01T00:00", "2024-01-01T00:15", "2024-01-01T00:30"], dtype="M8[us]")
    distance, unit = distance_back(at[[2, 1]], at[[0, 0]])
    assert (distance.tolist(), unit) == ([30, 15], "minutes")
    assert distance_back(at[:1], at[:1])[1] == "days"
