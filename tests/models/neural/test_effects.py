"""What a column says moves the forecast as the effect it has in the data, and what is hidden moves nothing."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import LSTM, MLP
from deepforecast.datasets import COVARIATES, Recipe, generate
from deepforecast.testing import fixtures

HORIZON, EFFECT_STEP = 3, 1
IN_TIME = ("price", "holiday", "promotion", "visits", "stock")
FIXED = ("size", "region")
MODELS = [MLP, LSTM]
SMALL: dict[type, dict[str, Any]] = {MLP: {"hidden_sizes": [64]}, LSTM: {"hidden_size": 32, "decoder_size": 32}}


def network(kind: Any, **given: Any) -> Any:
    """A small one that learns fast."""
    learns = {"horizon": HORIZON, "input_size": 6, "max_steps": 600, "learning_rate": 1e-2, "batch_size": 64}
    return kind(**{**learns, **SMALL[kind], **given})


@cache
def learned(kind: Any, names: tuple[str, ...]) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """A network of all these columns at once, the histories it has seen, and the rows after them.

    Fixed columns say the level, which a network sees where windows are not scaled one by one.
    """
    fixed = names == FIXED
    recipe = Recipe(
        covariates=names, seasons=(), trend=0.0, noise=10.0 if fixed else 1.0, level_spread=0.0 if fixed else 10.0
    )
    frame = generate(80 if fixed else 24, 50 if fixed else 120, seed=3, recipe=recipe)
    ahead = frame.groupby("unique_id").cumcount(ascending=False) < HORIZON
    history, future = (frame[one].reset_index(drop=True) for one in (~ahead, ahead))
    model = network(kind, calendar=None, scaler="standard", scaler_scope="panel" if fixed else "window")
    return model.fit(history, columns=recipe.columns), history, future.drop(columns="y")


def forecast(name: str, value: Any, kind: Any, names: tuple[str, ...]) -> np.ndarray:
    """With one value of a column set in every series: of the second step ahead, of the last row, or of the series."""
    model, history, future = learned(kind, names)
    role = COVARIATES[name][0]
    if role == "future":
        future = with_value(future, name, value, slice(EFFECT_STEP, EFFECT_STEP + 1))
    else:
        history = with_value(history, name, value, slice(-1, None) if role == "past" else slice(None))
    given = {"future": future} if names == IN_TIME else {}
    return model.predict(frame=history, **given)[model.name].to_numpy().reshape(-1, HORIZON)


def with_value(frame: pd.DataFrame, name: str, value: Any, rows: slice) -> pd.DataFrame:
    """The frame with another value in these rows of every series."""
    changed = frame[name].copy()
    places = frame.groupby("unique_id").indices.values()
    changed.iloc[np.concatenate([one[rows] for one in places])] = value
    return frame.assign(**{name: changed})


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", [*IN_TIME, *FIXED])
def test_one_value_moves_the_forecast_by_its_effect(name: str, kind: Any) -> None:
    """On the average of the series about as much (columns that are fixed are seen once a series, so less surely); nowhere the
    other way; the steps it has no effect on hardly."""
    low, high, effect = fixtures.covariate_effect(name)
    names = IN_TIME if name in IN_TIME else FIXED
    before, after = (forecast(name, value, kind, names) for value in (low, high))
    share = (after - before) / effect
    steps = {"future": [EFFECT_STEP], "past": [0], "static": [0, 1, 2]}[COVARIATES[name][0]]
    others = [step for step in range(HORIZON) if step not in steps]
    assert share.mean(axis=0)[steps] == pytest.approx(1.0, abs=0.4 if name in FIXED else 0.25)
    assert (share[:, steps] > 0).all()
    assert np.abs(share.mean(axis=0)[others]) == pytest.approx(0.0, abs=0.2)


# -- the calendar -------------------------------------------------------------------------------------------------------------


@cache
def of_sundays(kind: Any) -> Any:
    """Series of noise, but for Sundays, which are higher by 10: windows of three other days look alike."""
    rng, rows = np.random.default_rng(0), 140
    days = pd.date_range("2024-01-01", periods=rows, freq="D")
    parts = [
        pd.DataFrame({"unique_id": f"s{one}", "ds": days, "y": 50 + 10.0 * (days.day_of_week == 6) + rng.normal(size=rows)})
        for one in range(8)
    ]
    model = network(kind, input_size=3, calendar=["day_of_week"], scaler="standard", scaler_scope="panel")
    return model.fit(pd.concat(parts, ignore_index=True))


@pytest.mark.filterwarnings("ignore:.*far outside the history")  # of three values
@pytest.mark.parametrize("kind", MODELS)
def test_the_day_of_the_week_moves_the_forecast_by_its_effect(kind: Any) -> None:
    model = of_sundays(kind)
    days = pd.date_range("2024-07-01", periods=3, freq="D")  # Monday to Wednesday: Thursday to Saturday lie ahead
    frame = pd.DataFrame({"unique_id": "new", "ds": days, "y": [50.3, 49.5, 50.1]})
    plain, later, latest = (
        model.predict(frame=frame.assign(ds=days + pd.Timedelta(days=shift)))[model.name].to_numpy() for shift in (0, 1, 2)
    )
    np.testing.assert_allclose(later - plain, [0, 0, 10], atol=2)
    np.testing.assert_allclose(latest - plain, [0, 10, 0], atol=2)


# -- what is hidden -----------------------------------------------------------------------------------------------------------


@cache
def of_walks(kind: Any) -> Any:
    """Random walks with holes: a forecast is the last value that was seen."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(12, 150)).cumsum(axis=1)
    y[rng.random(y.shape) < 0.15] = np.nan
    ids, rows = np.repeat([f"s{one:02d}" for one in range(12)], 150), np.tile(np.arange(150), 12)
    return network(kind, calendar=None, season_length=1).fit(pd.DataFrame({"unique_id": ids, "ds": rows, "y": y.reshape(-1)}))


