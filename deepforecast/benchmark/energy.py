"""Energy consumption of the CPU packages from RAPL counters, which usually only root may read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

COUNTERS_PATH = Path("/sys/class/powercap")


@dataclass(frozen=True)
class EnergyMeter:
    """Return the counters of all packages in microjoules; empty if there are none."""

    start_counts: tuple[tuple[Path, int], ...] = ()

    @classmethod
    def start(cls, enabled: bool = True, counters: Path = COUNTERS_PATH) -> EnergyMeter:
        """Start a meter; with parallel jobs the energy cannot be attributed to one of them."""
        folders = sorted(counters.glob("intel-rapl:[0-9]*")) if enabled else []
        packages = [folder for folder in folders if folder.name.count(":") == 1]
        read = [(folder, _read_counter(folder / "energy_uj")) for folder in packages]
        return cls(tuple((folder, value) for folder, value in read if value is not None))

    def joules(self) -> float | None:
        """Return the energy since the start, or None if unknown; counter overflow is handled."""
        total = 0
        for folder, start_count in self.start_counts:
            count, max_count = _read_counter(folder / "energy_uj"), _read_counter(folder / "max_energy_range_uj")
            if count is None or (count < start_count and max_count is None):
                return None
            total += count - start_count if count >= start_count else count - start_count + (max_count or 0)
        return total / 1e6 if self.start_counts else None


def _read_counter(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
