"""`TFT` and `PatchTST` through the public methods: attention and weights of variables as data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import TFT, PatchTST, TimeXer, faithfulness
from deepforecast.datasets import Recipe, generate
from deepforecast.errors import ParameterError
from deepforecast.plotting import plot_attention

HORIZON, ROWS = 3, 8
NET: dict[str, Any] = {"horizon": HORIZON, "input_size": ROWS, "max_steps": 4, "batch_size": 16, "calendar": ["day_of_week"]}
RECIPE = Recipe(covariates=("price", "promotion", "visits", "size"))


@pytest.fixture(scope="module")
def explained() -> tuple[TFT, pd.DataFrame, pd.DataFrame]:
    """A network with covariates, its explanation and its forecast."""
    frame = generate(2, 40, seed=1, recipe=RECIPE)
    ahead = frame.groupby("unique_id").cumcount(ascending=False) < HORIZON
    model = TFT(**NET, d_model=8, n_heads=2).fit(frame[~ahead], columns=RECIPE.columns)
    future = frame[ahead].drop(columns="y")
    return model, model.explain(future=future), model.predict(future=future)


def test_explain_has_attention_and_the_weights_of_variables(explained: tuple[TFT, pd.DataFrame, pd.DataFrame]) -> None:
    _, weights, forecast = explained
    kinds = {kind: rows for kind, rows in weights.groupby("kind")}  # noqa: C416
    assert set(kinds) == {"self", "past variables", "future variables", "static variables"}
    assert set(kinds["self"]["variable"]) == {""}
    known = {"position", "price", "promotion", "day_of_week"}  # and the lag ahead
    assert set(kinds["future variables"]["variable"]) == {*known, "lag"}
    assert set(kinds["past variables"]["variable"]) == {*known, "target", "visits"}
    assert set(kinds["static variables"]["variable"]) == {"size"}
    for kind, rows in kinds.items():
        sums = rows.groupby(["unique_id", "cutoff", "step"])["weight"].sum()
        np.testing.assert_allclose(sums, 1.0, atol=1e-5)
        if kind != "self":
            assert (rows["lag"] == rows["ds"]).all()
    for kind in ("self", "future variables"):
        steps = kinds[kind][["unique_id", "ds"]].drop_duplicates().reset_index(drop=True)
        pd.testing.assert_frame_equal(steps, forecast[["unique_id", "ds"]], check_dtype=False)
    assert sorted(set(kinds["past variables"]["step"])) == list(range(1 - ROWS, 1))


def test_beyond_the_horizon_every_block_has_its_own_weights() -> None:
    model = TFT(**NET, d_model=8, n_heads=2).fit(generate(2, 40, seed=1))
    weights, forecast = model.explain(HORIZON + 1), model.predict(HORIZON + 1)
    assert weights["cutoff"].nunique() == 2
    for kind in ("self", "future variables"):
        steps = weights.loc[weights["kind"] == kind, ["unique_id", "ds"]].drop_duplicates().reset_index(drop=True)
        pd.testing.assert_frame_equal(steps, forecast[["unique_id", "ds"]], check_dtype=False)
    second = weights[(weights["kind"] == "past variables") & (weights["cutoff"] == weights["cutoff"].max())]
    assert sorted(set(second["step"])) == list(range(1 - ROWS, 1))


def test_no_step_attends_to_later_ones_and_selection_depends_on_values(explained: tuple[TFT, pd.DataFrame, pd.DataFrame]) -> None:
    _, weights, _ = explained
    attention = weights[(weights["kind"] == "self") & (weights["step"] == 1)]
    assert (attention.loc[attention["lag"] > attention["ds"], "weight"] == 0).all()
    assert attention["weight"].gt(0).sum() == 2 * (ROWS + 1)
    selection = weights[weights["kind"] == "past variables"]
    assert selection.groupby("variable")["weight"].std().max() > 0  # they depend on the values


def test_attention_can_be_plotted_and_tested(explained: tuple[TFT, pd.DataFrame, pd.DataFrame]) -> None:
    _, weights, _ = explained
    assert plot_attention(weights) is not None
    frame = generate(2, 40, seed=1)
    for model in (TFT(**NET, d_model=8, n_heads=2), PatchTST(**NET, d_model=8, n_heads=2, n_layers=1, patch_length=2)):
        fitted = model.fit(frame)
        assert len(faithfulness(fitted, frame)) > 0


@pytest.mark.parametrize("cls", [PatchTST, TimeXer])
def test_a_patch_longer_than_the_window_is_refused(cls: Any) -> None:
    with pytest.raises(ParameterError, match=r"`patch_length` must be at most input_size, got patch_length=9 and input_size=8"):
        cls(**NET, patch_length=9).fit(generate(1, 30))
