"""The series and options on which `Prophet` is held against the package `prophet`, and the evaluator of what is made least."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deepforecast import Prophet, datasets
from deepforecast.datasets import Recipe, generate

DATES = ["2021-05-03", "2022-05-02", "2023-05-08"]
FAIR = {"fair": {"dates": DATES, "lower_window": -1, "upper_window": 2, "prior_scale": 5.0}}


@dataclass(frozen=True)
class Case:
    """`ours` are options of `Prophet`, `theirs` what says the same to the peer's script."""

    name: str
    source: str
    horizon: int
    freq: str
    ours: Mapping[str, Any] = field(default_factory=dict)
    theirs: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    bundled: bool = True
    close: float = 0.01  # how far forecasts may be off, of their mean size


def _same(**options: Any) -> dict[str, Any]:
    return {"ours": options, "theirs": {"options": options}}


CASES = {
    one.name: one
    for one in (
        Case("air", "air", 24, "MS"),
        Case("air_multiplicative", "air", 24, "MS", **_same(seasonality_mode="multiplicative")),
        Case("air_flexible", "air", 24, "MS", **_same(changepoint_prior_scale=0.5, seasonality_prior_scale=0.1)),
        Case("air_flat", "air", 24, "MS", **_same(growth="flat", seasonality_mode="multiplicative")),
        Case("air_minmax", "air", 24, "MS", **_same(scaling="minmax")),
        Case(
            "air_logistic", "capped", 24, "MS",
            ours={"growth": "logistic", "cap": "cap", "floor": "floor", "seasonality_mode": "multiplicative"},
            theirs={
                "options": {"growth": "logistic", "seasonality_mode": "multiplicative"},
                "fit": {"algorithm": "LBFGS", "iter": 200_000, "tol_rel_obj": 1e-3, "tol_obj": 1e-14, "history_size": 40},
            },
            columns={"future": ("cap", "floor")}, close=0.05,  # theirs ends 0.3 short of the least
        ),
        Case("daily_holidays", "daily", 90, "D", ours={"holidays": "US"}, theirs={"country": "US"}),
        Case(
            "daily_everything", "regressed", 90, "D",
            ours={
                "events": FAIR, "n_changepoints": 15, "weekly_seasonality": 4,
                "seasonalities": {
                    "monthly": {"period": 30.5, "order": 4, "prior_scale": 2.0},
                    "summer": {"period": 7, "order": 2, "condition": "warm", "mode": "multiplicative"},
                },
                "regressors": {"price": {"prior_scale": 0.5}, "holiday": {"mode": "multiplicative"}},
            },
            theirs={
                "options": {"n_changepoints": 15, "weekly_seasonality": 4}, "events": FAIR,
                "seasonalities": {
                    "monthly": {"period": 30.5, "fourier_order": 4, "prior_scale": 2.0},
                    "summer": {"period": 7, "fourier_order": 2, "condition_name": "warm", "mode": "multiplicative"},
                },
                "regressors": {"price": {"prior_scale": 0.5}, "holiday": {"mode": "multiplicative"}},
            },
            columns={"future": ("price", "holiday", "warm")},
        ),
        Case("retail", "retail_sales_us", 24, "MS", bundled=False),
        Case("retail_multiplicative", "retail_sales_us", 24, "MS", **_same(seasonality_mode="multiplicative"), bundled=False),
        Case("yosemite", "yosemite_temps", 288, "5min", bundled=False),
        Case("yosemite_flexible", "yosemite_temps", 288, "5min", **_same(changepoint_prior_scale=0.01), bundled=False),
    )
}  # fmt: skip


def frame_of(name: str) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    """The history of a case, and its columns known ahead; None where the data folder does not have it."""
    case = CASES[name]
    if case.source in ("air", "capped"):
        frame = datasets.load("air_passengers")
        if case.source == "air":
            return frame, None
        stamps = pd.date_range("1961-01-01", periods=24, freq="MS")
        ahead = pd.DataFrame({"unique_id": frame["unique_id"].iloc[0], "ds": stamps})
        bounds = {"cap": 900.0, "floor": 50.0}
        return frame.assign(**bounds), ahead.assign(**bounds)
    if case.source in ("daily", "regressed"):
        return _daily(case)
    folder = Path(os.environ.get("DEEPFORECAST_DATA", ""), case.source)
    if not (folder / "train.parquet").exists():
        return None, None
    frame = pd.read_parquet(folder / "train.parquet")[["unique_id", "ds", "y"]]
    return frame.assign(unique_id=frame["unique_id"].astype(str), y=frame["y"].astype(float)), None


def _daily(case: Case) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Three years and a bit from the generator, with effects of holidays and of a price; some days are missing."""
    recipe = Recipe(covariates=("price", "holiday"), seasons=(7,), trend=0.02)
    frame = generate(1, 1186, freq="D", seed=5, recipe=recipe, start="2021-01-01")
    frame = frame.assign(warm=frame["ds"].dt.month.isin([6, 7, 8]).astype(float))
    if case.source == "daily":
        import holidays

        off = frame["ds"].dt.date.isin(holidays.country_holidays("US", years=range(2021, 2025)))
        frame = frame.assign(y=frame["y"] + 15.0 * off).drop(columns=["price", "holiday", "warm"])
    history = frame.iloc[:1096].drop(index=[5, 100, 101, 700]).reset_index(drop=True)
    ahead = frame.iloc[1096:].drop(columns="y").reset_index(drop=True)
    return history, ahead if case.columns else None


def forecast_of(case: Case, frame: pd.DataFrame, future: pd.DataFrame | None) -> tuple[Prophet, pd.DataFrame]:
    """Ours, fitted, and its forecast with bands."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # days are missing, and it says so
        model = Prophet(horizon=case.horizon, **case.ours)
        model.fit(frame, columns=dict(case.columns) or None, freq=case.freq)
        return model, model.predict(future=future, level=80)


def objective(one: Mapping[str, Any]) -> float:
    """Minus the log posterior without constants, of parameters on a design, as Stan reckons it."""
    t, delta, beta, sigma = one["t"], one["delta"], one["beta"], float(one["sigma"])
    k, m, growth = float(one["k"]), float(one["m"]), int(one["growth"])
    line = k * (t - m) if growth == 1 else k * t + m
    line = line + np.maximum(t[:, None] - one["t_change"][None, :], 0.0) @ delta
    trend = one["cap"] / (1.0 + np.exp(-line)) if growth == 1 else np.full(len(t), m) if growth == 2 else line
    fitted = trend * (1.0 + one["X"] @ (beta * one["s_m"])) + one["X"] @ (beta * one["s_a"])
    squares = float(np.square(one["y"] - fitted).sum())
    priors = 0.02 * (k * k + m * m) + np.abs(delta).sum() / float(one["tau"]) + 2.0 * sigma**2
    return float(len(t) * np.log(sigma) + squares / (2 * sigma**2) + priors + 0.5 * np.square(beta / one["sigmas"]).sum())
