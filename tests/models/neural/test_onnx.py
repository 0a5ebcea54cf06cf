"""An ONNX file says what `predict` says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import LSTM, MLP, TiDE
from deepforecast.datasets import Recipe, generate
from deepforecast.errors import CapabilityError
from tests.models.neural.test_predict import HORIZON, ROWS, fitted, panel


@pytest.mark.filterwarnings("ignore")  # of torch and onnxscript on each other
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["DLinear", "MLP", "NBEATS", "NHITS", "TiDE", "TCN", "LSTM", "Transformer", "PatchTST", "TFT", "TimeXer", "xLSTM"]
)
def test_onnxruntime_agrees_with_predict(name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    runtime: Any = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    pytest.importorskip("onnxscript", reason="the extra onnx is not installed")
    model, frame = fitted(name, calendar=None), panel(3, 40)
    model.export_onnx(tmp_path / "net.onnx")
    session = runtime.InferenceSession(str(tmp_path / "net.onnx"))
    y = frame.y.to_numpy().reshape(3, 40)[:, -ROWS:]
    points, quantiles = session.run(None, {"y": y})
    said = json.loads(session.get_modelmeta().custom_metadata_map["deepforecast"])
    found = model.predict(frame=frame, quantiles=said["quantiles"])
    np.testing.assert_allclose(points.reshape(-1), found[name], atol=1e-4)
    np.testing.assert_allclose(quantiles.reshape(3 * HORIZON, -1), found.iloc[:, 3:], atol=1e-4)
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]


def test_steps_taken_in_turn_are_refused(tmp_path: Path) -> None:
    model = LSTM(horizon=4, input_size=8, hidden_size=4, max_steps=2, output="autoregressive").fit(panel(2, 60))
    with pytest.raises(CapabilityError, match="is autoregressive"):
        model.export_onnx(tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
@pytest.mark.parametrize("head", ["normal", "laplace", "lognormal"])
def test_distributions_whose_quantiles_are_moved_and_stretched(head: str, tmp_path: Path) -> None:
    frame = panel(3, 60).assign(y=lambda one: one.y - one.y.min() + 1)
    model = MLP(horizon=HORIZON, input_size=ROWS, hidden_sizes=[8], max_steps=3, head=head, calendar=None).fit(frame)
    (points, quantiles), said = exported(model, tmp_path, {"y": frame.y.to_numpy().reshape(3, 60)[:, -ROWS:]})
    found = model.predict(quantiles=said["quantiles"])
    np.testing.assert_allclose(points.reshape(-1), found["MLP"], atol=1e-4)
    np.testing.assert_allclose(quantiles.reshape(3 * HORIZON, -1), found.iloc[:, 3:], atol=1e-4)


@pytest.mark.parametrize("head", ["student_t", "mixture", "poisson", "bins", "implicit_quantile", "tweedie"])
def test_distributions_whose_quantiles_no_operator_gives_are_refused(head: str, tmp_path: Path) -> None:
    frame = panel(2, 60).assign(y=lambda one: one.y.abs().round())
    model = MLP(horizon=4, input_size=8, hidden_sizes=[4], max_steps=1, head=head).fit(frame)
    with pytest.raises(CapabilityError, match=f"head='{head}' cannot be exported.* Set head='quantiles', 'normal'"):
        model.export_onnx(tmp_path / "net.onnx")


PROMOTION, STOCK = ["display", "flyer", "none"], ["full", "low"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
@pytest.mark.parametrize("kind", [MLP, LSTM, TiDE])
def test_columns_of_every_kind(kind: Any, tmp_path: Path) -> None:
    """By hand, as a program without this library would put them together from what the file says of itself."""
    recipe = Recipe(covariates="all")
    whole = generate(3, 60 + HORIZON, seed=2, recipe=recipe)
    later = whole.groupby("unique_id").cumcount(ascending=False) < HORIZON
    history, ahead = whole[~later], whole[later]
    model = kind(horizon=HORIZON, input_size=ROWS, max_steps=20, scaler="standard", scaler_scope="series", bounds=(60, 140))
    model.fit(history, columns=recipe.columns)
    window = history.groupby("unique_id").tail(ROWS)
    y, region = history.y.to_numpy().reshape(3, 60), sorted(history.region.astype(str).unique())
    given: dict[str, Any] = {
        "y": y[:, -ROWS:], "loc": y.mean(axis=1, keepdims=True), "scale": y.std(axis=1, keepdims=True),
        "past": numbers(window, ["price", "holiday", "visits"]), "future": numbers(ahead, ["price", "holiday"]),
        "past_codes": codes(window, promotion=PROMOTION, stock=STOCK), "future_codes": codes(ahead, promotion=PROMOTION),
        "static": numbers(window, ["size"], False)[:, 0], "static_codes": codes(window, region=region)[:, 0],
    }  # fmt: skip
    (points, quantiles), said = exported(model, tmp_path, given)
    assert said["past"] == ["price", "holiday", "visits"]
    assert (said["future_codes"], said["static_codes"]) == (["promotion"], ["region"])
    assert said["categories"] == {"promotion": PROMOTION, "stock": STOCK, "region": region}
    found = model.predict(future=ahead.drop(columns="y"), quantiles=said["quantiles"])
    np.testing.assert_allclose(points.reshape(-1), found[model.name], rtol=1e-4)
    np.testing.assert_allclose(quantiles.reshape(3 * HORIZON, -1), found.iloc[:, 3:], rtol=1e-4)


def exported(model: Any, folder: Path, given: dict[str, Any]) -> tuple[Any, Any]:
    """What onnxruntime makes of arrays, and what the file says of itself."""
    for name in ("onnx", "onnxscript"):
        pytest.importorskip(name, reason="the extra onnx is not installed")
    runtime: Any = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    model.export_onnx(folder / "net.onnx")
    session = runtime.InferenceSession(str(folder / "net.onnx"))
    return session.run(None, given), json.loads(session.get_modelmeta().custom_metadata_map["deepforecast"])


def numbers(frame: pd.DataFrame, names: list[str], calendar: bool = True) -> np.ndarray:
    """Columns as they are, then sine and cosine of the day of the week, of the month, and of the month: (series, rows, all)."""
    parts = [frame[name].to_numpy(float) for name in names]
    days = frame.ds.dt
    for value, period in ((days.dayofweek, 7), (days.day - 1, 31), (days.month - 1, 12)) if calendar else ():
        parts += [np.sin(2 * np.pi * value / period), np.cos(2 * np.pi * value / period)]
    return np.stack(parts, axis=1).reshape(3, -1, len(parts)).astype(np.float32)


def codes(frame: pd.DataFrame, **known: list[str]) -> np.ndarray:
    """Numbers of categories from 1: (series, rows, columns)."""
    found = [frame[name].map({one: place + 1 for place, one in enumerate(those)}) for name, those in known.items()]
    return np.stack([one.to_numpy(np.int64) for one in found], axis=1).reshape(3, -1, len(known))
