"""Conversion of a frame to a panel, with all checks, compared with the main operation in pandas.

    python benchmarks/bench_panel.py [--rows 10000000] [--series 100000] [--repeats 5]
    python benchmarks/bench_panel.py --base DIR

Each case alternates with its pandas operation (for polars and Arrow, on the same rows in pandas); the table shows medians
and the share of the budget. The memory is the peak beyond that before the conversion, in a separate process. Writes
benchmarks/results/panel.md. With --base, a checkout of another commit, both versions convert each case in turn, in new
processes, and benchmarks/results/panel_versions.md shows seconds and peak memory of both.
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
import pyarrow as pa

from deepforecast.data.panel import Panel

RESULTS = Path(__file__).parent / "results" / "panel.md"
MEMORY_CASES = ("sorted D", "sorted MS", "sorted B", "sorted W", "unsorted", "text", "unsorted text")


@dataclass
class Case:
    """A frame, a pandas operation for comparison, and the budget as a function of the seconds of pandas."""

    name: str
    frame: Any
    peer: Callable[[Any], Any]
    peer_name: str
    budget: Callable[[float], float]
    rule: str


def generate_frame(rows: int, series: int, freq: str = "D") -> pd.DataFrame:
    """A sorted frame with integer ids."""
    length = rows // series
    times = pd.date_range("2000-01-03", periods=length, freq=freq).as_unit("ns").to_numpy()
    values = np.random.default_rng(0).normal(size=rows)
    return pd.DataFrame(
        {"unique_id": np.repeat(np.arange(series), length), "ds": np.tile(times, series), "y": values}, copy=False
    )


def with_text(frame: pd.DataFrame, dtype: Any = None) -> pd.DataFrame:
    """The frame with text ids such as s0001234."""
    names = pd.Series([f"s{number:07d}" for number in range(int(frame.unique_id.iloc[-1]) + 1)], dtype=dtype)
    return frame.assign(unique_id=names.to_numpy()[frame.unique_id] if dtype is object else names.take(frame.unique_id).array)


def with_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with categorical ids."""
    names = [f"s{number:07d}" for number in range(int(frame.unique_id.iloc[-1]) + 1)]
    return frame.assign(unique_id=pd.Categorical.from_codes(frame.unique_id, names))


def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame in random order."""
    return frame.sample(frac=1, random_state=0)


class Stream:
    """An object with the Arrow C stream interface and no other, in batches of 122,880 rows, the row groups of DuckDB."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.batches = pa.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=122_880)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.batches[0].schema, self.batches)
        return reader.__arrow_c_stream__(requested_schema)


def converted(name: str, frame: pd.DataFrame, make: Callable[[pd.DataFrame], Any], budget: tuple[Any, ...]) -> Case:
    """A case of another library, whose peer works on the same rows in pandas."""
    peer, *rule = budget
    return Case(name, make(frame), lambda _: peer(frame), *rule)


def to_polars(frame: pd.DataFrame) -> Any:
    import polars as pl

    return pl.DataFrame(pa.Table.from_pandas(frame, preserve_index=False))


def cases(rows: int, series: int) -> list[Callable[[], Case]]:
    """Functions that build the cases, since all frames together need too much memory."""
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
        lambda: Case("integer ids, daily", generate_frame(rows, series), *fixed),
        lambda: Case("integer ids, month starts", generate_frame(rows, series, "MS"), *fixed),
        lambda: Case("integer ids, business days", generate_frame(rows, series, "B"), *fixed),
        lambda: Case("integer ids, hourly", generate_frame(rows, series, "h"), *fixed),
        lambda: Case("categories, daily", with_categories(generate_frame(rows, series)), *fixed),
        lambda: Case("text ids, daily", with_text(generate_frame(rows, series)), *factorize),
        lambda: Case("text ids as objects, daily", with_text(generate_frame(rows, series), object), *factorize),
        lambda: Case("integer ids, unsorted", shuffled(generate_frame(rows, series)), *sort),
        lambda: Case("integer ids, by date", generate_frame(rows, series).sort_values("ds", kind="stable"), *sort),
        lambda: Case("text ids, unsorted", shuffled(with_text(generate_frame(rows, series))), *sort),
        lambda: converted("polars, integer ids, daily", generate_frame(rows, series), to_polars, fixed),
        lambda: converted("polars, text ids, daily", with_text(generate_frame(rows, series)), to_polars, factorize),
        lambda: converted("Arrow stream, integer ids, daily", generate_frame(rows, series), Stream, fixed),
        lambda: converted("Arrow stream, text ids, daily", with_text(generate_frame(rows, series)), Stream, factorize),
        lambda: converted("Arrow stream, text ids, unsorted", shuffled(with_text(generate_frame(rows, series))), Stream, sort),
    ]


def timed(act: Callable[[Any], Any], frame: Any) -> float:
    start = time.perf_counter()
    act(frame)
    return time.perf_counter() - start


def measure(case: Case, repeats: int) -> str:
    """A row of the table."""
    Panel.from_frame(generate_frame(1000, 10))
    panel_seconds, pandas_seconds = [], []
    for _ in range(repeats):
        panel_seconds.append(timed(Panel.from_frame, case.frame))
        pandas_seconds.append(timed(case.peer, case.frame))
    panel_median, pandas_median = statistics.median(panel_seconds), statistics.median(pandas_seconds)
    budget = case.budget(pandas_median)
    verdict = "yes" if panel_median <= budget else "NO"
    pandas_cells = f"{pandas_median:.3f} ({case.peer_name}) | {panel_median / pandas_median:.2f}"
    budget_cells = f"{budget:.3f} ({case.rule}) | {panel_median / budget:.2f} | {verdict}"
    return f"| {case.name} | {panel_median:.3f} | {pandas_cells} | {budget_cells} |"


