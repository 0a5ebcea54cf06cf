"""What the harness adds to a job: seconds beside fit, forecast and metrics, of short jobs and of one long one.

    python benchmarks/bench_harness.py [--steps 600]

Short jobs are all baselines on a small panel. The long one trains a network; the same fit is done here, without the harness,
turn by turn, and CPU seconds are compared. Asked for: 0.3 s of a short job, 5 % of one of a minute and more.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time

from beside_neural import write

from deepforecast.benchmark.data import prepare
from deepforecast.benchmark.engine import Run, run
from deepforecast.benchmark.job import build
from deepforecast.benchmark.suite import suite_of
from deepforecast.evaluation.compare import run as run_model

BASELINES = ["Naive", "SeasonalNaive", "Mean", "Drift", "WindowMean", "SeasonalMean", "Naive2"]
MADE = {"task": "made", "generate": {"n_series": 20, "length": 200, "freq": "D"}, "horizon": 14, "season_length": 7}
QUIET = Run(progress=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        short = run(suite_of({"suite": "short", "models": BASELINES, "tasks": [MADE]}, "short"), folder, options=QUIET)
    beside = [row.job_seconds - row.fit_seconds - row.predict_seconds - row.score_seconds for row in short]
    cpu = [row.job_cpu - row.fit_cpu - row.predict_cpu - row.score_cpu for row in short]
    model = {"model": "LSTM", "parameters": {"max_steps": given.steps}}
    suite = suite_of({"suite": "long", "models": [model], "tasks": [MADE], "time_limit": 3600}, "long")
    ratios, bare, shares = [], [], []
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            (row,) = run(suite, folder, options=QUIET)
        bare.append(alone(suite))
        ratios.append(row.job_cpu / bare[-1])
        shares.append(row.job_cpu / (row.fit_cpu + row.predict_cpu + row.score_cpu))
    lines = [
        "# What the benchmark harness adds to a job",
        "",
        "| job | measured | asked |",
        "|---|---|---|",
        f"| {len(short)} baselines: wall s beside fit, forecast, metrics | {statistics.median(beside):.3f} "
        f"(most {max(beside):.3f}) | 0.3 |",
        f"| the same: CPU s | {statistics.median(cpu):.3f} (most {max(cpu):.3f}) | |",
        f"| LSTM, {given.steps} steps, {statistics.median(bare):.1f} CPU s alone: CPU s in a job over those alone | "
        f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}) | 1.05 |",
        f"| the same, over the CPU s of its own fit, forecast and metrics | {statistics.median(shares):.3f} | 1.05 |",
        "",
        f"Medians; {given.rounds} rounds of the long job, metrics counted with it. Wall seconds hang on what else the machine "
        f"does: {short[0].machine['jobs']}.",
        "",
        f"python benchmarks/bench_harness.py --steps {given.steps} --rounds {given.rounds}",
    ]
    write("harness", lines, False)
    return 0


def alone(suite: object) -> float:
    """CPU seconds of the same model on the same panel, fitted and forecast here."""
    task = suite.tasks[0]
    prepared = prepare(task)
    model = build(suite.entries(task)[0], task, 7).clone(horizon=task.horizon)
    started = time.process_time()
    found = run_model(model, prepared.panel, prepared.plan, "auto", (), seed=0)
    assert not found.error, found.error
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
