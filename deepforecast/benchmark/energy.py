"""Energy of the processor package over a stretch of time, where the system lets it be read (RAPL; mostly root's to read)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

COUNTERS = Path("/sys/class/powercap")


@dataclass(frozen=True)
class Meter:
    """What the counters of all packages stood at, in microjoules; empty where there are none."""

    began: tuple[tuple[Path, int], ...] = ()

    @classmethod
    def start(cls, wanted: bool = True, counters: Path = COUNTERS) -> Meter:
        """A meter from now on; with jobs side by side nobody could tell whose the energy is."""
        folders = sorted(counters.glob("intel-rapl:[0-9]*")) if wanted else []
        packages = [folder for folder in folders if folder.name.count(":") == 1]
        read = [(folder, _number(folder / "energy_uj")) for folder in packages]
        return cls(tuple((folder, value) for folder, value in read if value is not None))

    def joules(self) -> float | None:
        """Since the start; None where it cannot be known. A counter that began anew meanwhile is counted on."""
        total = 0
        for folder, before in self.began:
            now, most = _number(folder / "energy_uj"), _number(folder / "max_energy_range_uj")
            if now is None or (now < before and most is None):
                return None
            total += now - before if now >= before else now - before + (most or 0)
        return total / 1e6 if self.began else None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
