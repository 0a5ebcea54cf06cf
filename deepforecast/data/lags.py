"""Features made of a column's own past, by name: `lag_7`, `mean_28`, `std_28@7`, `mean_4x7`, `expanding_max`, `ewm_0.3` ...

A window `mean_28` holds the 28 values before the row; `@7` moves its end to 7 rows before; `mean_4x7` takes 4 values that are
7 apart (the last four Mondays for a Monday). A feature of a row sees nothing at or after it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepforecast.errors import ParameterError, shown

WINDOWS = ("mean", "std", "min", "max", "quantile")
KINDS = ("lag", "difference", *WINDOWS, "expanding_mean", "expanding_std", "expanding_min", "expanding_max", "ewm")
LONGEST = 1_000_000
EXAMPLES = "'lag_7', 'mean_28', 'std_28@7', 'quantile_28_0.9', 'mean_4x7', 'expanding_max', 'ewm_0.3', 'difference_7'"


@dataclass(frozen=True)
class Lagged:
    """One feature: `size` values that are `stride` apart, the last of them `lag` rows before. `level`: of a quantile, or the
    weight of the newest value in an exponentially weighted mean."""

    kind: str
    lag: int = 1
    size: int = 1
    stride: int = 1
    level: float = 0.0

    @property
    def reach(self) -> int:
        """Rows before the one it belongs to that a whole one needs."""
        return self.lag + (self.size - 1) * self.stride

    @property
    def share(self) -> float:
        """How far, about, one value moves what is made of several; 0 of what is one value, or of all values so far."""
        of_kind = {"std": self.size**-0.5, "ewm": self.level, "difference": 1.0}
        return 1 / self.size if self.kind in ("mean", "min", "max", "quantile") else of_kind.get(self.kind, 0.0)

    def __str__(self) -> str:
        usual = self.stride if self.stride > 1 and self.kind in WINDOWS else 1
        end = f"@{self.lag}" if self.lag != usual else ""
        if self.kind == "lag":
            return f"lag_{self.lag}"
        if self.kind == "difference":
            return f"difference_{self.stride}{end}"
        if self.kind == "ewm":
            return f"ewm_{_digits(self.level)}{end}"
        if self.kind.startswith("expanding"):
            return f"{self.kind}{end}"
        apart = f"x{self.stride}" if self.stride > 1 else ""
        return f"{self.kind}_{self.size}{apart}{f'_{_digits(self.level)}' if self.kind == 'quantile' else ''}{end}"


def lagged(name: str) -> Lagged:
    """A feature by its name.

    >>> lagged("mean_4x7"), str(lagged("quantile_28_0.9@2"))
    (Lagged(kind='mean', lag=7, size=4, stride=7, level=0.0), 'quantile_28_0.9@2')
    """
    body, at, end = name.partition("@")
    found = _window(body) or _plain(body)
    if found is None or (at and (found.kind == "lag" or not _counts(end))):
        raise ParameterError(f"A feature of the past is named like {EXAMPLES}; got {shown(name)}.")
    return found if not at else Lagged(found.kind, int(end), found.size, found.stride, found.level)


def lags_of(given: int | Sequence[int]) -> tuple[Lagged, ...]:
    """The lags 1 to `given`, or those of a list: distinct whole numbers, at least 1."""
    numbers = list(range(1, min(given, LONGEST + 1) + 1)) if isinstance(given, int) else [int(one) for one in given]
    if not numbers or min(numbers) < 1 or max(numbers) > LONGEST or len(set(numbers)) < len(numbers):
        raise ParameterError(
            f"Lags are distinct whole numbers from 1 to {LONGEST:,}, at least one of them; got {shown(given)}. Say how many, "
            "or a list: 7, [1, 7]."
        )
    return tuple(Lagged("lag", one) for one in numbers)


def _window(body: str) -> Lagged | None:
    match = re.fullmatch(r"(mean|std|min|max|quantile)_(\d+)(?:x(\d+))?(?:_(0?\.\d+))?", body)
    if match is None or not _counts(match[2]) or (match[3] and not _counts(match[3])):
        return None
    level = float(match[4] or 0)
    if (match[1] == "quantile") != (0 < level < 1) or (match[1] == "std" and int(match[2]) == 1):
        return None
    stride = int(match[3] or 1)
    return Lagged(match[1], stride, int(match[2]), stride, level)


def _plain(body: str) -> Lagged | None:
    kind, _, number = body.rpartition("_")
    if body in KINDS and body.startswith("expanding"):
        return Lagged(body)
    if kind == "lag" and _counts(number):
        return Lagged("lag", int(number))
    if kind == "difference" and _counts(number):
        return Lagged("difference", 1, 2, int(number))
    if kind == "ewm" and re.fullmatch(r"(0?\.\d+|1)", number) and 0 < float(number) <= 1:
        return Lagged("ewm", level=float(number))
    return None


def _digits(level: float) -> str:
    """All its digits and no more, so that the name says the feature."""
    return np.format_float_positional(level, trim="-")


def _counts(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 1 <= int(text) <= LONGEST
