"""An ONNX file says what `predict` says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepforecast import LSTM
from deepforecast.errors import CapabilityError
from tests.models.neural.test_ahead import HORIZON, ROWS, fitted, panel


@pytest.mark.filterwarnings("ignore")  # of torch and onnxscript on each other
@pytest.mark.slow
@pytest.mark.parametrize("name", ["DLinear", "MLP", "NBEATS", "LSTM"])
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
    with pytest.raises(CapabilityError, match="takes its steps in turn"):
        model.export_onnx(tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())
