"""Which models are drawn, and which of their levels."""

from __future__ import annotations

import pandas as pd
import pytest

from deepforecast.errors import ParameterError
from deepforecast.plotting.frames import TidyFrame, open_frame
from deepforecast.plotting.model_selection import choose_levels, choose_models, find_models


def table(*columns: str) -> TidyFrame:
    frame = pd.DataFrame({"unique_id": ["a"], "ds": [1], **{name: [1.0] for name in columns}})
    keys = frame.assign(cutoff=0, step=1, sample=0, y=1.0, note="text", price=1.0)
    return open_frame(keys, "forecast", {"past": ["price"], "static": ["elsewhere"]})


def test_keys_target_covariates_and_text_are_no_models() -> None:
    assert list(find_models(table("A"))) == ["A"]
    assert [model.name for model in choose_models(table("A", "B"), "B")] == ["B"]


def test_half_a_band_is_none() -> None:
    assert find_models(table("N", "N-lo-80", "N-hi-80", "N-lo-50"))["N"].intervals == {80.0: ("N-lo-80", "N-hi-80")}


def test_levels_come_widest_first_and_one_model_with_it_is_enough() -> None:
    models = choose_models(table("A", "A-lo-80", "A-hi-80", "A-lo-95", "A-hi-95", "B"), None)
    assert choose_levels(models, None) == [95.0, 80.0]
    assert choose_levels(models, [80, 95, 80]) == [95, 80]
    with pytest.raises(ParameterError, match=r"levels of the forecasts \(95, 80\), got 90\. Pass level=90 to `predict`"):
        choose_levels(models, 90)
    with pytest.raises(ParameterError, match=r"levels of the forecasts \(none\)"):
        choose_levels(models[1:], 80)
