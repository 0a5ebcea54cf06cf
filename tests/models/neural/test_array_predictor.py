"""Arrays in, arrays out: what `predict` says, by a fit as it was."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from deepforecast import MLP
from deepforecast.errors import CapabilityError, DataError, ParameterError
from tests.models.neural.test_predict import HORIZON, fitted, panel


@pytest.mark.parametrize(
    "rest", [{}, {"scaler_scope": "series"}, {"scaler_scope": "panel"}, {"head": "student_t"}, {"bounds": (0, 1)}]
)
def test_it_says_what_predict_says(rest: dict[str, object]) -> None:
    model, frame = fitted("MLP", **rest), panel(3, 40)
    said = model.predict(frame=frame, quantiles=[0.1, 0.9])
    found = model.predictor([0.1, 0.9])(frame.y.to_numpy().reshape(3, 40), last_time=frame.ds.max())
    assert (found.points.reshape(-1) == said["MLP"]).all()
    assert (found.quantiles.reshape(-1, 2) == said[["MLP-q-0.1", "MLP-q-0.9"]].to_numpy()).all()


def test_steps_taken_in_turn() -> None:
    model, frame = fitted("LSTM", output="autoregressive"), panel(2, 40)
    found = model.predictor()(frame.y.to_numpy().reshape(2, 40), last_time=frame.ds.max())
    assert (found.points.reshape(-1) == model.predict(frame=frame)["LSTM"]).all()


def test_series_of_any_length() -> None:
    predictor, y = fitted("MLP", calendar=None).predictor(), panel(2, 40).y.to_numpy()
    found = predictor([y[:40], y[40:43]])
    assert found.points.shape == (2, HORIZON)
    assert found.quantiles.shape == (2, HORIZON, 0)
    assert (found.points[1] == predictor(y[40:43]).points[0]).all()
    assert (found.points[1] == predictor(list(y[40:43])).points[0]).all()
    assert (predictor(np.append(y[:40], np.nan)).points != found.points[0]).any()


def test_columns_and_categories() -> None:
    frame = panel(2, 80)
    random = np.random.default_rng(0)
    kinds = pd.Categorical(random.choice(["a", "b"], 160))
    frame = frame.assign(ahead=random.normal(size=160), seen=random.normal(size=160), kind=kinds)
    static = pd.DataFrame({"unique_id": ["s0000", "s0001"], "size": [1.0, 2.0]})
    columns = {"future": ["ahead", "kind"], "past": ["seen"], "static": ["size"]}
    model = MLP(horizon=HORIZON, input_size=12, hidden_sizes=[8], max_steps=20, calendar=None)
    model.fit(frame, columns=columns, static=static)
    ahead = model.future_frame().assign(ahead=random.normal(size=2 * HORIZON))
    ahead["kind"] = pd.Categorical(["b"] * len(ahead), ["a", "b"])
    said = model.predict(future=ahead)["MLP"].to_numpy().reshape(2, -1)

    def rows(name: str) -> np.ndarray:
        return frame[name].to_numpy().reshape(2, -1)

    past = {"ahead": rows("ahead"), "seen": rows("seen"), "kind": (frame["kind"] == "b").to_numpy(float).reshape(2, -1)}
    future = {"ahead": ahead["ahead"].to_numpy().reshape(2, -1), "kind": np.ones((2, HORIZON))}
    predictor = model.predictor()
    found = predictor(rows("y"), past=past, future=future, static={"size": [1.0, 2.0]})
    assert (found.points == said).all()
    with pytest.raises(DataError, match=r"`future` must contain the columns seen in fit \(ahead, kind\), got none"):
        predictor(rows("y"), past=past, static={"size": [1.0, 2.0]})
    with pytest.raises(DataError, match=r"'ahead' must have shape \(series, horizon\) = \(2, 6\), got \(1, 6\)"):
        predictor(rows("y"), past=past, future={**future, "ahead": np.ones(HORIZON)}, static={"size": [1.0, 2.0]})


def test_it_stays_what_it_was() -> None:
    model, frame = fitted("MLP", calendar=None), panel(4, 120, seed=3)
    predictor, y = model.predictor(), frame.y.to_numpy().reshape(4, -1)
    before = predictor(y).points
    next(model.network_.parameters()).data.zero_()
    model.fine_tune(frame)
    model.set_params(point="mean")
    assert (predictor(y).points == before).all()
    assert not any(one.requires_grad for one in predictor.learned.shared["network"].parameters())


def test_from_several_threads() -> None:
    predictor, y = fitted("LSTM", calendar=None).predictor(), panel(40, 40).y.to_numpy().reshape(40, -1)
    alone = np.concatenate([predictor(one).points for one in y])
    with ThreadPoolExecutor(4) as pool:
        found = np.concatenate([one.points for one in pool.map(predictor, y)])
    assert (found == alone).all()
    np.testing.assert_allclose(predictor(y).points, alone, rtol=0, atol=1e-6 * np.abs(alone).max())


def test_what_it_cannot_do_is_said() -> None:
    model = fitted("MLP")
    with pytest.raises(
        ParameterError, match=r"`last_time` must be set.*calendar features .*Pass the timestamp of the last value"
    ):
        model.predictor()(np.ones(9))
    with pytest.raises(DataError, match="`last_time` must be one timestamp"):
        model.predictor()(np.ones(9), last_time="soon")
    with pytest.raises(DataError, match="got an infinite value"):
        model.predictor()(np.array([1.0, np.inf]), last_time="2021-01-01")
    with pytest.raises(DataError, match="Series must be an array"):
        model.predictor()("text", last_time="2021-01-01")
    with pytest.raises(DataError, match="not be empty"):
        model.predictor()(np.empty((0, 4)), last_time="2021-01-01")
    calibrated = MLP(horizon=2, input_size=4, hidden_sizes=[4], max_steps=2, intervals="conformal").fit(panel(1, 60))
    with pytest.raises(CapabilityError, match="intervals are conformal"):
        calibrated.predictor([0.1])


def test_it_takes_little_time() -> None:
    predictor, y = fitted("DLinear", calendar=None).predictor(), np.sin(np.arange(24.0))
    predictor(y)
    times = []
    for _ in range(50):
        begin = time.process_time()
        predictor(y)
        times.append(time.process_time() - begin)
    assert min(times) < 0.004  # ten times what it may take
