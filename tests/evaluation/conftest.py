"""Forecasts of two models for three series from two cutoffs each, with all that scores are made of, and the scores by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.evaluation import metrics
from deepforecast.evaluation.metrics import METRICS

HORIZON, WINDOWS = 3, 2
SERIES = {"b": 40, "a": 28, "c": 33}  # ids out of order, lengths ragged
KEY = ["unique_id", "cutoff"]


@dataclass(frozen=True)
class Given:
    """`frame`: monthly series; `rolled`: forecasts with intervals as cross_validate gives them, `points` without those."""

    frame: pd.DataFrame
    rolled: pd.DataFrame

    @property
    def points(self) -> pd.DataFrame:
        return self.rolled[["unique_id", "ds", "cutoff", "y", "B", "A"]]

    @property
    def stepped(self) -> pd.DataFrame:
        return self.points.assign(step=self.points.groupby(KEY).cumcount() + 1)

    @property
    def last(self) -> pd.DataFrame:
        """The forecasts of the last cutoff of each series."""
        return self.points[self.points["cutoff"] == self.points.groupby("unique_id")["cutoff"].transform("max")]

    @property
    def predicted(self) -> pd.DataFrame:
        """The same as predict gives them."""
        return self.last[["unique_id", "ds", "B", "A"]].reset_index(drop=True)

    @property
    def actual(self) -> pd.DataFrame:
        return self.last[["unique_id", "ds", "y"]]

    def scales(self, season: int = 12, squared: bool = False) -> dict[Any, float]:
        """The scale of each forecast, computed one by one."""
        found = {}
        for name, cutoff in self.points.groupby(KEY).groups:
            train = self.frame[(self.frame["unique_id"] == name) & (self.frame["ds"] <= cutoff)]
            found[name, cutoff] = metrics.seasonal_scale(train["y"].to_numpy(), season, squared=squared)
        return found

    @staticmethod
    def by_hand(frame: pd.DataFrame, model: str, name: str, **inputs: Any) -> float:
        """A metric of all points, or the mean over forecasts of those that count forecasts."""
        function = getattr(metrics, name)
        if METRICS[name].counts == "points":
            return float(function(frame["y"], frame[model]))
        each = []
        for key, own in frame.groupby(KEY):
            each.append(function(own["y"], own[model], **{need: held[key] for need, held in inputs.items()}))
        return float(np.nanmean(each))


@pytest.fixture(scope="session")
def given() -> Given:
    """Frames that no test writes to."""
    random = np.random.default_rng(0)
    parts = []
    for name, length in SERIES.items():
        ds = pd.date_range("2020-01-01", periods=length, freq="MS")
        parts.append(pd.DataFrame({"unique_id": name, "ds": ds, "y": random.uniform(5, 15, length)}))
    frame = pd.concat(parts, ignore_index=True)
    return Given(frame, rolled(frame, random))


def rolled(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """Forecasts with intervals at two levels."""
    rows = []
    for name, own in frame.groupby("unique_id"):
        for window in range(WINDOWS):
            cut = len(own) - HORIZON * (WINDOWS - window)
            rows.append(own.iloc[cut : cut + HORIZON].assign(cutoff=own["ds"].iloc[cut - 1], unique_id=name))
    found = pd.concat(rows, ignore_index=True)[["unique_id", "ds", "cutoff", "y"]]
    for number, model in enumerate(("B", "A")):
        found[model] = found["y"] + random.normal(0.5 * number, 1, len(found))
        for level, half in ((80, 1.3), (95, 2.0)):
            found[f"{model}-lo-{level}"] = found[model] - half
            found[f"{model}-hi-{level}"] = found[model] + half
    return found
