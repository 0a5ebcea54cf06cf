"""Show the installation: versions, CPUs, threads, GPUs, data folders and caches.

The exit code is 1 if a required package is missing."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from deepforecast.cli.outcome import Outcome
from deepforecast.cli.parser import Parser

USAGE = "[options]"
EPILOG = "examples:\n  deepforecast doctor --json"
REQUIRED = (
    "numpy", "pandas", "narwhals", "pyarrow", "scipy", "joblib", "threadpoolctl", "safetensors", "matplotlib", "tqdm",
    "statsmodels", "scikit-learn", "numba", "optuna", "torch", "pytorch-lightning", "pyyaml",
)  # fmt: skip
OPTIONAL = ("polars", "plotly", "skops", "lightgbm", "xgboost", "catboost", "holidays", "ray", "dask")
MISSING = "missing"
GPU_SECONDS = 30
GPU_SCRIPT = """
import json, torch
names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
mps = bool(getattr(torch.backends, "mps", None) and torch.backends.mps.is_available())
print(json.dumps({"cuda": names, "built for": torch.version.cuda or torch.version.hip or "CPU only", "mps": mps}))
"""


def add_arguments(parser: Parser, arguments: Sequence[str]) -> None:
    """Add the options of the command."""
    parser.add_argument("--no-gpu", action="store_true", help="skip the search for GPUs (torch takes a few seconds to load)")


def run(values: argparse.Namespace) -> Outcome:
    """Collect the facts about the installation."""
    from deepforecast import datasets
    from deepforecast.core import threads

    packages = {name: _version(name) for name in REQUIRED}
    facts: dict[str, Any] = {
        "deepforecast": _installation(),
        "packages": packages,
        "optional packages": {name: _version(name) for name in OPTIONAL},
        "threads": threads.status(),
        "gpu": {"torch": "not checked (--no-gpu)"} if values.no_gpu else _gpu(packages["torch"]),
        "data": {folder: "found" if exists else "not found" for folder, exists in datasets.where()},
        "caches": _caches(),
    }
    missing = [name for name, version in packages.items() if version == MISSING]
    return Outcome(facts, _text(facts, missing), status=1 if missing else 0)


def _installation() -> dict[str, str]:
    """Version and folder of the package, Python and the operating system."""
    import platform
    import sys
    from pathlib import Path

    import deepforecast

    return {
        "version": deepforecast.__version__,
        "folder": str(Path(deepforecast.__file__).parent),
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": platform.platform(),
    }


def _version(package: str) -> str:
    from deepforecast.evaluation.environment import version_of

    return version_of(package) or MISSING


def _gpu(torch: str) -> dict[str, str]:
    """Query torch for GPUs in a subprocess, since a broken driver may hang or crash it."""
    import json
    import subprocess
    import sys

    if torch == MISSING:
        return {"torch": "not checked: torch is missing"}
    try:
        process = subprocess.run(
            [sys.executable, "-c", GPU_SCRIPT],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GPU_SECONDS,
            check=False,
        )
        report = json.loads(process.stdout)
    except subprocess.TimeoutExpired:
        return {"torch": f"not checked: torch did not respond within {GPU_SECONDS} s"}
    except ValueError:
        lines = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
        return {"torch": f"check failed: {lines[-1]}"}
    devices = ", ".join(report["cuda"]) or ("Apple's (mps)" if report["mps"] else "none")
    return {"torch": f"{torch}, built for {report['built for']}", "devices": devices}


def _caches() -> dict[str, str]:
    """Return the cache folders and whether they are writable."""
    import os
    import tempfile

    import matplotlib

    caches = {"temporary files": _folder_state(tempfile.gettempdir()), "matplotlib": _folder_state(matplotlib.get_cachedir())}
    numba = os.environ.get("NUMBA_CACHE_DIR")
    return caches | {"numba": _folder_state(numba) if numba else "__pycache__ next to the compiled modules"}


def _folder_state(folder: str) -> str:
    import os

    return f"{folder} ({'writable' if os.access(folder, os.W_OK) else 'not writable'})"


def _text(facts: Mapping[str, Mapping[str, str]], missing: Sequence[str]) -> str:
    """The facts by section as an indented table, and the verdict on required packages (`missing`: names)."""
    from deepforecast.cli.streams import one_line, paint
    from deepforecast.cli.table import wrap_text

    lines: list[str] = []
    for section, entries in facts.items():
        lines += ["", paint(section, "bold")] if lines else [paint(section, "bold")]
        width = min(28, max(map(len, entries), default=0))
        for name, value in entries.items():
            lines += wrap_text(one_line(value), f"  {one_line(name):<{width}}  ", " " * (width + 4))
    verdict = (
        f"Required packages are missing: {', '.join(missing)}. Install them in this Python environment."
        if missing
        else "All required packages are installed."
    )
    return "\n".join([*lines, "", paint(verdict, "red" if missing else "green")])