@pytest.mark.filterwarnings("ignore:.*missing values")
@pytest.mark.parametrize("kind", MODELS)
def test_a_value_seen_moves_the_forecast_and_a_hidden_one_is_not_there(kind: Any) -> None:
    model = of_walks(kind)
    y = np.array([0.0, 0.4, -0.2, 0.3, 0.1, 1.5])

    def first(values: np.ndarray) -> float:
        frame = pd.DataFrame({"unique_id": "new", "ds": np.arange(len(values)), "y": values})
        return float(model.predict(frame=frame)[model.name].iloc[0])

    hidden = np.where(np.arange(6) == 5, np.nan, y)
    assert first(y) == pytest.approx(1.5, abs=0.4)
    assert first(np.append(y[:-1], 2.5)) - first(y) == pytest.approx(1.0, abs=0.3)
    assert first(hidden) == pytest.approx(0.1, abs=0.4)  # the last that was seen; not 0, not what stood there


@pytest.mark.filterwarnings("ignore:.*missing values")
@pytest.mark.parametrize("kind", MODELS)
def test_nothing_hidden_reaches_the_body(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it sees of a window with holes does not depend on what stood there, nor are the holes anything but 0."""
    import torch

    from deepforecast.nn.batch import Batch

    model, seen = of_walks(kind), []
    body = type(model.network_.body)
    features = body.features
    monkeypatch.setattr(body, "features", lambda self, inputs: seen.append(inputs) or features(self, inputs))
    y = torch.arange(12.0, dtype=torch.float64).view(2, 6)
    hole = torch.tensor([[0, 0, 1, 0, 0, 1], [1, 1, 0, 0, 0, 0]], dtype=torch.bool)
    none, one = torch.zeros(2, 0), torch.zeros(2, 1, dtype=torch.float64)
    rows, codes = (torch.zeros(2, length, 0) for length in (6, HORIZON)), torch.zeros(2, 0, dtype=torch.int64)
    past, future = rows
    batch = Batch(
        torch.where(hole, torch.nan, y), past, future, none, past.long(), future.long(), codes, one, one,
        torch.full((2, HORIZON), torch.nan, dtype=torch.float64),
    )  # fmt: skip
    loss = model.network_.loss(batch)
    (inputs,) = seen
    assert (inputs.observed == (~hole).float()).all()
    assert (inputs.y[hole] == 0).all()
    assert (inputs.y[~hole] != 0).sum() >= 6
    assert loss == 0  # of targets that are hidden, all of them, none counts
