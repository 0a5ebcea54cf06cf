"""Model files of every release are loaded for ever, and forecast what they did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import deepforecast

FOLDER = Path(__file__).parents[1] / "golden" / "models"
FILES = sorted(FOLDER.glob("*/*.dfc"))


def test_this_release_is_there_and_every_file_has_its_forecast() -> None:
    assert FOLDER / deepforecast.__version__ in {path.parent for path in FILES}
    assert {path.with_suffix(".json") for path in FILES} == set(FOLDER.glob("*/*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_saved_model_of_each_release_gives_its_recorded_forecast(path: Path) -> None:
    said = json.loads(path.with_suffix(".json").read_text("utf-8"))
    model = deepforecast.load(path)
    assert repr(model) == said["repr"]
    found: Any = model.predict(level=80)
    assert type(found).__module__.partition(".")[0] == said["library"]
    found = found if isinstance(found, pd.DataFrame) else found.to_pandas()
    assert list(found.columns) == list(said["forecast"])
    for name, texts in said["forecast"].items():
        if found[name].dtype == float:
            wanted = [float.fromhex(text) for text in texts]
            np.testing.assert_allclose(found[name], wanted, rtol=1e-12)
        else:
            assert [str(value) for value in found[name]] == texts
