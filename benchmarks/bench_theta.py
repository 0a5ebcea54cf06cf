"""AutoTheta compared with statsforecast on monthly series of M4: CPU seconds, errors, in-sample loss.

    python benchmarks/bench_theta.py [--series 1000] [--rounds 3]

Requires the benchmark data (DEEPFORECAST_DATA). Timed are `fit` and `predict`: of all series in one frame
(deepforecast), or of one array after the other (statsforecast). The loss is that of statsforecast: the
logarithm of the sum of squared errors from the fourth one on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from common_smoothing import HORIZON, MIN_SPEEDUP, SEASON, compare_with_peer

from deepforecast import AutoTheta
from deepforecast.models.statistical import _line_smoothing

MODELS = {
    "AutoTheta": AutoTheta(horizon=HORIZON, season_length=SEASON),
    "AutoTheta, loss of statsforecast": AutoTheta(horizon=HORIZON, season_length=SEASON, objective="squares", criterion="mse"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rows, speedup, versions = compare_with_peer("theta", MODELS, losses, args.series, args.rounds)
    lines = [
        "# AutoTheta compared with statsforecast",
        "",
        f"{args.series:,} monthly series of M4 with 120 to 300 values, horizon {HORIZON}; one run, models in turn.",
        "",
        "| | CPU µs per series | speedup | sMAPE | MASE | mean log loss difference | higher on |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        versions,
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "theta.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(speedup < MIN_SPEEDUP)


def losses(model: Any) -> np.ndarray:
    """Log of the sum of squared errors from the fourth one on, divided by the mean absolute value, for each series.

    Both refer to seasonally adjusted values.
    """
    learned = model.state_.learned
    panel, parameters = learned.history, learned.by_series
    x = _line_smoothing._deseasonalize(panel, parameters)
    centre = np.repeat(parameters["centre"], panel.lengths)
    names = ("start", "alpha", "weight", "dynamic")
    fitted, _ = _line_smoothing._kernel().filter_series(x - centre, panel.indptr, *(parameters[name] for name in names))
    errors, begin = np.square(x - centre - fitted), panel.indptr[:-1]
    errors[np.add.outer(begin, np.arange(3)).reshape(-1)] = 0.0
    return np.asarray(np.log(np.add.reduceat(errors, begin) * panel.lengths / np.add.reduceat(np.abs(x), begin)))


if __name__ == "__main__":
    sys.exit(main())
