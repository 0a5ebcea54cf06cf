"""Write a run of a suite as a page of benchmarks/results.

    python benchmarks/write_results.py RUN... [--command "..."] [--note "..."]

The page is computed from the rows of the run, and from published results, which are marked as such.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from pathlib import Path

from deepforecast.benchmark.job_results import OWN_LIBRARY, Row, read_rows
from deepforecast.benchmark.published_results import find_published
from deepforecast.benchmark.run_folder import load_run_suite
from deepforecast.benchmark.suite import Suite
from deepforecast.benchmark.summary import cost_slopes, group_failures, mean_over_seeds, owa, summarize
from deepforecast.errors import pluralize

RESULTS = Path(__file__).parent / "results"
# Models of published results with their names here, and largest allowed differences (DLinear and NLinear: relative).
MODEL_NAMES = {"Naive2": "Naive2", "Repeat": "Naive", "DLinear": "DLinear", "NLinear": "NLinear"}
TOLERANCES = {"Naive2": 0.0005, "Repeat": 0.013, "DLinear": 0.01, "NLinear": 0.01}
RELATIVE_TOLERANCE_MODELS = ("DLinear", "NLinear")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="+", help="folders of runs of one suite")
    parser.add_argument("--command", action="append", default=[], help="command of the run, shown on the page")
    parser.add_argument("--note", action="append", default=[], help="remark to show on the page")
    args = parser.parse_args()
    rows_by_job = {row.job: row for run in reversed(args.run) for row in read_rows(run)}  # the first run takes precedence
    rows = list(rows_by_job.values())
    suite = load_run_suite(args.run[0])
    if not rows:
        print("a run must have at least one row, got none", file=sys.stderr)
        return 1
    lines = page(suite, rows, args.command, args.note)
    path = RESULTS / f"suite_{suite.suite.replace('-', '_')}.md"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print("\n".join(lines))
    return 0


def page(suite: Suite, rows: list[Row], commands: list[str], notes: list[str]) -> list[str]:
    """Return the page."""
    name = suite.suite
    available = {metric for row in rows for metric in row.metrics}
    metric = next((candidate for task in suite.tasks for candidate in task.metrics if candidate in available), None)
    first_row, subset = rows[0], restrictions(rows)
    dates = sorted(row.started for row in rows if row.started)
    lines = [f"# Suite {name}", "", f"{suite.what}.", ""]
    lines += ["```", *commands, "```", ""] if commands else []
    machine = f"{first_row.machine.get('cores', '?')} cores, {first_row.machine.get('jobs', '?')}"
    lines += [f"- {dates[0][:16]} to {dates[-1][:16]} UTC; {machine}."]
    lines += [f"- Subset: {'; '.join(subset)}." if subset else "- Full suite."]
    lines += [f"- {note}" for note in notes]
    packages = ("python", "deepforecast", "numpy", "torch")
    versions = ", ".join(f"{key} {first_row.versions[key]}" for key in packages if key in first_row.versions)
    lines += [f"- {versions}. Seconds are CPU seconds on a machine under load."]
    lines += ["", *leaderboard(rows, metric, suite.reference), *tables(rows), *costs(rows), *published_comparison(rows)]
    return [*lines, *slopes(name, rows), *failures(rows)]


def restrictions(rows: list[Row]) -> list[str]:
    """Return the restrictions of the run; for several calls, those of each with its number of jobs."""
    if len({tuple(row.cut) for row in rows}) == 1:
        return list(rows[0].cut)
    counts = Counter(tuple(row.cut) for row in rows)
    return [f"{pluralize(count, 'job')} with ({', '.join(cut)})" for cut, count in counts.items()]


def leaderboard(rows: list[Row], metric: str | None, reference: str) -> list[str]:
    """Return the table of ranks, skill and wins; empty for a single task."""
    if len({row.task for row in rows if row.status == "ok"}) < 2:
        return []
    summary = summarize(rows, metric=metric, reference=reference)
    lines = [
        f"Ranked by {summary.metric}; skill: 1 minus the geometric mean of the errors relative to {reference} (95 % "
        "interval over tasks)."
    ]
    lines += ["", "| model | mean rank | skill | wins | tasks | fit, s | forecast, s |", "|---|---|---|---|---|---|---|"]
    for model_row in summary.table.to_dict("records"):
        low, high = model_row["skill-low"], model_row["skill-high"]
        interval = f" ({low:.3f} to {high:.3f})" if low == low else ""
        skill = "-" if model_row["skill"] != model_row["skill"] else f"{model_row['skill']:.3f}{interval}"
        rank = "-" if model_row["rank"] != model_row["rank"] else f"{model_row['rank']:.2f}"
        if not model_row["tasks"]:
            continue
        model_rows = [row for row in rows if row.model == model_row["model"] and row.status == "ok"]
        seconds = [sum(getattr(row, key) or 0.0 for row in model_rows) for key in ("fit_cpu", "predict_cpu")]
        cells = [model_row["model"], rank, skill, f"{model_row['wins']:.2f}", model_row["tasks"]]
        cells += [f"{seconds[0]:.2f}", f"{seconds[1]:.2f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    if summary.friedman_test is not None:
        friedman = summary.friedman_test
        lines += [
            "",
            f"Friedman test: p = {friedman.p_value:.2g}, {friedman.n_datasets} tasks; critical difference "
            f"{friedman.critical_difference:.2f}.",
        ]
    return [*lines, ""]


def tables(rows: list[Row]) -> list[str]:
    """Return one table per metric with tasks as columns and the best values in bold."""
    lines: list[str] = []
    for metric in dict.fromkeys(name for row in rows for name in row.metrics):
        means = mean_over_seeds(rows, metric)
        table = means.pivot(index="model", columns="task", values="mean")
        table = table.reindex(columns=dict.fromkeys(means["task"]), index=dict.fromkeys(means["model"]))
        seeds = int(means["seeds"].max())
        lines += [f"## {metric}" + (f", mean of {seeds} seeds" if seeds > 1 else ""), ""]
        lines += [f"| model | {' | '.join(table.columns)} |", "|---" * (len(table.columns) + 1) + "|"]
        best = {} if metric.startswith(("coverage", "bias")) else table.min()
        for model, values in table.iterrows():
            cells = [
                "-" if value != value else f"**{value:.4f}**" if len(best) and value == best[task] else f"{value:.4f}"
                for task, value in values.items()
            ]
            lines.append(f"| {model} | {' | '.join(cells)} |")
        lines.append("")
    return lines


def costs(rows: list[Row]) -> list[str]:
    """Return the table of CPU seconds and memory of the jobs, and the overhead of the harness."""
    successful = [row for row in rows if row.status == "ok"]
    tasks = list(dict.fromkeys(row.task for row in successful))
    lines = ["## CPU seconds of fit + forecast (peak MB)", "", f"| model | {' | '.join(tasks)} |"]
    lines += ["|---" * (len(tasks) + 1) + "|"]
    for model in dict.fromkeys(row.model for row in successful):
        cells = []
        for task in tasks:
            job_rows = [row for row in successful if row.model == model and row.task == task]
            seconds = [(row.fit_cpu or 0.0) + (row.predict_cpu or 0.0) for row in job_rows]
            memory = max((row.peak_mb or 0.0 for row in job_rows), default=0.0)
            cells.append(f"{sum(seconds) / len(job_rows):.3f} ({memory:.0f})" if job_rows else "-")
        lines.append(f"| {model} | {' | '.join(cells)} |")
    scored_rows = [row for row in successful if row.score_cpu and row.library == OWN_LIBRARY]
    overheads = [row.job_cpu - row.fit_cpu - row.predict_cpu - row.score_cpu for row in scored_rows]
    if overheads:
        lines += ["", f"Overhead of a job beyond fit, forecast and metrics: {statistics.median(overheads):.2f} CPU s (median)."]
    return [*lines, ""]


def published_comparison(rows: list[Row]) -> list[str]:
    """Return the comparison with published results of the same tasks and models."""
    lines: list[str] = []
    for task, dataset, horizon in dict.fromkeys((row.task, row.dataset, row.horizon) for row in rows if row.status == "ok"):
        for published in find_published(dataset, horizon=horizon):
            model = MODEL_NAMES.get(published.model, "")
            means = mean_over_seeds([row for row in rows if row.task == task and row.model == model], published.metric)
            is_relative = published.model in RELATIVE_TOLERANCE_MODELS
            if len(means) and not (is_relative and "-back-96" in task):  # these are published for an input of 336 rows
                value = float(means["mean"].iloc[0])
                tolerance = TOLERANCES[published.model] * (published.value if is_relative else 1.0)
                agrees = "yes" if abs(value - published.value) <= tolerance + 1e-9 else "**no**"
                cells = [task, model, published.metric, f"{value:.4f}", published.value, f"{tolerance:.2g}", agrees]
                cells.append(published.source)
                lines.append(f"| {' | '.join(map(str, cells))} |")
    if not lines:
        return []
    header = ["## Comparison with published results", ""]
    header += ["| task | model | metric | value | published | tolerance | agrees | source |", "|---" * 8 + "|"]
    ratios: dict[str, list[str]] = {}
    for (task, model), value in owa(rows).items():
        ratios.setdefault(model, []).append(f"{task} {value:.4f}")
    return [*header, *lines, "", *(f"- OWA of {model}: {', '.join(cells)}." for model, cells in ratios.items()), ""]


def slopes(name: str, rows: list[Row]) -> list[str]:
    """Return the slopes of time and memory for the suite "scaling"."""
    if name != "scaling":
        return []
    lines = ["## Slopes (1: proportional)", "", "| model | cost | size | slope | points |", "|---|---|---|---|---|"]
    lines += [
        f"| {slope.model} | {slope.cost} | {slope.size} | {slope.slope:.2f} | {slope.points} |"
        for slope in cost_slopes(rows).itertuples()
    ]
    return [*lines, ""]


def failures(rows: list[Row]) -> list[str]:
    """Return the table of jobs without a result."""
    groups = group_failures(rows)
    if not groups:
        return ["All jobs have results."]
    lines = ["## Jobs without a result", "", "| model | status | error |", "|---|---|---|"]
    return lines + [f"| {jobs} | {row.status} | {row.error[:160].replace('|', '/')} |" for jobs, row in groups]


if __name__ == "__main__":
    sys.exit(main())
