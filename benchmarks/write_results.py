"""A run of a suite as a page of benchmarks/results: python benchmarks/write_results.py RUN [--command "..."] [--note "..."]

Everything on the page comes from the rows of the run and from anchors that are published elsewhere, which are marked so.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from deepforecast.benchmark.rows import Row, read
from deepforecast.benchmark.summary import over_seeds, owa, slopes, suite_of_run, summarise

RESULTS = Path(__file__).parent / "results"
# Cells that anyone can look up, by (suite, model, metric): what they have to be within of ours, and the source.
M4 = 'Mcompetitions/M4-methods, "Evaluation and Ranks.xlsx"'
ZENG = "Zeng et al. (2023), Are Transformers effective for time series forecasting?, table 2"
TASKS = ("yearly", "quarterly", "monthly", "weekly", "daily", "hourly")
PUBLISHED: list[tuple[str, str, str, dict[str, float], float, str]] = [
    ("m4-full", "Naive2", "smape", dict(zip(TASKS, (16.342, 11.012, 14.427, 9.161, 3.045, 18.383), strict=True)), 5e-4, M4),
    ("m4-full", "Naive2", "mase", dict(zip(TASKS, (3.974, 1.371, 1.063, 2.777, 3.278, 2.395), strict=True)), 5e-4, M4),
    ("ltsf", "Naive", "mse", {"etth1-96": 1.295, "etth1-192": 1.325, "etth1-336": 1.323, "etth1-720": 1.339}, 0.013, ZENG),
    ("ltsf", "Naive", "mae", {"etth1-96": 0.713, "etth1-192": 0.733, "etth1-336": 0.744, "etth1-720": 0.756}, 0.013, ZENG),
    ("ltsf", "Naive", "mse", {"ettm2-96": 0.266, "ettm2-192": 0.340, "ettm2-336": 0.412, "ettm2-720": 0.521}, 0.013, ZENG),
    ("ltsf", "Naive", "mse", {"exchange_rate-96": 0.081, "exchange_rate-192": 0.167, "exchange_rate-336": 0.305,
                              "exchange_rate-720": 0.823}, 0.013, ZENG),
    ("ltsf", "DLinear", "mse", {"etth1-96-back-336": 0.375}, 0.00375, ZENG),
    ("ltsf", "NLinear", "mse", {"etth1-96-back-336": 0.374}, 0.00374, ZENG),
]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("--command", default="", help="how the run was made")
    parser.add_argument("--note", action="append", default=[], help="what else is to be said of it")
    given = parser.parse_args()
    rows = read(given.run)
    suite = suite_of_run(given.run)
    lines = page(suite.suite, suite.what, suite.reference, rows, given.command, given.note)
    path = RESULTS / f"suite_{suite.suite.replace('-', '_')}.md"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print("\n".join(lines))
    return 0


def page(name: str, what: str, reference: str, rows: list[Row], command: str, notes: list[str]) -> list[str]:
    """The whole page."""
    first, cut = rows[0], list(dict.fromkeys(one for row in rows for one in row.cut))
    dates = sorted(row.started for row in rows if row.started)
    lines = [f"# Suite {name}", "", f"{what}.", ""]
    lines += [f"`{command}`", ""] if command else []
    where = f"{first.machine.get('cores', '?')} cores, {first.machine.get('jobs', '?')}"
    lines += [f"- {dates[0][:16]} to {dates[-1][:16]} UTC; {where}."]
    lines += [f"- Cut: {'; '.join(cut)}." if cut else "- Nothing was cut."]
    lines += [f"- {note}" for note in notes]
    known = ("python", "deepforecast", "numpy", "torch")
    versions = ", ".join(f"{key} {first.versions[key]}" for key in known if key in first.versions)
    lines += [f"- {versions}. Seconds are CPU seconds, of a machine that others use too."]
    lines += ["", *leaderboard(rows, reference), *tables(rows), *beside(name, rows), *grown(name, rows), *wrong(rows)]
    return lines


def leaderboard(rows: list[Row], reference: str) -> list[str]:
    """Skill and wins, where there are several tasks."""
    if len({row.task for row in rows if row.status == "ok"}) < 2:
        return []
    found = summarise(rows, reference=reference)
    lines = [f"By {found.metric}; skill: 1 less the geometric mean of the ratios to {reference} (95 % interval over tasks)."]
    lines += ["", "| model | mean rank | skill | wins | tasks | fit, s | forecast, s |", "|---|---|---|---|---|---|---|"]
    for one in found.table.to_dict("records"):
        span = f" ({one['skill-low']:.3f} to {one['skill-high']:.3f})" if one["skill-low"] == one["skill-low"] else ""
        skill = "-" if one["skill"] != one["skill"] else f"{one['skill']:.3f}{span}"
        rank = "-" if one["rank"] != one["rank"] else f"{one['rank']:.2f}"
        own = [row for row in rows if row.model == one["model"] and row.status == "ok"]
        spent = [sum(getattr(row, key) or 0.0 for row in own) for key in ("fit_cpu", "predict_cpu")]
        cells = [one["model"], rank, skill, f"{one['wins']:.2f}", one["tasks"], f"{spent[0]:.2f}", f"{spent[1]:.2f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    if found.comparison is not None:
        told = found.comparison
        lines += ["", f"Friedman p = {told.p_value:.2g}, {told.datasets} tasks; critical difference {told.difference:.2f}."]
    return [*lines, ""]


def tables(rows: list[Row]) -> list[str]:
    """A table a metric, tasks across, the best in bold."""
    lines: list[str] = []
    for metric in dict.fromkeys(name for row in rows for name in row.metrics):
        means = over_seeds(rows, metric)
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


def beside(name: str, rows: list[Row]) -> list[str]:
    """Published figures beside ours, and whether they agree."""
    lines: list[str] = []
    for suite, model, metric, cells, within, source in PUBLISHED:
        means = over_seeds(rows, metric).set_index(["task", "model"])["mean"].to_dict() if suite == name else {}
        for task, wanted in cells.items():
            for (own, of), value in means.items():
                if of == model and (own == task or own.startswith(f"{task}-back") or own == f"m4_{task}"):
                    good = "yes" if abs(value - wanted) <= within + 1e-9 else "**no**"
                    lines.append(f"| {own} | {model} | {metric} | {value:.4f} | {wanted} | {within:g} | {good} | {source} |")
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
    found = slopes(rows).itertuples()
    return [*lines, *(f"| {one.model} | {one.cost} | {one.size} | {one.slope:.2f} | {one.points} |" for one in found), ""]


def wrong(rows: list[Row]) -> list[str]:
    """What did not run, or not to its end."""
    bad = [row for row in rows if row.status != "ok"]
    if not bad:
        return ["Every job ran."]
    lines = ["## What did not run, or failed", "", "| model | task | status | told |", "|---|---|---|---|"]
    return lines + [f"| {row.model} | {row.task} | {row.status} | {row.error[:160].replace('|', '/')} |" for row in bad]


if __name__ == "__main__":
    sys.exit(main())
