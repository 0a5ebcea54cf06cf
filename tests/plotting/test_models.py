"""Which columns belong to which model."""

from __future__ import annotations

import pandas as pd
import pytest

from deepforecast.errors import ParameterError
from deepforecast.plotting.frames import Tidy, open_frame
from deepforecast.plotting.models import Model, choose_levels, choose_models, find_models


def table(*columns: str) -> Tidy:
    frame = pd.DataFrame({"unique_id": ["a"], "ds": [1], **{name: [1.0] for name in columns}})
    return open_frame(frame.assign(cutoff=0, y=1.0, note="text"), "forecast")


def test_points_bounds_and_quantiles_of_a_model_are_found() -> None:
    found = find_models(table("LSTM", "LSTM-lo-80", "LSTM-hi-80", "LSTM-lo-97.5", "LSTM-hi-97.5", "LSTM-q-0.1", "my-model"))
    assert found == {
        "LSTM": Model("LSTM", "LSTM", {80.0: ("LSTM-lo-80", "LSTM-hi-80"), 97.5: ("LSTM-lo-97.5", "LSTM-hi-97.5")}),
        "my-model": Model("my-model", "my-model", {}),
    }


def test_a_pair_of_quantiles_is_a_level_and_the_median_a_point() -> None:
    found = find_models(table("N-q-0.1", "N-q-0.9", "N-q-0.5", "N-q-0.025", "N-q-0.975", "N-q-0.3", "N-q-0.7", "N-q-0.2"))
    bands = {80.0: ("N-q-0.1", "N-q-0.9"), 95.0: ("N-q-0.025", "N-q-0.975"), 40.0: ("N-q-0.3", "N-q-0.7")}
    assert found == {"N": Model("N", "N-q-0.5", bands)}


def test_bounds_win_over_quantiles_and_half_a_band_is_none() -> None:
    found = find_models(table("N", "N-lo-80", "N-hi-80", "N-q-0.1", "N-q-0.9", "N-lo-50"))
    assert found["N"].bands == {80.0: ("N-lo-80", "N-hi-80")}


def test_keys_target_cutoff_and_text_are_no_models() -> None:
    assert list(find_models(table("A"))) == ["A"]
    assert [model.name for model in choose_models(table("A", "B"), "B")] == ["B"]


def test_levels_come_widest_first_and_one_model_with_it_is_enough() -> None:
    models = choose_models(table("A", "A-lo-80", "A-hi-80", "A-lo-95", "A-hi-95", "B"), None)
    assert choose_levels(models, None) == [95.0, 80.0]
    assert choose_levels(models, [80, 95, 80]) == [95, 80]
    with pytest.raises(ParameterError, match=r"90 is not among them. There are: 95, 80.*predict\(level=90\)"):
        choose_levels(models, 90)
    with pytest.raises(ParameterError, match="There are: none"):
        choose_levels(models[1:], 80)
