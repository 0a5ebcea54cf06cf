from __future__ import annotations

import numpy as np
import pytest

from deepforecast import Naive
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.plausibility import check_finite
from deepforecast.errors import DataError
from tests.frames import P

MODEL = Naive(horizon=1).fit(P(3, 9))


def test_what_is_finite_leaves_as_it_is() -> None:
    values = np.ones((3, 2))
    assert check_finite(values, MODEL.state_, "Naive") is values


@pytest.mark.parametrize(
    ("values", "spread_of", "words"),
    [
        (
            [1, np.inf, 2],
            None,
            "Naive for series s002 are not: the values of column y are too large for float64. Rescale",
        ),
        ([np.inf, np.nan, 2], None, r"Naive for series s002 are not: the model returned NaN"),
        (
            [np.inf, np.nan, np.nan],
            MODEL,
            "s002, s003 are not: .* too few to estimate the error variance: at least 2 .* fit had 1",
        ),
        ([np.inf, 0, -np.inf], MODEL, "s001, s003 are not: the values of column y are too large"),
        ([0, 0, np.nan], Forecaster(), r"s003 are not: .* too few to estimate the error variance\. Fit longer series"),
    ],
)
def test_the_series_of_one_cause_are_named(values: list[float], spread_of: Forecaster | None, words: str) -> None:
    with pytest.raises(DataError, match=words):
        check_finite(np.array(values)[:, None] + np.zeros(2), MODEL.state_, "Naive", spread_of)
