"""Lag features by name: `lag_7`, `mean_28`, `std_28@7`, `mean_4x7`, `expanding_max`, `ewm_0.3` ...

`mean_28` is the mean of the 28 values before the row; `@7` ends the window 7 rows before it;
`mean_4x7` takes 4 values with a stride of 7 (the last four Mondays for a Monday). A feature uses
only values before its row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepforecast.errors import ParameterError, format_value

WINDOWS = ("mean", "std", "min", "max", "quantile")
FEATURE_KINDS = ("lag", "difference", *WINDOWS, "expanding_mean", "expanding_std", "expanding_min", "expanding_max", "ewm")
MAX_LAG = 1_000_000
EXAMPLES = "'lag_7', 'mean_28', 'std_28@7', 'quantile_28_0.9', 'mean_4x7', 'expanding_max', 'ewm_0.3', 'difference_7'"


@dataclass(frozen=True)
class LagFeature:
    """A statistic of `size` values, `stride` rows apart, the last one `lag` rows before the row.

    `level` is the probability of a quantile, or the smoothing parameter of an exponentially
    weighted mean.
    """

    kind: str
    lag: int = 1
    size: int = 1
    stride: int = 1
    level: float = 0.0

    @property
    def n_rows_needed(self) -> int:
        """Number of previous rows needed for a complete feature."""
        return self.lag + (self.size - 1) * self.stride

    @property
    def influence(self) -> float:
        """Approximate weight of a single value; 0 for single lags and expanding windows."""
        weight_by_kind = {"std": self.size**-0.5, "ewm": self.level, "difference": 1.0}
        return 1 / self.size if self.kind in ("mean", "min", "max", "quantile") else weight_by_kind.get(self.kind, 0.0)

    def __str__(self) -> str:
        """The name of the feature, the inverse of `parse_lag_feature`."""
        default_lag = self.stride if self.stride > 1 and self.kind in WINDOWS else 1
        end = f"@{self.lag}" if self.lag != default_lag else ""
        if self.kind == "lag":
            return f"lag_{self.lag}"
        if self.kind == "difference":
            return f"difference_{self.stride}{end}"
        if self.kind == "ewm":
            return f"ewm_{_format_level(self.level)}{end}"
        if self.kind.startswith("expanding"):
            return f"{self.kind}{end}"
        stride = f"x{self.stride}" if self.stride > 1 else ""
        level = f"_{_format_level(self.level)}" if self.kind == "quantile" else ""
        return f"{self.kind}_{self.size}{stride}{level}{end}"


def parse_lag_feature(name: str) -> LagFeature:
    """Parse the name of a lag feature.

    Examples
    --------
    >>> parse_lag_feature("mean_4x7"), str(parse_lag_feature("quantile_28_0.9@2"))
    (LagFeature(kind='mean', lag=7, size=4, stride=7, level=0.0), 'quantile_28_0.9@2')
    """
    body, separator, end = name.partition("@")
    feature = _parse_window(body) or _parse_single(body)
    if feature is None or (separator and (feature.kind == "lag" or not _is_count(end))):
        raise ParameterError(f"A lag feature must have a name such as {EXAMPLES}, got '{format_value(name)}'.")
    return feature if not separator else LagFeature(feature.kind, int(end), feature.size, feature.stride, feature.level)


def lag_features(lags: int | Sequence[int]) -> tuple[LagFeature, ...]:
    """The lags 1 to `lags`, or those of a list."""
    numbers = list(range(1, min(lags, MAX_LAG + 1) + 1)) if isinstance(lags, int) else [int(lag) for lag in lags]
    if not numbers or min(numbers) < 1 or max(numbers) > MAX_LAG or len(set(numbers)) < len(numbers):
        raise ParameterError(
            f"`lags` must contain at least one lag, without duplicates and from 1 to {MAX_LAG:,}, got "
            f"{format_value(lags)}. Pass a list, e.g. [1, 7], or the largest lag, e.g. 7 for the lags 1 to 7."
        )
    return tuple(LagFeature("lag", lag) for lag in numbers)


def _parse_window(body: str) -> LagFeature | None:
    """The feature of a window such as `mean_28`, `mean_4x7` or `quantile_28_0.9`; None if `body` is not one."""
    match = re.fullmatch(r"(mean|std|min|max|quantile)_(\d+)(?:x(\d+))?(?:_(0?\.\d+))?", body)
    if match is None or not _is_count(match[2]) or (match[3] and not _is_count(match[3])):
        return None
    level = float(match[4] or 0)
    if (match[1] == "quantile") != (0 < level < 1) or (match[1] == "std" and int(match[2]) == 1):
        return None
    stride = int(match[3] or 1)
    return LagFeature(match[1], stride, int(match[2]), stride, level)


def _parse_single(body: str) -> LagFeature | None:
    """The feature of `lag_7`, `difference_7`, `ewm_0.3` or `expanding_max`; None if `body` is not such a name."""
    feature_kind, _, number = body.rpartition("_")
    if body in FEATURE_KINDS and body.startswith("expanding"):
        return LagFeature(body)
    if feature_kind == "lag" and _is_count(number):
        return LagFeature("lag", int(number))
    if feature_kind == "difference" and _is_count(number):
        return LagFeature("difference", lag=1, size=2, stride=int(number))
    if feature_kind == "ewm" and re.fullmatch(r"(0?\.\d+|1)", number) and 0 < float(number) <= 1:
        return LagFeature("ewm", level=float(number))
    return None


def _format_level(level: float) -> str:
    """A probability as text with all significant digits, so that names are unique."""
    return np.format_float_positional(level, trim="-")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 1 <= int(text) <= MAX_LAG
