"""Compilation times of the classical models: CPU seconds of the first fit and predict on a machine.

    python benchmarks/bench_compile.py [MODEL ...]

Each model runs in two new processes on one thread, with a cache folder that is empty before the first; the
difference is the compilation time. The same is measured for all models one after the other with one cache
folder, which gives the total of the package.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common_statsforecast import describe_machine

FAMILIES = {
    "SES": "AutoETS", "Holt": "AutoETS", "HoltWinters": "AutoETS", "ETS": "AutoETS", "AutoETS": "AutoETS", "Theta": "Theta",
    "OptimizedTheta": "Theta", "DynamicTheta": "Theta", "AutoTheta": "Theta", "CES": "CES", "AutoCES": "CES", "ARIMA": "ARIMA",
    "AutoARIMA": "ARIMA", "MSTL": "MSTL", "Croston": "Croston", "TSB": "Croston", "ADIDA": "Croston", "IMAPA": "Croston",
}  # fmt: skip
MAX_SECONDS = 10.0  # total of all models
SCRIPT = """
import sys, time
import numpy as np, pandas as pd
import deepforecast

n, random = 120, np.random.default_rng(0)
y = 100 + 10 * np.sin(np.arange(n) * np.pi / 6) + random.normal(size=n)
y = np.where(random.random(n) < 0.3, random.integers(1, 9, n), 0.0) if sys.argv[2] == "Croston" else y
frame = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2000-01-01", periods=n, freq="MS"), "y": y})
model = getattr(deepforecast, sys.argv[1])(horizon=12)
start = time.process_time()
model.fit(frame).predict(level=80)
print(time.process_time() - start)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(FAMILIES))
    models = parser.parse_args().models
    rows = []
    with tempfile.TemporaryDirectory() as shared:
        shared_first = {name: seconds(name, shared) for name in models}
        shared_second = {name: seconds(name, shared) for name in models}
    for name in models:
        with tempfile.TemporaryDirectory() as folder:
            first, second = seconds(name, folder), seconds(name, folder)
        shared_seconds = max(shared_first[name] - shared_second[name], 0)
        rows.append(f"| `{name}` | {first:.2f} | {second:.2f} | {first - second:.2f} | {shared_seconds:.2f} |")
        print(rows[-1], file=sys.stderr, flush=True)
    total = sum(max(shared_first[name] - shared_second[name], 0) for name in models)
    lines = [
        "# Compilation times of classical models",
        "",
        "CPU seconds of `fit` and `predict` of one series of 120 values: in a process with an empty cache folder, in a second",
        "process (which also imports numba), and the difference, which is the compilation time; in the last column, the same",
        "with one cache folder for all models, from top to bottom.",
        "",
        "| model | first | second | compilation | compilation, shared cache |",
        "|---|---|---|---|---|",
        *rows,
        f"| all | | | | {total:.2f} |",
        "",
        f"Required: at most {MAX_SECONDS:g} s in total. {describe_machine(f'numba {numba_version()}')}",
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "compile.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(total > MAX_SECONDS)


def seconds(name: str, folder: str) -> float:
    """CPU seconds of fit and predict in a new process."""
    env = {**os.environ, "NUMBA_CACHE_DIR": folder, "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, name, FAMILIES.get(name, name)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env).stdout)


def numba_version() -> str:
    import numba

    return str(numba.__version__)


if __name__ == "__main__":
    sys.exit(main())
