"""`Prophet` beside the package `prophet` 1.5: what both make least, and the forecasts (tests/golden/prophet.json)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.models.prophet.parity import CASES, forecast_of, frame_of

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "prophet.json").read_text(encoding="utf-8"))["cases"]


def expect_parity(name: str) -> None:
    frame, future = frame_of(name)
    assert frame is not None
    model, forecast = forecast_of(CASES[name], frame, future)
    learned, theirs = model.state_.learned, GOLDEN[name]
    wanted = np.array(theirs["forecast"])
    assert learned["scale"][0] == pytest.approx(theirs["scale"], rel=1e-6)
    assert learned["objective"][0] <= theirs["theirs"] + 1e-6
    assert learned["objective"][0] >= theirs["theirs"] - 0.002 * abs(theirs["theirs"]) - 0.5  # or the design is another
    away = np.abs(forecast["Prophet"].to_numpy() - wanted).max()
    assert away <= CASES[name].close * np.abs(wanted).mean()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.bundled])
def test_parity(name: str) -> None:
    expect_parity(name)


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.bundled])
def test_parity_on_the_data_folder(name: str, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPFORECAST_DATA", str(data_folder))
    expect_parity(name)


def test_every_case_has_its_numbers() -> None:
    assert set(GOLDEN) == set(CASES)
