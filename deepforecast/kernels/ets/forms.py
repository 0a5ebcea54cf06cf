"""The forms of exponential smoothing, as numbers. Light: it compiles nothing."""

from __future__ import annotations

from typing import NamedTuple


class Form(NamedTuple):
    """A form: error 0 added, 1 multiplied; trend and season 0 none, 1 added, 2 multiplied.

    >>> str(Form(1, 1, 1, 2))
    'ETS(M,Ad,M)'
    """

    error: int
    trend: int
    damped: int
    season: int

    def __str__(self) -> str:
        trend = "NAM"[self.trend] + ("d" if self.damped else "")
        return f"ETS({'AM'[self.error]},{trend},{'NAM'[self.season]})"

    @property
    def is_multiplicative(self) -> bool:
        """Whether anything multiplies, so that values have to be positive."""
        return self.error == 1 or self.trend == 2 or self.season == 2

    @property
    def is_stable(self) -> bool:
        """Whether its variance is finite and no state has to keep off 0: what R's `ets` allows."""
        if self.error == 0:
            return self.trend < 2 and self.season < 2
        return not (self.trend == 2 and self.season == 1)
