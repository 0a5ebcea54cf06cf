"""A short series is refused with what is needed and what is there, or forecast near where it is."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import AutoARIMA, AutoCES, AutoETS, AutoTheta, Croston
from deepforecast.errors import DataError

VALUES = np.array([101.0, 102.5, 100.7, 101.6, 102.9, 101.2, 100.9, 102.0])


@pytest.mark.parametrize("length", range(1, len(VALUES) + 1))
@pytest.mark.parametrize("model", [AutoARIMA, AutoCES, AutoETS, AutoTheta, Croston], ids=lambda one: one.__name__)
def test_short_series_is_refused_or_forecast_near_its_values(model: Any, length: int) -> None:
    frame = pd.DataFrame({"unique_id": "A", "ds": np.arange(length), "y": VALUES[:length]})
    own = {} if model is Croston else {"season_length": 1}
    try:
        found = model(horizon=3, **own).fit(frame, freq=1).predict()[model.__name__]
    except DataError as error:
        refused = str(error)
    else:
        assert found.between(95, 109).all(), found
        return
    assert re.search(rf"requires at least \d+ .*series A has {length}\b", refused), refused
    assert length < 6
