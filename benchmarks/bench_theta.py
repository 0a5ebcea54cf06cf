"""AutoTheta beside statsforecast's on monthly series of M4: CPU seconds, errors, loss in the sample.

    python benchmarks/bench_theta.py [--series 1000] [--rounds 3]

Needs the data folder (DEEPFORECAST_DATA). Timed are `fit` and `predict` of all series as a frame (ours), and of one after
another as an array (theirs). The loss is theirs: the logarithm of the sum of squared errors from the fourth on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from beside_smoothing import HORIZON, NEEDED, SEASON, beside

from deepforecast import AutoTheta
from deepforecast.models.statistical import _line_smoothing

MODELS = {
    "AutoTheta": AutoTheta(horizon=HORIZON, season_length=SEASON),
    "AutoTheta, by their loss": AutoTheta(horizon=HORIZON, season_length=SEASON, objective="squares", criterion="mse"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rows, ratio, versions = beside("theta", MODELS, losses, given.series, given.rounds)
    lines = [
        "# AutoTheta beside statsforecast's",
        "",
        f"{given.series:,} monthly series of M4 with 120 to 300 values, {HORIZON} months ahead; one run, models taking turns.",
        "",
        "| | CPU µs a series | times | sMAPE | MASE | log loss beside theirs | higher in |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        versions,
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "theta.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(ratio < NEEDED)


def losses(model: Any) -> np.ndarray:
    """Of each series, the logarithm of the sum of squared errors from the fourth of the adjusted values, over their mean."""
    learned = model.state_.learned
    panel, known = learned.history, learned.by_series
    x = _line_smoothing._deseasonalize(panel, known)
    centre = np.repeat(known["centre"], panel.lengths)
    names = ("start", "alpha", "weight", "dynamic")
    fitted, _ = _line_smoothing._kernel().filtered(x - centre, panel.indptr, *(known[name] for name in names))
    errors, begin = np.square(x - centre - fitted), panel.indptr[:-1]
    errors[np.add.outer(begin, np.arange(3)).reshape(-1)] = 0.0
    return np.asarray(np.log(np.add.reduceat(errors, begin) * panel.lengths / np.add.reduceat(np.abs(x), begin)))


if __name__ == "__main__":
    sys.exit(main())
