"""ETS models as tuples of integers; imports no compiled code."""

from __future__ import annotations

from typing import NamedTuple


class Form(NamedTuple):
    """ETS model as codes of its components.

    error: 0 additive, 1 multiplicative. trend, season: 0 none, 1 additive, 2 multiplicative. damped: 0 or 1.

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
        """Whether any component is multiplicative, so that values must be positive."""
        return self.error == 1 or self.trend == 2 or self.season == 2

    @property
    def is_stable(self) -> bool:
        """Whether the forecast variance is finite and no divisor can reach 0; R's `ets` excludes other forms by default."""
        if self.error == 0:
            return self.trend < 2 and self.season < 2
        return not (self.trend == 2 and self.season == 1)
