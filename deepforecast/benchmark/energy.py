"""Energy consumption of the CPU packages from RAPL counters, which usually only root may read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

COUNTERS_PATH = Path("/sys/class/powercap")


@dataclass(frozen=True)
class EnergyMeter:
    """Measures the energy used since `start`.

    Parameters
    ----------
    start_counts : tuple of (Path, int)
        Folder and initial counter value in microjoules of each CPU package; empty if no
        counter can be read.
    """

    start_counts: tuple[tuple[Path, int], ...] = ()

    @classmethod
    def start(cls, enabled: bool = True, counters: Path = COUNTERS_PATH) -> EnergyMeter:
        """Start a meter.

        Parameters
        ----------
        enabled : bool, default True
            Pass False if jobs run in parallel: the energy cannot be attributed to one of them.
        counters : Path, default /sys/class/powercap
            Folder of the RAPL counters.
        """
        folders = sorted(counters.glob("intel-rapl:[0-9]*")) if enabled else []
        packages = [folder for folder in folders if folder.name.count(":") == 1]
        read = [(folder, _read_counter(folder / "energy_uj")) for folder in packages]
        return cls(tuple((folder, value) for folder, value in read if value is not None))

    def joules(self) -> float | None:
        """Return the energy since the start in joules, or None if unknown.

        Counters that overflowed once are corrected by their range.
        """
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
