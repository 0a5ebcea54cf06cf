"""The number of CPUs available to this process, by CPU affinity and by control groups."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path, PurePosixPath


def affinity() -> int:
    """Number of CPUs that the scheduler may use for this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache  # reading takes as long as fitting a series
def quota(root: Path = Path("/")) -> float:
    """The CPU quota of the control groups of this process and their parents; infinity without a quota."""
    quotas = [math.inf]
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, names_and_path = line.partition(":")
        names, _, path = names_and_path.partition(":")
        if names and "cpu" not in names.split(","):
            continue
        mounts = (names, "cpu", "cpu,cpuacct") if names else ("", "unified")
        # A container may see the path of its host here, and its own group as the root, so check all parents.
        group = PurePosixPath(path.lstrip("/"))
        quotas += [
            _group_quota(root / "sys/fs/cgroup" / mount / directory)
            for mount in mounts
            for directory in (group, *group.parents)
        ]
    return min(quotas)


def _group_quota(group: Path) -> float:
    """CPU quota of one control group: `cpu.max` in version 2, two files in version 1."""
    numbers = _read(group / "cpu.max").split() or [
        *_read(group / "cpu.cfs_quota_us").split(),
        *_read(group / "cpu.cfs_period_us").split(),
    ]
    try:
        quota, period = (float(number) for number in numbers)
    except ValueError:  # "max", or no such files
        return math.inf
    return quota / period if quota > 0 and period > 0 else math.inf


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
