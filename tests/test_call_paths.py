"""Limits of the functions and files that one call enters, by family of models: to be lowered."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import deepforecast
from tests.call_paths import functions_entered

pytestmark = pytest.mark.skipif(pd.__version__ < "3", reason="the limits are those with pandas 3")

LIGHT: dict[str, Any] = {"max_steps": 2}
CALLS = {  # family and call -> model, parameters, most functions, most files
    "baselines fit": ("SeasonalNaive", {}, 27, 12),
    "baselines predict": ("SeasonalNaive", {}, 23, 12),
    "statistical fit": ("AutoETS", {}, 140, 44),
    "statistical predict": ("AutoETS", {}, 38, 20),
    "regression fit": ("LightGBM", {}, 229, 46),
    "regression predict": ("LightGBM", {}, 80, 26),
    "prophet fit": ("Prophet", {}, 106, 26),
    "prophet predict": ("Prophet", {}, 48, 17),
    "neural fit": ("LSTM", LIGHT, 218, 42),
    "neural predict": ("LSTM", LIGHT, 70, 26),
}


def panel(n_series: int = 3, length: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=length, freq="D")
    season = 10 * np.sin(np.arange(length) * 2 * np.pi / 7)
    parts = [
        pd.DataFrame(
            {"unique_id": f"s{i}", "ds": days, "y": 50 + i + season + rng.normal(size=length)}
        )
        for i in range(n_series)
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("call", CALLS)
def test_functions_and_files_of_a_call(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, parameters, most_functions, most_files = CALLS[call]
    model, new, frame = (
        *(getattr(deepforecast, name)(horizon=7, **parameters) for _ in range(2)),
        panel(),
    )
    if name != "LightGBM":  # once loaded, its threads are limited in the fit of any model
        monkeypatch.delitem(sys.modules, "lightgbm.basic", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame).predict()  # imports and compilation are not on the path
        functions = functions_entered(
            model.predict if call.endswith("predict") else lambda: new.fit(frame)
        )
    files = {function.file for function in functions}
    report = "\n".join(f"{function.name}  [{function.file}]" for function in functions)
    assert len(functions) <= most_functions, f"{len(functions)} functions:\n{report}"
    assert len(files) <= most_files, f"{len(files)} files:\n" + "\n".join(sorted(files))


def test_named_functions_are_counted_once() -> None:
    model = deepforecast.Naive(horizon=2).fit(panel(1, 20))
    functions = functions_entered(lambda: (model.predict(), model.predict()))
    assert [function.name for function in functions].count("Forecaster.predict") == 1
    assert not [function for function in functions if "<" in function.name.rpartition(".")[2]]
    assert functions_entered(lambda: len("abc")) == []
