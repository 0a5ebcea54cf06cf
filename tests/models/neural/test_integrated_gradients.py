"""Integrated gradients: the contributions of the input columns to the forecasts of networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from deepforecast import LSTM, MLP, NBEATS, Conformal, DLinear, NLinear, Seq2Seq
from deepforecast.models.neural import _explain
from deepforecast.models.neural._horizon_forecaster import HorizonForecaster
from tests.models.neural.test_predict import panel

HORIZON = 4
COLUMNS = {"future": ["promo", "weather"], "past": ["visits"], "static": ["size", "region"]}
SMALL: dict[Any, dict[str, Any]] = {
    MLP: {"hidden_sizes": [16, 16]}, LSTM: {"hidden_size": 8, "decoder_size": 8, "skip_hidden_sizes": [8]}
}  # fmt: skip
GREEDY = {"output": "autoregressive", "decoding": "greedy", "hidden_size": 8}


def shop(n_series: int = 3, n_steps: int = 80) -> pd.DataFrame:
    """A panel with covariates of all roles, numeric and categorical."""
    frame, rng = panel(n_series, n_steps), np.random.default_rng(5)
    frame["promo"], frame["visits"] = rng.normal(size=(2, len(frame)))
    frame["weather"] = pd.Categorical(rng.choice(["rain", "snow", "sun"], len(frame)))
    frame["size"] = frame.unique_id.str[1:].astype(float)
    frame["region"] = pd.Categorical(np.where(frame["size"] > 0, "north", "south"))
    frame["y"] += 2 * frame.promo + frame["weather"].cat.codes
    return frame


def fitted_shop(kind: Any, **params: Any) -> tuple[Any, pd.DataFrame]:
    """A model of the shop without its last steps, and the future covariates of these."""
    frame = shop()
    is_test = frame.groupby("unique_id").cumcount(ascending=False) < 3 * HORIZON
    model = kind(**{"horizon": HORIZON, "input_size": 8, "max_steps": 30, "learning_rate": 1e-2, **SMALL.get(kind, {}), **params})
    return model.fit(frame[~is_test], columns=COLUMNS), frame[is_test][["unique_id", "ds", "promo", "weather"]]


def table(explanation: pd.DataFrame) -> pd.DataFrame:
    return explanation.pivot(index=["unique_id", "ds"], columns="component", values="value")


def gradient_integrals(model: Any, future: pd.DataFrame) -> dict[str, np.ndarray]:
    """Contributions (series, steps) by the midpoint rule for the gradient with respect to all inputs."""
    state = model.fitted_state()
    covariates = model._future_covariates(state, HORIZON, future)
    forecaster = HorizonForecaster(model.name, state.learned_with_series, HORIZON, covariates)
    network = model.network_
    batch = forecaster._make_batch(forecaster.windows, np.arange(3), 0).select_windows(0, 3)
    with torch.no_grad():
        inputs, scaling = network.inputs(batch)
    tables = [table.detach().mean(0) for table in network.temporal_embedding.tables]
    n_weather, n_region = len(tables[0]), network.static_embedding.width()
    baseline = {name: torch.zeros_like(getattr(inputs, name)) for name in ("y", "past", "future", "static")}
    baseline["past"][..., -n_weather:] = baseline["future"][..., -n_weather:] = tables[0]
    baseline["static"][..., -n_region:] = network.static_embedding.tables[0].detach().mean(0)
    sums = {name: torch.zeros(HORIZON, *values.shape) for name, values in baseline.items()}
    for share in (np.arange(100) + 0.5) / 100:
        point = {
            name: (start + float(share) * (getattr(inputs, name) - start)).requires_grad_() for name, start in baseline.items()
        }
        median = network.head.median(network.features(replace(inputs, **point)))
        for step in range(HORIZON):
            gradients = torch.autograd.grad(median[:, step].sum(), list(point.values()), retain_graph=True)
            for name, gradient in zip(point, gradients, strict=True):
                sums[name][step] += gradient / 100 * (getattr(inputs, name) - baseline[name])
    scale = scaling.scale.numpy()
    past, ahead, static = (sums[name] for name in ("past", "future", "static"))  # past: promo, visits, calendar, weather
    parts = {
        "y": sums["y"].sum(2), "promo": past[..., 0].sum(2) + ahead[..., 0].sum(2), "visits": past[..., 1].sum(2),
        "calendar": past[..., 2:-n_weather].sum((2, 3)) + ahead[..., 1:-n_weather].sum((2, 3)),
        "weather": past[..., -n_weather:].sum((2, 3)) + ahead[..., -n_weather:].sum((2, 3)),
        "size": static[..., 0], "region": static[..., 1:].sum(2),
    }  # fmt: skip
    return {name: part.numpy().T * scale for name, part in parts.items()}


@pytest.mark.parametrize("kind", [MLP, LSTM])
def test_contributions_are_the_integrals_of_the_gradient(kind: Any) -> None:
    model, future = fitted_shop(kind)
    found = table(model.explain(future=future))
    expected = gradient_integrals(model, future)
    assert sorted(found) == sorted([*expected, "baseline", "rest"])
    largest = max(np.abs(values).max() for values in expected.values())
    for name, values in expected.items():
        assert np.abs(values).max() > 1e-3 * largest
        np.testing.assert_allclose(found[name].to_numpy().reshape(3, HORIZON), values, rtol=0, atol=0.01 * largest, err_msg=name)


@pytest.mark.parametrize("params", [
    {}, {"head": "student_t", "point": "mean"}, {"scaler": "difference"}, {"scaler": "revin"}, {"scaler": "min_max"},
    {"scaler": "level"}, {"scaler": "none"}, {"scaler": "robust", "scaler_scope": "series"}, {"head": "bins"}, GREEDY,
    {**GREEDY, "head": "normal", "point": "mean"}, {"output": "autoregressive", "head": "point", "hidden_size": 8},
])  # fmt: skip
def test_baseline_and_contributions_add_up_to_the_forecast(params: dict[str, Any]) -> None:
    small = {} if "output" in params else SMALL[LSTM]
    model = LSTM(**{"horizon": HORIZON, "input_size": 8, "max_steps": 10, **small, **params}).fit(panel(3, 60))
    found, forecast = table(model.explain()), model.predict()["LSTM"].to_numpy()
    assert set(found) == {"baseline", "y", "calendar", "rest"}
    np.testing.assert_allclose(found.drop(columns="rest").sum(axis=1), forecast, rtol=0, atol=1e-5 * np.abs(forecast).max())
    np.testing.assert_allclose(found.sum(axis=1), forecast, rtol=1e-12)
    assert found["y"].abs().max() > 1e-3


def test_the_baseline_is_the_forecast_without_information() -> None:
    model = NLinear(horizon=HORIZON, input_size=8, max_steps=10, calendar=None).fit(panel(3, 60))
    constant = panel(1, 30).assign(y=7.0)
    found = table(model.explain(frame=constant))
    assert found["baseline"].tolist() == [7.0] * HORIZON  # the scale of a constant window is 0
    assert (found.drop(columns="baseline") == 0).all(axis=None)


@pytest.mark.parametrize("scope", ["window", "series"])
def test_the_level_of_a_series_belongs_to_the_baseline(scope: str) -> None:
    model = MLP(horizon=HORIZON, input_size=8, max_steps=10, scaler_scope=scope, **SMALL[MLP]).fit(panel(3, 60))
    low, high = (table(model.explain(frame=panel(3, 60).assign(y=panel(3, 60).y + level))) for level in (0, 1000))
    names = ["y", "calendar"]
    np.testing.assert_allclose(high[names], low[names], rtol=0, atol=1e-4)
    np.testing.assert_allclose(high["baseline"], low["baseline"] + 1000, rtol=0, atol=1e-3)


@pytest.mark.parametrize("kind", [MLP, LSTM])
def test_a_known_effect_is_found_and_an_irrelevant_column_has_none(kind: Any) -> None:
    rng = np.random.default_rng(0)
    frame = panel(20, 150)
    frame["price"], frame["noise"] = rng.normal(size=(2, len(frame)))
    frame["y"] = 3 * frame["price"] + 0.7 * rng.normal(size=len(frame)) + 50
    is_test = frame.groupby("unique_id").cumcount(ascending=False) < HORIZON
    model = kind(horizon=HORIZON, input_size=8, max_steps=500, learning_rate=1e-2, calendar=None, scaler_scope="panel",
                 **SMALL[kind])  # fmt: skip
    model.fit(frame[~is_test], columns={"future": ["price", "noise"]})
    found = table(model.explain(future=frame[is_test].drop(columns="y")))
    effect = 3 * frame.loc[is_test, "price"].to_numpy()
    assert np.abs(found["price"] - effect).mean() < 0.2 * np.abs(effect).mean()
    assert found["noise"].abs().mean() < 0.08 * np.abs(effect).mean()


@pytest.mark.parametrize("params", [{}, {"head": "point"}])
def test_beyond_the_horizon_forecasts_count_as_history(params: dict[str, Any]) -> None:
    frame = panel(2, 60)
    model = MLP(horizon=HORIZON, input_size=8, max_steps=10, **SMALL[MLP], **params).fit(frame)
    whole = table(model.explain(2 * HORIZON + 1)).drop(columns="rest")
    longer = pd.concat([frame, model.predict().rename(columns={"MLP": "y"})], ignore_index=True)
    pd.testing.assert_frame_equal(
        whole.groupby("unique_id").nth(slice(HORIZON, 2 * HORIZON)), table(model.explain(frame=longer)).drop(columns="rest")
    )


@pytest.mark.parametrize("params", [{}, {"head": "bins", "decoding": "beam"}])
def test_rest_is_the_distance_of_the_forecast_from_the_greedy_path(params: dict[str, Any]) -> None:
    model = Seq2Seq(horizon=HORIZON, input_size=8, max_steps=10, hidden_size=8, attention=None, **params).fit(panel(3, 60))
    found, forecast = table(model.explain()), model.predict()["Seq2Seq"].to_numpy()
    greedy = model.set_params(decoding="greedy", beam_width=None).predict()["Seq2Seq"].to_numpy()
    np.testing.assert_allclose(found["rest"], forecast - greedy, rtol=0, atol=1e-5)
    assert found["rest"].abs().max() > 1e-3


def test_clipping_is_the_component_bounds() -> None:
    params: dict[str, Any] = {"horizon": HORIZON, "input_size": 8, "max_steps": 10, **SMALL[MLP]}
    free = table(MLP(**params).fit(panel(3, 60)).explain(2 * HORIZON))
    model = MLP(**params, bounds=(0, 2)).fit(panel(3, 60))
    found = table(model.explain(2 * HORIZON))
    forecast = model.predict(2 * HORIZON)["MLP"].to_numpy()
    assert {0.0, 2.0} < set(forecast)
    np.testing.assert_allclose(found.sum(axis=1), forecast, rtol=0, atol=1e-12)
    first = found.groupby("unique_id").head(HORIZON)
    expected = free.drop(columns="rest").sum(axis=1).groupby("unique_id").head(HORIZON)
    np.testing.assert_allclose(first["bounds"], np.clip(expected, 0, 2) - expected, atol=1e-5)


def test_a_series_is_explained_alone_as_among_others() -> None:
    model, future = fitted_shop(MLP, max_steps=5)
    history = shop().groupby("unique_id").head(80 - 3 * HORIZON)
    whole = table(model.explain(frame=history, future=future)).loc["s0001"]
    is_one, is_future = history.unique_id == "s0001", future.unique_id == "s0001"
    alone = table(model.explain(frame=history[is_one], future=future[is_future])).loc["s0001"]
    pd.testing.assert_frame_equal(whole.drop(columns="rest"), alone.drop(columns="rest"), check_exact=True)
    np.testing.assert_allclose(whole["rest"], alone["rest"], atol=1e-5)  # the forecast is that of another batch


def test_names_that_columns_have_already_get_an_underscore() -> None:
    frame = panel(2, 60).rename(columns={"y": "rest"}).assign(calendar=1.0, baseline=2.0)
    columns = {"target": "rest", "past": ["calendar", "baseline"]}
    model = MLP(horizon=HORIZON, input_size=8, max_steps=2, **SMALL[MLP]).fit(frame, columns=columns)
    names = model.explain()["component"].unique().tolist()
    assert names == ["baseline_", "rest", "calendar", "baseline", "calendar_", "rest_"]


def test_missing_values_are_missing_in_the_baseline_too() -> None:
    model = MLP(horizon=HORIZON, input_size=8, max_steps=10, **SMALL[MLP]).fit(panel(3, 60))
    history = panel(1, 30)
    history.loc[[24, 27], "y"] = np.nan
    with pytest.warns(match="missing"):
        found, forecast = table(model.explain(frame=history)), model.predict(frame=history)["MLP"]
    np.testing.assert_allclose(found.drop(columns="rest").sum(axis=1), forecast, rtol=1e-5)


@pytest.mark.parametrize(("kind", "params"), [
    (DLinear, {"scaler": "difference"}), (NBEATS, {"head": "negative_binomial", "hidden_sizes": [8]}),
])  # fmt: skip
def test_networks_whose_components_do_not_add_up_have_integrated_gradients(kind: Any, params: dict[str, Any]) -> None:
    counts = panel(2, 60).assign(y=lambda frame: np.abs(frame.y).round())
    model = kind(horizon=HORIZON, input_size=8, max_steps=3, **params).fit(counts)
    assert set(model.explain()["component"]) == {"baseline", "y", "calendar", "rest"}


def test_conformal_explains_the_model_inside() -> None:
    inner = MLP(horizon=HORIZON, input_size=8, max_steps=3, **SMALL[MLP])
    wrapped = Conformal(inner, n_windows=2).fit(panel(2, 60))
    pd.testing.assert_frame_equal(wrapped.explain(), inner.clone().fit(panel(2, 60)).explain())


def test_the_number_of_windows_grows_with_the_columns_and_not_the_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    model, future = fitted_shop(MLP, max_steps=2)
    body = type(model.network_.body)
    features, n_windows = body.features, []
    monkeypatch.setattr(body, "features", lambda self, inputs: n_windows.append(len(inputs.y)) or features(self, inputs))
    model.predict(future=future)
    n_windows.clear()
    model.explain(future=future)
    # 3 series padded to 4, then 7 components of each: y, 3 + 2 covariates, calendar
    assert sum(n_windows) == 4 + 3 * (7 * _explain.N_SEGMENTS + 1)
    assert max(n_windows) <= 512
