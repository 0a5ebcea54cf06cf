"""`deepforecast predict` with covariates: read as the fit read them, asked for by name where they lack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.core import registry
from deepforecast.core.forecast import Forecast, PointForecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate


class Echo(Forecaster):
    """Forecast 100 times the promotion plus the code of the weather plus the size of the shop."""

    capabilities = Capabilities(future=True, static=True, categorical=True)

    def _fit(self, panel: Any, monitor: Any) -> LearnedState:
        size = panel.static["size"].values if "size" in panel.static else np.zeros(len(panel))
        return LearnedState({"size": size})

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        values = {name: np.asarray(one.values).reshape(-1, steps) for name, one in future.items()}
        return PointForecast(100 * values["promo"] + values["weather"] + learned["size"][:, None], "Echo")


@pytest.fixture
def fitted(run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(registry._registered, "Echo", Echo)
    rows = [f"0{shop},2024-01-{day:02d},{day},{day % 2},{'1' if day % 2 else '2'}" for shop in (1, 2) for day in range(1, 9)]
    (folder / "shops.csv").write_text("unique_id,ds,y,promo,weather\n" + "\n".join(rows) + "\n")
    (folder / "static.csv").write_text("unique_id,size\n02,2000\n01,1000\n")
    roles = ["--future", "promo", "weather", "--static", "size", "--categorical", "weather", "--static-data", "static.csv"]
    ran = run("fit", "shops.csv", "--model", "Echo", "--horizon", "2", "--save", "echo.dfc", *roles)
    assert (ran.status, ran.err) == (0, "")
    return folder


def test_future_data_are_matched_by_key(run, fitted: Path) -> None:
    rows = ["02,2024-01-10,1,2", "01,2024-01-09,0,1", "02,2024-01-09,1,1", "01,2024-01-10,0,2", "01,2024-01-11,9,9"]
    (fitted / "future.csv").write_text("unique_id,ds,promo,weather\n" + "\n".join(rows) + "\n")
    ran = run("predict", "echo.dfc", "--future-data", "future.csv", "--json")
    assert ran.status == 0
    assert [row["Echo"] for row in ran.facts["forecasts"]] == [1000, 1001, 2100, 2101]


def test_columns_that_the_model_was_fitted_without_are_left_out_aloud(run, fitted: Path) -> None:
    rows = [f"0{shop},2024-01-{day:02d},0,1,7,8" for shop in (1, 2) for day in (9, 10)]
    (fitted / "future.csv").write_text("unique_id,ds,promo,weather,y,promotion\n" + "\n".join(rows) + "\n")
    ran = run("predict", "echo.dfc", "--future-data", "future.csv")
    assert ran.status == 0
    first, second = ran.err.splitlines()
    assert first == "warning: Columns without a role are left out: promotion. The model was fitted without them."
    assert second.startswith("warning: Echo: forecasts of series 01, 02 lie far outside the history")


def test_the_rows_needed_are_written_as_a_template(run, fitted: Path) -> None:
    ran = run("predict", "echo.dfc", "--future-template", "template.csv")
    assert ran.out == "4 rows written to template.csv: fill in promo, weather.\n"
    template = pd.read_csv(fitted / "template.csv", dtype=str)
    assert template.columns.tolist() == ["unique_id", "ds", "promo", "weather"]
    template.assign(promo="1", weather="2").to_csv(fitted / "filled.csv", index=False)
    ran = run("predict", "echo.dfc", "--future-data", "filled.csv", "--json")
    assert [row["Echo"] for row in ran.facts["forecasts"]] == [1101, 1101, 2101, 2101]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (None, "fitted with future covariates (promo, weather). Pass --future-data FILE"),
        (
            "unique_id,ds,promo\n01,2024-01-09,1\n",
            "future.csv must have the columns unique_id, ds, promo, weather, but it lacks weather and has unique_id, ds, promo. Add",
        ),
        ("unique_id,ds,promo,weather\n01,2024-01-09,1,1\n", "02"),
        ("unique_id,ds,promo,weather\n01,2024-01-09,x,1\n", "promo"),
        ("unique_id,ds,promo,weather\n01,09/01/2024,1,1\n", "Column ds must contain ISO-8601 timestamps"),
    ],
)
def test_what_is_lacking_is_named(run, fitted: Path, rows: str | None, said: str) -> None:
    (fitted / "future.csv").write_text(rows or "")
    assert said in run("predict", "echo.dfc", *([] if rows is None else ["--future-data", "future.csv"])).refusal()


def test_weights_are_read_by_fit_and_not_needed_to_predict(run, folder: Path) -> None:
    rows = [f"2024-01-{day:02d},{(day % 7) + day * (day % 2)},{1 + 3 * (day % 2)}" for day in range(1, 31)]
    (folder / "weights.csv").write_text("\n".join(["ds,y,w", *rows]))
    (folder / "bare.csv").write_text("\n".join(["ds,y", *(row.rpartition(",")[0] for row in rows)]))
    fit = ["--model", "LinearModel", "--horizon", "2", "--set", "lags=2", "--json"]
    forecasts = []
    for name, weight in (("weights.csv", ["--weight", "w"]), ("bare.csv", [])):
        ran = run("fit", name, *fit, *weight, "--save", "model.dfc")
        assert (ran.status, ran.err) == (0, "")
        for data in ([], ["--data", "bare.csv"], ["--data", "weights.csv"] if weight else []):
            ran = run("predict", "model.dfc", *data, "--json")
            assert (ran.status, ran.err) == (0, "")
            forecasts.append(tuple(row["LinearModel"] for row in ran.facts["forecasts"]))
    assert len(set(forecasts[:3])) == len(set(forecasts[3:])) == 1
    assert forecasts[0] != forecasts[3]
    refused = run("fit", "weights.csv", "--model", "Naive", "--weight", "w", "--save", "naive.dfc")
    assert "Naive cannot use observation weights (column w)" in refused.refusal()
