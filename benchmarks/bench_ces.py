"""AutoCES beside statsforecast's on monthly series of M4: CPU seconds, errors, AICc.

    python benchmarks/bench_ces.py [--series 1000] [--rounds 3]

Needs the data folder (DEEPFORECAST_DATA). Timed are `fit` and `predict` of all series as a frame (ours), and of one after
another as an array (theirs). The AICc is theirs, with n log(sum of squares) for the likelihood.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from beside_smoothing import HORIZON, NEEDED, SEASON, beside

from deepforecast import AutoCES
from deepforecast.models.statistical._complex_smoothing import PARAMETERS

MODELS = {"AutoCES": AutoCES(horizon=HORIZON, season_length=SEASON)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rows, ratio, versions = beside("ces", MODELS, losses, given.series, given.rounds)
    lines = [
        "# AutoCES beside statsforecast's",
        "",
        f"{given.series:,} monthly series of M4 with 120 to 300 values, {HORIZON} months ahead; one run, models taking turns.",
        "",
        "| | CPU µs a series | times | sMAPE | MASE | AICc beside theirs | higher in |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        versions,
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "ces.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(ratio < NEEDED)


def losses(model: Any) -> np.ndarray:
    """The AICc of each series."""
    learned = model.state_.learned
    panel = learned.history
    squares = np.add.reduceat(np.square(panel.y - model._fitted(learned, panel)), panel.indptr[:-1])
    number, count = PARAMETERS[learned["form"]] + 1, panel.lengths
    return np.asarray(count * np.log(squares) + 2 * number + 2 * number * (number + 1) / (count - number - 1))


if __name__ == "__main__":
    sys.exit(main())
