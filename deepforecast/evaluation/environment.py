"""Versions of libraries and a description of the machine, without host or user names."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = (
    "numpy", "pandas", "polars", "pyarrow", "scipy", "scikit-learn", "statsmodels", "numba", "torch", "pytorch-lightning",
    "lightgbm", "xgboost", "catboost",
)  # fmt: skip
CPU_INFO = Path("/proc/cpuinfo")
MEMORY_INFO = Path("/proc/meminfo")


def describe_environment() -> dict[str, dict[str, str]]:
    """`versions` of Python, this library and other installed libraries, and the `machine`.

    >>> sorted(describe_environment())
    ['machine', 'versions']
    """
    return {"versions": _versions(), "machine": _machine()}


def _versions() -> dict[str, str]:
    """Versions of Python, this library and the installed ones of `LIBRARIES`."""
    import deepforecast

    own_versions = {"python": platform.python_version(), "deepforecast": deepforecast.__version__}
    versions = {name: version_of(name) for name in LIBRARIES}
    return own_versions | {name: version for name, version in versions.items() if version is not None}


def version_of(package: str) -> str | None:
    """The version of a package or else of its CPU build (`xgboost-cpu`); None if neither is
    installed.

    >>> version_of("no-such-package") is None
    True
    """
    for name in (package, f"{package}-cpu"):
        with suppress(PackageNotFoundError):
            return version(name)
    return None


def _machine() -> dict[str, str]:
    """The operating system, architecture, processor, cores and memory, as far as known."""
    from deepforecast.core.threads import available_cpus

    machine = {"system": f"{platform.system()} {platform.release()}", "architecture": platform.machine()}
    processor = _read_field(CPU_INFO, "model name") or platform.processor()
    if processor:
        machine["processor"] = processor
    machine["cores"] = f"{available_cpus()} usable of {os.cpu_count()}"
    memory = _read_field(MEMORY_INFO, "MemTotal")
    if memory is not None:
        machine["memory"] = f"{int(memory.split()[0]) / 2**20:.0f} GiB"
    return machine


def _read_field(path: Path, name: str) -> str | None:
    """The value of the line `name: value`."""
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
