"""Compare forecasts of the working tree bit for bit with those of another commit (`make golden`).

The other commit is unpacked into a temporary folder, where its own `forecasts.py` runs with its
own package, so a renamed parameter is no difference. If it has no such script, the working tree is
compared with the stored summary alone.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

Arrays = Mapping[str, np.ndarray]
ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path("tests/golden/forecasts.py")
KERNELS = Path("deepforecast/kernels")
STORE = (
    ROOT / "build" / "golden"
)  # compiled kernels of the last base; each states the sources it was compiled from
SHARES = 2


def differences(
    base: Mapping[str, Arrays], new: Mapping[str, Arrays], dropped: Iterable[str] = ()
) -> list[str]:
    """A line for each case or array that is missing, and for the first difference of a case.

    `dropped`: patterns of cases, or of "case|array", that may be missing.
    """
    missing = [case for case in base if case not in new]
    for case in (case for case in base if case in new):
        missing += [f"{case}|{name}" for name in base[case] if name not in new[case]]
    unmatched = [pattern for pattern in dropped if not fnmatch.filter(missing, pattern)]
    named = {name for pattern in dropped for name in fnmatch.filter(missing, pattern)}
    lines = [f"{name}: missing" for name in missing if name not in named]
    lines += [f"dropped pattern {pattern!r} matches no missing case" for pattern in unmatched]
    for case in (case for case in base if case in new):
        shared = {name: array for name, array in base[case].items() if name in new[case]}
        texts = {name: difference(array, new[case][name]) for name, array in shared.items()}
        changed = [f"{name}{text}" for name, text in texts.items() if text]
        if changed:
            others = f"; {len(changed) - 1} more of {len(shared)} arrays" if changed[1:] else ""
            lines.append(f"{case}: {changed[0]}{others}")
    return lines


def difference(expected: np.ndarray, actual: np.ndarray) -> str:
    """The first different bits of two float64 arrays, or "". NaN equals NaN, 0.0 is not -0.0."""
    if expected.shape != actual.shape:
        return f" has shape {actual.shape}, not {expected.shape}"
    missing = np.isnan(expected) & np.isnan(actual)
    changed = (expected.view(np.int64) != actual.view(np.int64)) & ~missing
    if not changed.any():
        return ""
    before, after = expected[changed], actual[changed]
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.abs(after - before) / np.maximum(np.abs(before), np.abs(after))
    relative[(before == 0) & (after == 0)] = 0.0
    relative[np.isnan(relative)] = np.inf
    pair = f"[{np.flatnonzero(changed)[0]}]: {float(before[0])!r} became {float(after[0])!r}"
    return f"{pair} ({len(before)} of {changed.size} values, at most {relative.max():.1e} relative)"


def read(paths: Iterable[Path]) -> dict[str, dict[str, np.ndarray]]:
    """The arrays of several files by case."""
    cases: dict[str, dict[str, np.ndarray]] = {}
    for path in paths:
        with np.load(path) as file:
            for key in file.files:
                case, _, name = key.partition("|")
                cases.setdefault(case, {})[name] = file[key]
    return cases


def run(root: Path, folder: Path, only: str = "") -> tuple[dict[str, dict[str, np.ndarray]], float]:
    """The arrays of one side, by its own script in two processes of one thread, and the seconds."""
    began = time.monotonic()
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    )
    environment = {
        **os.environ,
        **threads,
        "PYTHONPATH": str(root),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    paths = [folder / f"{share}.npz" for share in range(SHARES)]
    command = [sys.executable, "-m", "tests.golden.forecasts", "--only", only]
    processes = [
        subprocess.Popen(
            [*command, str(path), "--share", f"{share}/{SHARES}"], cwd=root, env=environment
        )
        for share, path in enumerate(paths)
    ]
    try:
        codes = [process.wait() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    if any(codes):
        raise SystemExit(f"golden: {SCRIPT} failed in {root}")
    return read(paths), time.monotonic() - began


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Package and tests of a commit in a temporary folder, with kernels of the same sources."""
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        root = Path(folder)
        with (
            subprocess.Popen(
                ["git", "archive", commit, "deepforecast", "tests"],
                cwd=ROOT,
                stdout=subprocess.PIPE,
            ) as archive,
            tarfile.open(fileobj=archive.stdout, mode="r|") as files,
        ):
            files.extractall(root, filter="data")
        for source in (STORE, ROOT / KERNELS):
            copy_compiled(source, root / KERNELS)
        yield root
        shutil.rmtree(STORE, ignore_errors=True)
        copy_compiled(root / KERNELS, STORE)


def copy_compiled(source: Path, target: Path) -> None:
    """Copy compiled kernels; numba takes none whose index states other sources."""
    for path in source.rglob("*.nb[ic]"):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)


def git(*arguments: str) -> str:
    """What git prints."""
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def stop(number: int, frame: object) -> None:
    """Let a signal end the program the way Ctrl-C does, so that temporary folders are removed."""
    raise KeyboardInterrupt


def main() -> int:
    """Run both sides, print the differences and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--base", default="HEAD~1", help="commit to compare the working tree with (default: HEAD~1)"
    )
    parser.add_argument(
        "--dropped",
        default="",
        metavar="CASES",
        help="cases removed on purpose, as patterns between semicolons: 'NBEATS*;LSTM, daily'",
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only cases whose name contains this"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    commit = git("rev-parse", "--verify", f"{options.base}^{{commit}}")
    name = f"{options.base} ({commit[:9]})" if options.base != commit[:9] else options.base
    if subprocess.run(
        ["git", "cat-file", "-e", f"{commit}:{SCRIPT}"], cwd=ROOT, stderr=subprocess.DEVNULL
    ).returncode:
        print(f"golden: {name} has no {SCRIPT}; comparing with the stored summary alone")
        return subprocess.run(
            [sys.executable, "-m", "tests.golden.forecasts", "--check", "--only", options.only],
            cwd=ROOT,
        ).returncode
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        sides = [Path(folder, side) for side in ("new", "base")]
        for side in sides:
            side.mkdir()
        new, new_seconds = run(ROOT, sides[0], options.only)
        with checkout(commit) as root:
            base, base_seconds = run(root, sides[1], options.only)
    print(f"golden: working tree, {len(new)} cases in {new_seconds:.0f} s")
    print(f"golden: {name}, {len(base)} cases in {base_seconds:.0f} s")
    added = [case for case in new if case not in base]
    added += [
        f"{case}|{array}"
        for case in new
        if case in base
        for array in new[case]
        if array not in base[case]
    ]
    lines = differences(base, new, [name for name in options.dropped.split(";") if name])
    for line in added:
        print(f"  new: {line}")
    for line in lines:
        print(f"  {line}")
    print(
        f"golden: {len(lines)} differences from {name}"
        if lines
        else f"golden: bit for bit as {name}"
    )
    return 1 if lines else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("golden: interrupted")
