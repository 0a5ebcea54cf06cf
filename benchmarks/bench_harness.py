"""Overhead of the benchmark harness: CPU seconds outside of fit, forecast and metrics, per job and per run.

    python benchmarks/bench_harness.py [--steps 150]

The overhead includes the calling process, the server, the rehearsal and the rest of the jobs. Runs with different
numbers of jobs and different durations give the overhead per job, per second of a job (the server checks its
limits) and per run. Required: at most 0.3 s for a short job, and 5 % for jobs of a minute or more.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile

from common_neural import write

from deepforecast.benchmark.job_results import Row
from deepforecast.benchmark.suite import parse_suite
from deepforecast.benchmark.suite_run import RunOptions, run_suite

BASELINES = ["Naive", "SeasonalNaive", "Mean", "Drift", "WindowMean", "SeasonalMean", "Naive2"]
LONG_JOB, MAX_OVERHEAD, MAX_OVERHEAD_SHARE = 60.0, 0.3, 0.05


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150)
    args = parser.parse_args()
    few_rows, few_overhead = run_and_measure(BASELINES, tasks=2)
    many_rows, many_overhead = run_and_measure(BASELINES, tasks=6)
    job_overhead = (many_overhead - few_overhead) / (len(many_rows) - len(few_rows))
    wall_overheads = [row.job_seconds - row.fit_seconds - row.predict_seconds - row.score_seconds for row in many_rows]

    def network(steps: int, seeds: int) -> tuple[list[Row], float]:
        return run_and_measure([{"model": "LSTM", "parameters": {"max_steps": steps}}], seeds=seeds)

    _, one_seed_overhead = network(args.steps, 1)
    three_seed_rows, three_seed_overhead = network(args.steps, 3)
    long_rows, long_overhead = network(4 * args.steps, 3)
    short_cpu, long_cpu = (statistics.mean(map(own_cpu, rows)) for rows in (three_seed_rows, long_rows))
    overhead_per_job = (three_seed_overhead - one_seed_overhead) / 2
    overhead_per_second = (long_overhead - three_seed_overhead) / 3 / (long_cpu - short_cpu)
    long_job_overhead = overhead_per_job + overhead_per_second * (LONG_JOB - short_cpu)
    lines = [
        "# Overhead of the benchmark harness",
        "",
        "| | measured | required |",
        "|---|---|---|",
        f"| short job ({len(BASELINES)} baselines): CPU s outside of fit, forecast, metrics | {job_overhead:.3f} | "
        f"{MAX_OVERHEAD} |",
        f"| the same: wall-clock s | {statistics.median(wall_overheads):.3f} (at most {max(wall_overheads):.3f}) | "
        f"{MAX_OVERHEAD} |",
        f"| LSTM, {args.steps} steps, {short_cpu:.1f} CPU s of work: overhead per job, CPU s | {overhead_per_job:.2f} | |",
        f"| LSTM, {4 * args.steps} steps, {long_cpu:.1f} CPU s of work: overhead per further second of work | "
        f"{overhead_per_second:.4f} | |",
        f"| extrapolated to a job of {LONG_JOB:.0f} s: overhead, CPU s | "
        f"{long_job_overhead:.2f} = {long_job_overhead / LONG_JOB:.1%} | "
        f"{MAX_OVERHEAD_SHARE:.0%} |",
        f"| once per run of networks (start, imports, rehearsal): CPU s | {one_seed_overhead - overhead_per_job:.1f} | |",
        "",
        "No job of a minute was run: its figure follows from the two rows above it. Wall-clock seconds depend on the load of "
        f"the machine: {many_rows[0].machine['jobs']}.",
        "",
        f"python benchmarks/bench_harness.py --steps {args.steps}",
    ]
    write("harness", lines, False)
    return int(job_overhead > MAX_OVERHEAD or long_job_overhead / LONG_JOB > MAX_OVERHEAD_SHARE)


def run_and_measure(models: list[object], *, tasks: int = 1, seeds: int = 1) -> tuple[list[Row], float]:
    """The rows of a run, and the CPU seconds of all its processes outside of fit, forecast and metrics."""
    generated_tasks = [
        {"task": f"made-{seed}", "generate": {"n_series": 20, "length": 200, "seed": seed}, "horizon": 14, "season_length": 7}
        for seed in range(tasks)
    ]
    fields = {"suite": "s", "models": models, "tasks": generated_tasks, "seeds": list(range(seeds)), "time_limit": 3600}
    suite = parse_suite(fields, "s")
    with tempfile.TemporaryDirectory() as folder:
        cpu_before = total_cpu()
        rows = run_suite(suite, folder, options=RunOptions(progress=False))
        cpu_seconds = total_cpu() - cpu_before
    assert all(row.status == "ok" for row in rows), rows
    return rows, cpu_seconds - sum(map(own_cpu, rows))


def own_cpu(row: Row) -> float:
    """CPU seconds of fit, forecast and metrics of a job."""
    return float(row.fit_cpu + row.predict_cpu + row.score_cpu)


def total_cpu() -> float:
    """CPU seconds of this process and of its ended child processes."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    sys.exit(main())
