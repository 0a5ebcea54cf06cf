"""`check` has an error if and only if the fit of every model raises: both run the same code."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import LSTM, AutoETS, LightGBM, Prophet, SeasonalNaive, check
from deepforecast.errors import CapabilityError, DataError

MODELS = [
    SeasonalNaive(horizon=2),
    AutoETS(horizon=2),
    LightGBM(horizon=2, n_estimators=2),
    Prophet(horizon=2),
    LSTM(horizon=2, max_steps=1),
]
Frames = tuple[pd.DataFrame, dict[str, Any]]  # a frame and its columns=


def sound(seed: int = 0) -> pd.DataFrame:
    """Two daily series of 40 days with covariates."""
    rng = np.random.default_rng(seed)
    days = np.tile(pd.date_range("2024-01-01", periods=40), 2)
    y = 50 + 5 * np.sin(np.arange(80) * 2 * np.pi / 7) + rng.normal(size=80)
    return pd.DataFrame({"unique_id": np.repeat(["a", "b"], 40), "ds": days, "y": y, "x": rng.normal(size=80), "size": 1.0})


def at(column: str, value: Any, *rows: int) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Sets a value in some rows of a column."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        values = frame[column].astype(object) if isinstance(value, str) or value is None else frame[column].copy()
        values.iloc[list(rows)] = value
        return frame.assign(**{column: values})

    return change


DEFECTS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "none": lambda frame: frame,
    "shuffled": lambda frame: frame.sample(frac=1, random_state=0),
    "duplicate": lambda frame: pd.concat([frame, frame.iloc[[5]]]),
    "infinite target": at("y", np.inf, 7),
    "missing target": at("y", np.nan, 7, 8),
    "all missing": lambda frame: frame.assign(y=frame["y"].mask(frame["unique_id"] == "b")),
    "text target": lambda frame: frame.assign(y=frame["y"].astype(str)),
    "gap": lambda frame: frame.drop(index=frame.index[[10, 11, 50]]),
    "missing timestamp": at("ds", pd.NaT, 3),
    "missing id": at("unique_id", None, 3),
    "off the grid": lambda frame: at("ds", frame["ds"].iloc[20] + pd.Timedelta("3h"), 20)(frame),
    "irregular": lambda frame: frame.iloc[np.unique(np.random.default_rng(1).integers(0, 80, 30) ** 2 // 80)],
    "another frequency": lambda frame: frame.assign(ds=frame["ds"].mask(frame["unique_id"] == "b", WEEKS)),
    "dates as integers": lambda frame: frame.assign(ds=frame["ds"].dt.strftime("%Y%m%d").astype(int)),
    "infinite covariate": at("x", -np.inf, 44),
    "missing covariate": at("x", np.nan, 44),
    "text covariate": at("x", "red", 44),
    "constant covariate": at("x", 1.0, *range(40)),
    "covariate without values": at("x", np.nan, *range(40)),
    "covariate missing everywhere": at("x", np.nan, *range(80)),
    "categorical covariate missing everywhere": lambda frame: frame.assign(x=pd.Categorical([None] * 80, ["a", "b"])),
    "leaking covariate": lambda frame: frame.assign(x=2 * frame["y"]),
    "changing static": at("size", 2.0, 3),
    "missing static": at("size", np.nan, *range(40)),
    "no target": lambda frame: frame.drop(columns="y"),
    "no rows": lambda frame: frame.iloc[:0],
    "one series of one row": lambda frame: frame.iloc[:41],
    "extra column": lambda frame: frame.assign(note="n"),
    "huge values": lambda frame: frame.assign(y=frame["y"] * 1e200),
}
WEEKS = pd.Series(np.concatenate([np.full(40, np.datetime64("NaT")), pd.date_range("2024-01-01", periods=40, freq="W")]))
COLUMNS: dict[str, dict[str, Any]] = {
    "target": {},
    "future": {"future": ["x"]},
    "past and static": {"past": ["x"], "static": ["size"]},
}
SLOW_PAIRS = list(
    combinations(["duplicate", "infinite target", "gap", "missing covariate", "all missing", "changing static"], 2)
)


def refuses(model: Any, frame: pd.DataFrame, columns: dict[str, Any]) -> bool:
    """Whether a fit raises a `DataError`; covariates that the model cannot use are left out."""
    usable = {role: names for role, names in columns.items() if getattr(model.capabilities, role)}
    try:
        model.clone().fit(frame, columns=usable or None)
    except CapabilityError:
        return False
    except DataError:
        return True
    return False


def same_verdict(frame: pd.DataFrame, columns: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = check(frame, columns=columns or None)
        able = [model for model in MODELS if all(getattr(model.capabilities, role) for role in columns)]
        verdicts = {type(model).__name__: refuses(model, frame, columns) for model in able}
    assert report.ok != all(verdicts.values()), (verdicts, report)
    assert all(finding.hint and finding.where for finding in report.findings if finding.severity == "error")


CASES = [(defect, roles) for defect in DEFECTS for roles in (COLUMNS if "covariate" in defect else ["past and static"])]


@pytest.mark.parametrize(("defect", "columns"), CASES)
def test_check_has_an_error_if_and_only_if_all_models_refuse(defect: str, columns: str) -> None:
    same_verdict(DEFECTS[defect](sound()), COLUMNS[columns])


@pytest.mark.slow
@pytest.mark.parametrize("pair", SLOW_PAIRS, ids="+".join)
def test_check_and_fit_agree_on_pairs_of_defects(pair: tuple[str, str]) -> None:
    first, second = (DEFECTS[name] for name in pair)
    same_verdict(second(first(sound(1)).reset_index(drop=True)), COLUMNS["past and static"])
