from __future__ import annotations

import pytest

from deepforecast import LSTM, AutoETS, LightGBM, Naive
from deepforecast.core.params import declared_params
from deepforecast.core.registry import models
from deepforecast.core.synonyms import SYNONYMS
from deepforecast.errors import ParameterTypeError


@pytest.mark.parametrize(
    ("cls", "name", "hint"),
    [
        (LSTM, "h", "Use `horizon`"),
        (LSTM, "random_state", "Use `seed`"),
        (LSTM, "input_chunk_length", "Use `input_size`"),
        (LightGBM, "input_chunk_length", "Use `lags`"),
        (LightGBM, "feature_fraction", "Use `colsample_bytree`"),
        (LSTM, "n_estimators", "`LightGBM`, `XGBoost`, `CatBoost` and `GradientBoosting` have it"),
        (AutoETS, "interval_width", "Pass `level=80` to `predict`"),
        (LSTM, "hist_exog_list", r"fit\(frame, columns=\{'past': \[\.\.\.\]\}\)"),
        (AutoETS, "holidays", "`Prophet`, `NeuralProphet` and the regression models have it"),
        (Naive, "random_state", "deterministic"),
        (LSTM, "max_epoch", "Use `max_epochs`"),
        (LSTM, "hiden_size", "Did you mean hidden_size"),
    ],
)
def test_names_of_other_libraries_are_translated(cls: type, name: str, hint: str) -> None:
    with pytest.raises(ParameterTypeError, match=f"{cls.__name__} has no parameter .*{name}.*{hint}"):
        cls(**{name: 1})


def test_every_synonym_is_a_parameter_of_a_model_or_advice() -> None:
    known = {name for cls in models() for name in declared_params(cls)}
    for library, names in SYNONYMS.items():
        for name, targets in names.items():
            assert all(target in known or " " in target for target in targets), (library, name)


