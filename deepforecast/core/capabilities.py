"""What a model can do, as data: asked by the engine, the contract checks and the model table instead of class names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Capabilities:
    """Class defaults; an instance may narrow them (by its regressor or its head).

    - `distribution`: what stands behind intervals, a formula ("analytic"), sample paths, learned quantiles, or None (then
      `intervals="conformal"` gives them).
    - `local`: a forecast, bands included, rests on its own series alone. `pooled`: on its own series, but for the bands, which
      are shared; such a model is not `local`. `partly_own`: learned across series, but for some parameters that are a series'
      own; one not seen has those of no series, and this is said.
    - `domain`: the values of the target it takes; others are refused by name.
    - `precision`: how exactly the forecast follows a scale or shift of the data, relative to it: but for rounding where it is a
      closed form, as far as an optimiser goes where there is one.
    - `sign_equivariant`: it follows a change of sign too, where it follows scale and shift; trees do not, as what lies on a
      threshold goes to one side of it.
    - `new_values`: what they do while parameters stay, in `update` and `predict(frame=...)`. A shift of all of them is
      "followed" whole; they are "heard"; or "ignored", where the forecast is made of what was learned in fit and of time alone.
    """

    future: bool = False
    past: bool = False
    static: bool = False
    categorical: bool = False
    missing: bool = False
    multivariate: bool = False
    distribution: Literal["analytic", "samples", "quantiles"] | None = None
    learns_distribution: bool = False
    local: bool = True
    pooled: bool = False
    partly_own: bool = False
    domain: Literal["real", "nonnegative", "positive"] = "real"
    scale_equivariant: bool = False
    shift_equivariant: bool = False
    sign_equivariant: bool = True
    precision: float = 1e-9
    new_values: Literal["followed", "heard", "ignored"] = "heard"
    simulates: bool = False
    explains: bool = False

    @property
    def by_series(self) -> bool:
        """Whether every series has parameters of its own, so that one not seen in fit is fitted when it is asked for."""
        return self.local or self.pooled

    def can_use(self, role: str) -> bool:
        """Whether columns of a role (future, past, static) are used."""
        return bool(getattr(self, role))


class CapabilitiesDescriptor:
    """Descriptor: on the class its declaration, on an instance what `narrow` leaves of it."""

    def __init__(self, declared: Capabilities) -> None:
        self.declared = declared

    def __get__(self, instance: object | None, owner: type) -> Capabilities:
        narrow = None if instance is None else getattr(owner, "_narrow", None)
        capabilities = self.declared if narrow is None else narrow(instance, self.declared)
        # sample paths come from the model's own distribution, which calibrated bands are there to correct
        return capabilities if getattr(instance, "intervals", None) is None else replace(capabilities, simulates=False)