def memory(kind: str, rows: int, series: int) -> str:
    """Peak memory beyond the frame and size of the frame in bytes, and number of series; runs in a separate process."""
    frame = generate_frame(rows, series, kind.split()[1] if kind.startswith("sorted") else "D")
    frame = with_text(frame) if "text" in kind else frame
    frame = shuffled(frame) if "unsorted" in kind else frame
    size = int(frame.memory_usage(index=False, deep=True).sum())
    Panel.from_frame(generate_frame(1000, 10))
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak (VmHWM)
    before = process_memory("VmRSS")
    panel = Panel.from_frame(frame)
    return f"{process_memory('VmHWM') - before} {size} {len(panel)}"


def process_memory(key: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024


def memory_row(kind: str, rows: int, series: int) -> str:
    command = [sys.executable, __file__, "--rows", str(rows), "--series", str(series), "--memory", kind]
    peak, size, _ = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    ratio = int(peak) / int(size)
    return (
        f"| {kind} | {int(peak) / 1e6:.0f} | {int(size) / 1e6:.0f} | {ratio:.2f} | 1.50 | {'yes' if ratio <= 1.5 else 'NO'} |"
    )


def convert_case(index: int, rows: int, series: int, repeats: int) -> str:
    """Median seconds and peak memory beyond the frame, in MB, of one case; runs in a separate process."""
    case = cases(rows, series)[index]()
    Panel.from_frame(generate_frame(1000, 10))
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak (VmHWM)
    before = process_memory("VmRSS")
    seconds = [timed(Panel.from_frame, case.frame)]
    peak = process_memory("VmHWM") - before
    seconds += [timed(Panel.from_frame, case.frame) for _ in range(repeats - 1)]
    return f"{statistics.median(seconds)} {peak / 1e6}"


def compare_versions(base: Path, rows: int, series: int, repeats: int) -> list[str]:
    """A table of seconds and memory of the checkout `base` and of this one; "-" where `base` cannot convert the frame."""
    lines = ["| frame | base, s | now, s | ratio | base, MB | now, MB | ratio |", "|---" * 7 + "|"]
    print("\n".join(lines), flush=True)
    for index, build in enumerate(cases(1000, 10)):
        runs: dict[Path, list[tuple[float, float]]] = {base: [], Path(__file__).parents[1]: []}
        for _ in range(3):
            for checkout in runs:
                command = [sys.executable, __file__, "--rows", str(rows), "--series", str(series), "--repeats", str(repeats)]
                environment = os.environ | {"PYTHONPATH": str(checkout)}
                result = subprocess.run([*command, "--case", str(index)], capture_output=True, text=True, env=environment)
                if result.returncode == 0:
                    seconds, peak = map(float, result.stdout.split())
                    runs[checkout].append((seconds, peak))
        (old_s, old_mb), (new_s, new_mb) = (
            [statistics.median(values) for values in zip(*run, strict=True)] if run else [float("nan")] * 2 for run in runs.values()
        )
        times = f"{old_s:.3f} | {new_s:.3f} | {new_s / old_s:.2f}"
        lines.append(f"| {build().name} | {times} | {old_mb:.0f} | {new_mb:.0f} | {new_mb / old_mb:.2f} |".replace("nan", "-"))
        print(lines[-1], flush=True)
    return lines


def describe_machine() -> str:
    """Date, processor and versions."""
    import narwhals
    import polars

    versions = f"Python {platform.python_version()}, numpy {np.__version__}, pandas {pd.__version__}"
    versions += f", polars {polars.__version__}, pyarrow {pa.__version__}, narwhals {narwhals.__version__}"
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
    parser.add_argument("--base", type=Path, help="a checkout of another commit to compare with")
    parser.add_argument("--case", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case is not None:
        print(convert_case(args.case, args.rows, args.series, args.repeats))
        return
    if args.base:
        size = f"{args.rows:,} rows, {args.series:,} series; medians of 3 processes with {args.repeats} conversions each."
        lines = ["# Frame to panel: two versions", "", describe_machine(), "", size, ""]
        lines += compare_versions(args.base.resolve(), args.rows, args.series, args.repeats)
        command = "`git worktree add DIR COMMIT; python benchmarks/bench_panel.py --base DIR`"
        RESULTS.with_name("panel_versions.md").write_text("\n".join([*lines, "", command, ""]), "utf-8")
        return
    if args.memory:
        print(memory(args.memory, args.rows, args.series))
        return
    lines = [
        "# Frame to panel",
        "",
        describe_machine(),
        "",
        f"{args.rows:,} rows, {args.series:,} series; medians of {args.repeats}, seconds.",
        "",
    ]
    lines += ["| frame | deepforecast, s | pandas, s | ratio | budget, s | share of budget | within budget |", "|---" * 7 + "|"]
    print("\n".join(lines), flush=True)
    for build in cases(args.rows, args.series):
        lines.append(measure(build(), args.repeats))
        print(lines[-1], flush=True)
    if Path("/proc/self/clear_refs").exists():
        lines += ["", "| frame | peak beyond frame, MB | frame, MB | ratio | budget | within budget |", "|---" * 6 + "|"]
        print("\n".join(lines[-3:]), flush=True)
        for kind in MEMORY_CASES:
            lines.append(memory_row(kind, args.rows, args.series))
            print(lines[-1], flush=True)
    if args.rows == parser.get_default("rows"):
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text("\n".join([*lines, "", "`python benchmarks/bench_panel.py`", ""]), "utf-8")


if __name__ == "__main__":
    main()
