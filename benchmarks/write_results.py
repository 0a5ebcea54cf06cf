"""A run of a suite as a page of benchmarks/results: python benchmarks/write_results.py RUN... [--command "..."] [--note "..."]

Everything on the page comes from the rows of the run and from anchors that are published elsewhere, which are marked so.
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
# Of the published figures those of a model that is here too, and how near the two have to be (DLinear and NLinear: a share).
SAME = {"Naive2": "Naive2", "Repeat": "Naive", "DLinear": "DLinear", "NLinear": "NLinear"}
WITHIN = {"Naive2": 0.0005, "Repeat": 0.013, "DLinear": 0.01, "NLinear": 0.01}
SHARES = ("DLinear", "NLinear")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="+", help="folders of runs of one suite")
    parser.add_argument("--command", action="append", default=[], help="how the run was made")
    parser.add_argument("--note", action="append", default=[], help="what else is to be said of it")
    given = parser.parse_args()
    rows = list({row.job: row for run in reversed(given.run) for row in read_rows(run)}.values())  # the first run's rows count
    suite = load_run_suite(given.run[0])
    if not rows:
        print("this run has no rows yet", file=sys.stderr)
        return 1
    lines = page(suite, rows, given.command, given.note)
    path = RESULTS / f"suite_{suite.suite.replace('-', '_')}.md"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print("\n".join(lines))
    return 0


def page(suite: Suite, rows: list[Row], commands: list[str], notes: list[str]) -> list[str]:
    """The whole page."""
    name = suite.suite
    there = {metric for row in rows for metric in row.metrics}
    metric = next((one for task in suite.tasks for one in task.metrics if one in there), None)
    first, cut = rows[0], left_out(rows)
    dates = sorted(row.started for row in rows if row.started)
    lines = [f"# Suite {name}", "", f"{suite.what}.", ""]
    lines += ["```", *commands, "```", ""] if commands else []
    where = f"{first.machine.get('cores', '?')} cores, {first.machine.get('jobs', '?')}"
    lines += [f"- {dates[0][:16]} to {dates[-1][:16]} UTC; {where}."]
    lines += [f"- Cut: {'; '.join(cut)}." if cut else "- Nothing was cut."]
    lines += [f"- {note}" for note in notes]
    known = ("python", "deepforecast", "numpy", "torch")
    versions = ", ".join(f"{key} {first.versions[key]}" for key in known if key in first.versions)
    lines += [f"- {versions}. Seconds are CPU seconds, of a machine that others use too."]
    lines += ["", *leaderboard(rows, metric, suite.reference), *tables(rows), *costs(rows), *beside(rows)]
    return [*lines, *grown(name, rows), *wrong(rows)]


def left_out(rows: list[Row]) -> list[str]:
    """What was cut; of a run in several calls what each left out, as many rows as it left."""
    if len({tuple(row.cut) for row in rows}) == 1:
        return list(rows[0].cut)
    counts = Counter(tuple(row.cut) for row in rows)
    return [f"{pluralize(count, 'job')} of a call of ({', '.join(cut)})" for cut, count in counts.items()]


def leaderboard(rows: list[Row], metric: str | None, reference: str) -> list[str]:
    """Skill and wins, where there are several tasks."""
    if len({row.task for row in rows if row.status == "ok"}) < 2:
        return []
    found = summarize(rows, metric=metric, reference=reference)
    lines = [f"By {found.metric}; skill: 1 less the geometric mean of the ratios to {reference} (95 % interval over tasks)."]
    lines += ["", "| model | mean rank | skill | wins | tasks | fit, s | forecast, s |", "|---|---|---|---|---|---|---|"]
    for one in found.table.to_dict("records"):
        span = f" ({one['skill-low']:.3f} to {one['skill-high']:.3f})" if one["skill-low"] == one["skill-low"] else ""
        skill = "-" if one["skill"] != one["skill"] else f"{one['skill']:.3f}{span}"
        rank = "-" if one["rank"] != one["rank"] else f"{one['rank']:.2f}"
        if not one["tasks"]:
            continue
        own = [row for row in rows if row.model == one["model"] and row.status == "ok"]
        spent = [sum(getattr(row, key) or 0.0 for row in own) for key in ("fit_cpu", "predict_cpu")]
        cells = [one["model"], rank, skill, f"{one['wins']:.2f}", one["tasks"], f"{spent[0]:.2f}", f"{spent[1]:.2f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    if found.friedman_test is not None:
        told = found.friedman_test
        lines += [
            "",
            f"Friedman p = {told.p_value:.2g}, {told.n_datasets} tasks; critical difference {told.critical_difference:.2f}.",
        ]
    return [*lines, ""]


def tables(rows: list[Row]) -> list[str]:
    """A table a metric, tasks across, the best in bold."""
    lines: list[str] = []
    for metric in dict.fromkeys(name for row in rows for name in row.metrics):
        means = mean_over_seeds(rows, metric)
        wide = means.pivot(index="model", columns="task", values="mean")
        wide = wide.reindex(columns=dict.fromkeys(means["task"]), index=dict.fromkeys(means["model"]))
        seeds = int(means["seeds"].max())
        lines += [f"## {metric}" + (f", mean of {seeds} seeds" if seeds > 1 else ""), ""]
        lines += [f"| model | {' | '.join(wide.columns)} |", "|---" * (len(wide.columns) + 1) + "|"]
        best = {} if metric.startswith(("coverage", "bias")) else wide.min()
        for model, values in wide.iterrows():
            cells = [
                "-" if value != value else f"**{value:.4f}**" if len(best) and value == best[task] else f"{value:.4f}"
                for task, value in values.items()
            ]
            lines.append(f"| {model} | {' | '.join(cells)} |")
        lines.append("")
    return lines


def costs(rows: list[Row]) -> list[str]:
    """CPU seconds of fit and forecast and memory of every job, and what the harness took beside them."""
    good = [row for row in rows if row.status == "ok"]
    tasks = list(dict.fromkeys(row.task for row in good))
    lines = ["## CPU seconds of fit + forecast (peak MB)", "", f"| model | {' | '.join(tasks)} |"]
    lines += ["|---" * (len(tasks) + 1) + "|"]
    for model in dict.fromkeys(row.model for row in good):
        cells = []
        for task in tasks:
            own = [row for row in good if row.model == model and row.task == task]
            seconds = [(row.fit_cpu or 0.0) + (row.predict_cpu or 0.0) for row in own]
            memory = max((row.peak_mb or 0.0 for row in own), default=0.0)
            cells.append(f"{sum(seconds) / len(own):.3f} ({memory:.0f})" if own else "-")
        lines.append(f"| {model} | {' | '.join(cells)} |")
    ours = [row for row in good if row.score_cpu and row.library == OWN_LIBRARY]
    spent = [row.job_cpu - row.fit_cpu - row.predict_cpu - row.score_cpu for row in ours]
    if spent:
        lines += ["", f"Beside fit, forecast and metrics a job of ours took {statistics.median(spent):.2f} CPU s (median)."]
    return [*lines, ""]


def beside(rows: list[Row]) -> list[str]:
    """Published figures of the same task and model beside ours, and whether they agree."""
    lines: list[str] = []
    for task, dataset, horizon in dict.fromkeys((row.task, row.dataset, row.horizon) for row in rows if row.status == "ok"):
        for one in find_published(dataset, horizon=horizon):
            model = SAME.get(one.model, "")
            means = mean_over_seeds([row for row in rows if row.task == task and row.model == model], one.metric)
            if len(means) and not (one.model in SHARES and "-back-96" in task):  # theirs look back 336 rows
                value = float(means["mean"].iloc[0])
                near = WITHIN[one.model] * (one.value if one.model in SHARES else 1.0)
                good = "yes" if abs(value - one.value) <= near + 1e-9 else "**no**"
                cells = [task, model, one.metric, f"{value:.4f}", one.value, f"{near:.2g}", good, one.source]
                lines.append(f"| {' | '.join(map(str, cells))} |")
    if not lines:
        return []
    head = ["## Beside published figures", "", "| task | model | metric | here | published | within | agrees | source |"]
    head += ["|---" * 8 + "|"]
    ratios: dict[str, list[str]] = {}
    for (task, model), value in owa(rows).items():
        ratios.setdefault(model, []).append(f"{task} {value:.4f}")
    return [*head, *lines, "", *(f"- OWA of {model}: {', '.join(cells)}." for model, cells in ratios.items()), ""]


def grown(name: str, rows: list[Row]) -> list[str]:
    """Slopes of the suite that asks for them."""
    if name != "scaling":
        return []
    lines = ["## Slopes (1: proportional)", "", "| model | of | along | slope | points |", "|---|---|---|---|---|"]
    found = cost_slopes(rows).itertuples()
    return [*lines, *(f"| {one.model} | {one.cost} | {one.size} | {one.slope:.2f} | {one.points} |" for one in found), ""]


def wrong(rows: list[Row]) -> list[str]:
    """What did not run, or not to its end."""
    bad = group_failures(rows)
    if not bad:
        return ["Every job ran."]
    lines = ["## What did not run, or failed", "", "| model | status | told |", "|---|---|---|"]
    return lines + [f"| {who} | {row.status} | {row.error[:160].replace('|', '/')} |" for who, row in bad]


if __name__ == "__main__":
    sys.exit(main())
