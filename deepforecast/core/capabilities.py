"""What a model can do, as data: asked by the engine, the contract checks and the model table instead of class names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Capabilities:
    """Class defaults; an instance may narrow them (by its regressor or its head).

    `distribution` says what stands behind intervals: a formula ("analytic"), sample paths, learned quantiles, or None (then
    `intervals="conformal"` gives them). `local`: every series has parameters of its own.
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
    scale_equivariant: bool = False
    shift_equivariant: bool = False
    simulates: bool = False
    explains: bool = False

    def can_use(self, role: str) -> bool:
        """Whether columns of a role (future, past, static) are used."""
        return bool(getattr(self, role))


class CapabilitiesOf:
    """Descriptor: on the class its declaration, on an instance what `narrow` leaves of it."""

    def __init__(self, declared: Capabilities) -> None:
        self.declared = declared

    def __get__(self, instance: object | None, owner: type) -> Capabilities:
        narrow = getattr(instance, "_narrow", None)
        able = self.declared if narrow is None else narrow(self.declared)
        # sample paths come from the model's own distribution, which calibrated bands are there to correct
        return able if getattr(instance, "intervals", None) is None else replace(able, simulates=False)
