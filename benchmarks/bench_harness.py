"""What the harness takes beside the work of its jobs: CPU seconds of owner, server, rehearsal and jobs outside fit, forecast
and metrics, per job and once a run.

    python benchmarks/bench_harness.py [--steps 150]

Runs of the same jobs differ in how many there are, and in how long they take; from the differences follows what one more job
costs, what one more second of a job costs (the server looks at its clock and memory), and what a run costs once. Asked for:
0.3 s of a short job, 5 % of one of a minute and more.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile

from beside_neural import write

from deepforecast.benchmark.job_results import Row
from deepforecast.benchmark.suite import parse_suite
from deepforecast.benchmark.suite_run import RunOptions, run_suite

BASELINES = ["Naive", "SeasonalNaive", "Mean", "Drift", "WindowMean", "SeasonalMean", "Naive2"]
MINUTE, SHORT, SHARE = 60.0, 0.3, 0.05


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150)
    given = parser.parse_args()
    few, outside_few = measured(BASELINES, tasks=2)
    many, outside_many = measured(BASELINES, tasks=6)
    each = (outside_many - outside_few) / (len(many) - len(few))
    beside = [row.job_seconds - row.fit_seconds - row.predict_seconds - row.score_seconds for row in many]

    def network(steps: int, seeds: int) -> tuple[list[Row], float]:
        return measured([{"model": "LSTM", "parameters": {"max_steps": steps}}], seeds=seeds)

    _, outside_one = network(given.steps, 1)
    two, outside_two = network(given.steps, 3)
    longer, outside_longer = network(4 * given.steps, 3)
    brief, long = (statistics.mean(map(inside, rows)) for rows in (two, longer))
    a_job = (outside_two - outside_one) / 2
    a_second = (outside_longer - outside_two) / 3 / (long - brief)
    of_a_minute = a_job + a_second * (MINUTE - brief)
    lines = [
        "# What the benchmark harness takes beside its jobs",
        "",
        "| | measured | asked |",
        "|---|---|---|",
        f"| a short job ({len(BASELINES)} baselines): CPU s outside fit, forecast, metrics | {each:.3f} | {SHORT} |",
        f"| the same: wall s | {statistics.median(beside):.3f} (most {max(beside):.3f}) | {SHORT} |",
        f"| LSTM, {given.steps} steps, {brief:.1f} CPU s inside: CPU s outside, one more job | {a_job:.2f} | |",
        f"| LSTM, {4 * given.steps} steps, {long:.1f} CPU s inside: CPU s outside for each further second inside | "
        f"{a_second:.4f} | |",
        f"| extrapolated to a job of {MINUTE:.0f} s: CPU s outside | {of_a_minute:.2f} = {of_a_minute / MINUTE:.1%} | "
        f"{SHARE:.0%} |",
        f"| once a run of networks (start, imports, rehearsal): CPU s | {outside_one - a_job:.1f} | |",
        "",
        "No job of a minute was run: its figure follows from the two lines above it. Wall seconds hang on what else the "
        f"machine does: {many[0].machine['jobs']}.",
        "",
        f"python benchmarks/bench_harness.py --steps {given.steps}",
    ]
    write("harness", lines, False)
    return int(each > SHORT or of_a_minute / MINUTE > SHARE)


def measured(models: list[object], *, tasks: int = 1, seeds: int = 1) -> tuple[list[Row], float]:
    """The rows of a run, and the CPU seconds of all its processes outside fit, forecast and metrics."""
    made = [
        {"task": f"made-{seed}", "generate": {"n_series": 20, "length": 200, "seed": seed}, "horizon": 14, "season_length": 7}
        for seed in range(tasks)
    ]
    suite = parse_suite({"suite": "s", "models": models, "tasks": made, "seeds": list(range(seeds)), "time_limit": 3600}, "s")
    with tempfile.TemporaryDirectory() as folder:
        before = cpu()
        rows = run_suite(suite, folder, options=RunOptions(progress=False))
        spent = cpu() - before
    assert all(row.status == "ok" for row in rows), rows
    return rows, spent - sum(map(inside, rows))


def inside(row: Row) -> float:
    """CPU seconds of a job's own work."""
    return float(row.fit_cpu + row.predict_cpu + row.score_cpu)


def cpu() -> float:
    """Of this process and of those it and they have waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    sys.exit(main())
