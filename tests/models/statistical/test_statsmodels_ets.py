"""Summaries of exponential smoothing: one set of criteria, and of series that statsmodels does not take."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from deepforecast import AutoETS, HoltWinters, datasets
from deepforecast.core.forecaster import Forecaster

FRAME = datasets.load("air_passengers")
pytestmark = pytest.mark.filterwarnings("ignore:.*missing values:UserWarning")


def criteria(text: str) -> dict[str, float]:
    """The criteria that a summary shows, by name."""
    found = re.findall(r"(?i)\b(log.likelihood|aic|bic|hqic)\s+(-?[\d.]+)", text)
    return {name.lower().replace(" ", "_"): float(value) for name, value in found}


@pytest.mark.parametrize("model", [AutoETS(), HoltWinters(), HoltWinters(seasonal="multiplicative")], ids=repr)
def test_a_summary_has_the_criteria_of_parameters(model: Forecaster) -> None:
    fitted: Any = model.fit(FRAME)
    row, text = fitted.parameters().iloc[0], fitted.summary()
    found = criteria(text)
    for name in ("log_likelihood", "aic", "bic"):
        assert found[name] == pytest.approx(row[name], abs=6e-4)
    number = row["parameters"] + 1  # of rates and states (one season less than there are, as in R), and sigma
    assert found["bic"] == pytest.approx(-2 * row["log_likelihood"] + number * np.log(len(FRAME)), abs=6e-4)
    assert found["hqic"] == pytest.approx(-2 * row["log_likelihood"] + 2 * number * np.log(np.log(len(FRAME))), abs=6e-4)


def test_a_summary_of_a_series_with_missing_values_lists_its_estimates() -> None:
    frame = FRAME.copy()
    frame.loc[[20, 50, 51], "y"] = np.nan
    model = AutoETS().fit(frame)
    text, row = model.summary(), model.parameters().iloc[0]
    assert criteria(text)["bic"] == pytest.approx(row["bic"], rel=1e-5)
    assert re.search(r"observations\s+141\nmissing\s+3\nform\s+ETS\(M,A", text)


def test_a_summary_of_a_transformed_series_lists_its_estimates() -> None:
    model = HoltWinters(box_cox=0.0).fit(FRAME)
    assert criteria(model.summary())["aic"] == pytest.approx(model.parameters()["aic"][0], rel=1e-5)
