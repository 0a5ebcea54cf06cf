from __future__ import annotations

from pathlib import Path

import pytest

from deepforecast.benchmark.energy import EnergyMeter


def counter(folder: Path, name: str, value: int) -> Path:
    place = folder / name
    place.mkdir(exist_ok=True)
    (place / "energy_uj").write_text(f"{value}\n")
    (place / "max_energy_range_uj").write_text("10000000\n")
    return place


def test_packages_are_added_and_their_parts_not_counted_twice(tmp_path: Path) -> None:
    for name in ("intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"):
        counter(tmp_path, name, 1_000_000)
    meter = EnergyMeter.start(counters=tmp_path)
    for name in ("intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"):
        counter(tmp_path, name, 3_500_000)
    assert meter.joules() == 5.0


def test_a_counter_that_began_anew_is_counted_on(tmp_path: Path) -> None:
    counter(tmp_path, "intel-rapl:0", 9_000_000)
    meter = EnergyMeter.start(counters=tmp_path)
    counter(tmp_path, "intel-rapl:0", 500_000)
    assert meter.joules() == pytest.approx(1.5)


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    assert EnergyMeter.start(counters=tmp_path / "nowhere").joules() is None
    place = counter(tmp_path, "intel-rapl:0", 1)
    assert EnergyMeter.start(False, counters=tmp_path).joules() is None
    meter = EnergyMeter.start(counters=tmp_path)
    (place / "energy_uj").write_text("no number")
    assert meter.joules() is None
