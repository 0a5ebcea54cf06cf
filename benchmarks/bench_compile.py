"""What the first use of each classical model costs: CPU seconds of the first fit and predict, kernels to be compiled.

    python benchmarks/bench_compile.py [MODEL ...]

Each model in two new processes on one thread, sharing a cache folder that is empty before the first: what that takes more
than the second one is compilation. And all models one after another in one folder: what the whole package takes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from beside_statsforecast import machine

FAMILIES = {
    "SES": "AutoETS", "Holt": "AutoETS", "HoltWinters": "AutoETS", "ETS": "AutoETS", "AutoETS": "AutoETS", "Theta": "Theta",
    "OptimizedTheta": "Theta", "DynamicTheta": "Theta", "AutoTheta": "Theta", "CES": "CES", "AutoCES": "CES", "ARIMA": "ARIMA",
    "AutoARIMA": "ARIMA", "MSTL": "MSTL", "Croston": "Croston", "TSB": "Croston", "ADIDA": "Croston", "IMAPA": "Croston",
}  # fmt: skip
ASKED = 10.0  # seconds, everything together
ONE = """
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
        more = {name: seconds(name, shared) for name in models}
        warm = {name: seconds(name, shared) for name in models}
    for name in models:
        with tempfile.TemporaryDirectory() as own:
            first, second = seconds(name, own), seconds(name, own)
        rows.append(f"| `{name}` | {first:.2f} | {second:.2f} | {first - second:.2f} | {max(more[name] - warm[name], 0):.2f} |")
        print(rows[-1], file=sys.stderr, flush=True)
    total = sum(max(more[name] - warm[name], 0) for name in models)
    lines = [
        "# The first use of a classical model",
        "",
        "CPU seconds of `fit` and `predict` of one series of 120 values: in a process with an empty cache folder, in the next",
        "one (numba itself is loaded there, too), and the difference, which is compilation; in the last column the same where",
        "the models use one folder one after another, from top to bottom.",
        "",
        "| model | first | second | compiled | compiled, those above used |",
        "|---|---|---|---|---|",
        *rows,
        f"| all | | | | {total:.2f} |",
        "",
        f"Asked for: {ASKED:g} s together. {machine(f'numba {version()}')}",
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "compile.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(total > ASKED)


def seconds(name: str, folder: str) -> float:
    """CPU seconds of a new process."""
    env = {**os.environ, "NUMBA_CACHE_DIR": folder, "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", ONE, name, FAMILIES.get(name, name)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env).stdout)


def version() -> str:
    """That of numba."""
    import numba

    return str(numba.__version__)


if __name__ == "__main__":
    sys.exit(main())
