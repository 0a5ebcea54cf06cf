from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deepforecast.data.covariates import leaking_columns
from deepforecast.data.panel import Panel
from tests.frames import P

RNG = np.random.default_rng(0)


def noisy(k: int = 3, n: int = 80) -> pd.DataFrame:
    return P(k, n).assign(y=lambda x: x.y + RNG.normal(size=len(x)))


def found(frame: pd.DataFrame, **columns: object) -> list[str]:
    return leaking_columns(Panel.from_frame(frame, columns=columns or {"future": "x"}))


@pytest.mark.parametrize("shift", [-1, 0, 1])
@pytest.mark.parametrize("factor", [1.0, -3.0, 1e-9, 1e200])
def test_the_target_itself(shift: int, factor: float) -> None:
    frame = noisy()
    frame["x"] = 5 + factor * frame.groupby("unique_id").y.shift(shift)
    assert found(frame) == ["x"]


def test_nearly_the_target() -> None:
    frame = noisy()
    assert found(frame.assign(x=frame.y + 0.01 * RNG.normal(size=len(frame)))) == ["x"]
    assert found(frame.assign(x=frame.y + RNG.normal(size=len(frame)))) == []


def test_a_trend_in_both_is_no_leak() -> None:
    days = noisy().groupby("unique_id").cumcount().astype(float)
    noise = [pd.Series(RNG.normal(size=len(days))) for _ in range(2)]
    assert found(noisy().assign(y=1000.0 * days + 3000 * noise[0], x=days + 3 * noise[1])) == []


@pytest.mark.parametrize(("rows", "leaks"), [(7, []), (8, ["x"])])
def test_a_few_values_say_nothing(rows: int, leaks: list[str]) -> None:
    frame = noisy(2, rows)
    assert found(frame.assign(x=frame.y)) == leaks


def test_in_half_of_the_series() -> None:
    frame = noisy(4)
    one = frame.unique_id == "s001"
    other = frame.unique_id == "s002"
    noise = pd.Series(RNG.normal(size=len(frame)))
    assert found(frame.assign(x=noise.where(~one, frame.y))) == []
    assert found(frame.assign(x=noise.where(~(one | other), frame.y))) == ["x"]


def test_nothing_to_tell_from() -> None:
    assert found(noisy().assign(x=1.0)) == []
    assert found(noisy().assign(y=7.0, x=7.0)) == []
    assert found(noisy().assign(y=0.0, x=0.0)) == []
    assert found(noisy().assign(x=pd.Categorical(["a", "b"] * 120))) == []


def test_only_columns_known_ahead() -> None:
    frame = noisy()
    frame["x"] = frame["z"] = frame.y
    assert found(frame, past=["x"], future=["z"]) == ["z"]
    assert leaking_columns(Panel.from_frame(noisy())) == []


def test_with_missing_values() -> None:
    frame = noisy()
    frame["x"] = 2 * frame.y
    frame.loc[::7, "x"] = np.nan
    frame.loc[::5, "y"] = np.nan
    assert found(frame) == ["x"]
