"""Frame to panel on 10,000,000 rows of 100,000 series, all checks included, beside what pandas needs for the core of it.

    python benchmarks/bench_panel.py [--rows 10000000] [--series 100000] [--repeats 5]

Every case is measured in turn with its peer, several times; the table shows medians and the ratio to the budget. Memory is the
peak beyond what stood before, in a process of its own. Writes benchmarks/results/panel.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deepforecast.data.panel import Panel

RESULTS = Path(__file__).parent / "results" / "panel.md"
MEMORY = ("sorted D", "sorted MS", "sorted B", "sorted W", "unsorted", "text", "unsorted text")


@dataclass
class Case:
    """A frame, what pandas does beside it, and the budget in seconds given pandas' own."""

    name: str
    frame: Any
    peer: Callable[[Any], Any]
    peer_name: str
    budget: Callable[[float], float]
    rule: str


def columns(rows: int, series: int, freq: str = "D") -> pd.DataFrame:
    """Sorted, integer ids."""
    length = rows // series
    stamps = pd.date_range("2000-01-03", periods=length, freq=freq).as_unit("ns").to_numpy()
    values = np.random.default_rng(0).normal(size=rows)
    return pd.DataFrame(
        {"unique_id": np.repeat(np.arange(series), length), "ds": np.tile(stamps, series), "y": values}, copy=False
    )


def with_text(frame: pd.DataFrame, dtype: Any = None) -> pd.DataFrame:
    """The same with ids such as s0001234."""
    names = pd.Series([f"s{number:07d}" for number in range(int(frame.unique_id.iloc[-1]) + 1)], dtype=dtype)
    return frame.assign(unique_id=names.to_numpy()[frame.unique_id] if dtype is object else names.take(frame.unique_id).array)


def with_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with the ids as categories."""
    names = [f"s{number:07d}" for number in range(int(frame.unique_id.iloc[-1]) + 1)]
    return frame.assign(unique_id=pd.Categorical.from_codes(frame.unique_id, names))


def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows in no order."""
    return frame.sample(frac=1, random_state=0)


def cases(rows: int, series: int) -> list[Callable[[], Case]]:
    """Built one by one: together they would not fit into a small machine."""
    sort: tuple[Any, ...] = (
        lambda f: f.sort_values(["unique_id", "ds"]),
        "sort_values",
        lambda s: 1.5 * s,
        "1.5 x sort_values",
    )
    factorize: tuple[Any, ...] = (
        lambda f: pd.factorize(f.unique_id), "factorize", lambda s: 1.5 * s + 0.4 * rows / 1e7, "1.5 x factorize + 0.4 s",
    )  # fmt: skip
    fixed: tuple[Any, ...] = (*factorize[:2], lambda s: 0.4 * rows / 1e7, "0.4 s")
    return [
        lambda: Case("integer ids, daily", columns(rows, series), *fixed),
        lambda: Case("integer ids, month starts", columns(rows, series, "MS"), *fixed),
        lambda: Case("integer ids, business days", columns(rows, series, "B"), *fixed),
        lambda: Case("integer ids, hourly", columns(rows, series, "h"), *fixed),
        lambda: Case("categories, daily", with_categories(columns(rows, series)), *fixed),
        lambda: Case("text ids, daily", with_text(columns(rows, series)), *factorize),
        lambda: Case("text ids as objects, daily", with_text(columns(rows, series), object), *factorize),
        lambda: Case("integer ids, unsorted", shuffled(columns(rows, series)), *sort),
        lambda: Case("integer ids, by date", columns(rows, series).sort_values("ds", kind="stable"), *sort),
        lambda: Case("text ids, unsorted", shuffled(with_text(columns(rows, series))), *sort),
    ]


def timed(act: Callable[[Any], Any], frame: Any) -> float:
    start = time.perf_counter()
    act(frame)
    return time.perf_counter() - start


def measured(case: Case, repeats: int) -> str:
    """A row of the table."""
    Panel.from_frame(columns(1000, 10))
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(timed(Panel.from_frame, case.frame))
        theirs.append(timed(case.peer, case.frame))
    own, peer = statistics.median(ours), statistics.median(theirs)
    budget = case.budget(peer)
    verdict = "yes" if own <= budget else "NO"
    cells = (case.name, f"{own:.3f}", f"{peer:.3f} ({case.peer_name})", f"{own / peer:.2f}", f"{budget:.3f} ({case.rule})")
    return f"| {' | '.join(cells)} | {own / budget:.2f} | {verdict} |"


def memory(kind: str, rows: int, series: int) -> str:
    """The peak beyond the frame itself, in bytes, and the frame's size: asked for in a process of its own."""
    frame = columns(rows, series, kind.split()[1] if kind.startswith("sorted") else "D")
    frame = with_text(frame) if "text" in kind else frame
    frame = shuffled(frame) if "unsorted" in kind else frame
    size = int(frame.memory_usage(index=False, deep=True).sum())
    Panel.from_frame(columns(1000, 10))
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark starts anew
    before = in_memory("VmRSS")
    panel = Panel.from_frame(frame)
    return f"{in_memory('VmHWM') - before} {size} {len(panel)}"


def in_memory(key: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024


def memory_row(kind: str, rows: int, series: int) -> str:
    command = [sys.executable, __file__, "--rows", str(rows), "--series", str(series), "--memory", kind]
    peak, size, _ = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    ratio = int(peak) / int(size)
    return (
        f"| {kind} | {int(peak) / 1e6:.0f} | {int(size) / 1e6:.0f} | {ratio:.2f} | 1.50 | {'yes' if ratio <= 1.5 else 'NO'} |"
    )


def about() -> str:
    """Where and with what this was measured."""
    import narwhals
    import pyarrow

    versions = f"Python {platform.python_version()}, numpy {np.__version__}, pandas {pd.__version__}"
    versions += f", pyarrow {pyarrow.__version__}, narwhals {narwhals.__version__}"
    cpu = next((line.partition(":")[2].strip() for line in cpu_lines() if line.startswith("model name")), platform.processor())
    return f"{date.today()}; {cpu}, {os.cpu_count()} cores; {versions}"


def cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--series", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.memory:
        print(memory(asked.memory, asked.rows, asked.series))
        return
    lines = [
        "# Frame to panel",
        "",
        about(),
        "",
        f"{asked.rows:,} rows, {asked.series:,} series; medians of {asked.repeats}, seconds.",
        "",
    ]
    lines += ["| frame | here | pandas | ratio | budget | of it | held |", "|---|---|---|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    for build in cases(asked.rows, asked.series):
        lines.append(measured(build(), asked.repeats))
        print(lines[-1], flush=True)
    if Path("/proc/self/clear_refs").exists():
        lines += ["", "| frame | peak beyond it, MB | three columns, MB | ratio | budget | held |", "|---|---|---|---|---|---|"]
        print("\n".join(lines[-3:]), flush=True)
        for kind in MEMORY:
            lines.append(memory_row(kind, asked.rows, asked.series))
            print(lines[-1], flush=True)
    if asked.rows == parser.get_default("rows"):
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text("\n".join([*lines, "", "`python benchmarks/bench_panel.py`", ""]), "utf-8")


if __name__ == "__main__":
    main()
