"""A column of weights is no feature, whatever its role, and asks for nothing that only features need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import LinearModel
from deepforecast.errors import DataError, ParameterError
from tests.models.regression.promoted import walks

GIVEN: dict[str, Any] = {"season_length": 7, "weight": "counts"}


def weighted(rows: int = 60) -> pd.DataFrame:
    frame = walks(2, rows)
    return frame.assign(counts=1.0 + frame.index % 4)


def test_known_ahead_or_not_it_gives_the_same() -> None:
    frame = weighted()
    past = LinearModel(horizon=3, **GIVEN).fit(frame, columns={"past": ["counts"]})
    future = LinearModel(horizon=3, **GIVEN).fit(frame, columns={"future": ["counts"]})
    ahead = future.future_frame().assign(counts=1.0)
    pd.testing.assert_frame_equal(past.predict(), future.predict(future=ahead))
    np.testing.assert_allclose(
        future.explain(future=ahead).groupby(["unique_id", "ds"])["value"].sum(), past.predict()["LinearModel"], rtol=1e-10
    )
    assert not future.importance()["feature"].str.contains("counts").any()


def test_rows_around_a_step_leave_it_out_too() -> None:
    frame = weighted()
    early = frame.groupby("unique_id").head(55)
    model = LinearModel(horizon=3, future_rows=[-1, 0], **GIVEN).fit(early, columns={"future": ["counts"]})
    model.update(frame.groupby("unique_id").tail(5))
    assert np.isfinite(model.predict(future=model.future_frame().assign(counts=1.0))["LinearModel"]).all()


def test_a_model_that_goes_step_by_step_needs_no_horizon_for_it() -> None:
    found = LinearModel(**GIVEN).fit(weighted(), columns={"past": ["counts"]}).predict(2)
    assert len(found) == 4


def test_what_is_no_weight_is_refused() -> None:
    frame = weighted()
    with pytest.raises(ParameterError, match="weight= names a declared column"):
        LinearModel(horizon=2, season_length=7, weight="else").fit(frame, columns={"past": ["counts"]})
    for wrong in (-1.0, np.nan):
        bad = frame.assign(counts=frame["counts"].where(frame.index != 7, wrong))
        with pytest.raises(DataError, match=r"counts.*s0|missing"):
            LinearModel(horizon=2, **GIVEN).fit(bad, columns={"past": ["counts"]})
