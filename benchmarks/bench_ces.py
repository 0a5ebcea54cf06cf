"""AutoCES compared with statsforecast on monthly series of M4: CPU seconds, errors, AICc.

    python benchmarks/bench_ces.py [--series 1000] [--rounds 3]

Requires the benchmark data (DEEPFORECAST_DATA). Timed are `fit` and `predict`: of all series in one frame
(deepforecast), or of one array after the other (statsforecast). The AICc is that of statsforecast, with
n log(sum of squares) as the likelihood.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from common_smoothing import HORIZON, MIN_SPEEDUP, SEASON, compare_with_peer

from deepforecast import AutoCES
from deepforecast.models.statistical._complex_smoothing import PARAMETERS

MODELS = {"AutoCES": AutoCES(horizon=HORIZON, season_length=SEASON)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rows, speedup, versions = compare_with_peer("ces", MODELS, losses, args.series, args.rounds)
    lines = [
        "# AutoCES compared with statsforecast",
        "",
        f"{args.series:,} monthly series of M4 with 120 to 300 values, horizon {HORIZON}; one run, models in turn.",
        "",
        "| | CPU µs per series | speedup | sMAPE | MASE | mean AICc difference | higher on |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        versions,
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "ces.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(speedup < MIN_SPEEDUP)


def losses(model: Any) -> np.ndarray:
    """The AICc of each series."""
    learned = model.state_.learned
    panel = learned.history
    squares = np.add.reduceat(np.square(panel.y - model._fitted(learned, panel)), panel.indptr[:-1])
    number, count = PARAMETERS[learned["form"]] + 1, panel.lengths
    return np.asarray(count * np.log(squares) + 2 * number + 2 * number * (number + 1) / (count - number - 1))


if __name__ == "__main__":
    sys.exit(main())
