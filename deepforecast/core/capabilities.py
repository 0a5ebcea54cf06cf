"""Capabilities of models as data, such as the covariates they use; read instead of checking classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a model.

    The class declares them; an instance may have fewer, depending on its parameters (regressor,
    head).

    Parameters
    ----------
    future, past, static : bool
        Whether the model uses future, past and static covariates.
    categorical : bool
        Whether covariates may be categorical.
    missing : bool
        Whether the model handles missing values without imputation.
    multivariate : bool
        Whether series are forecast jointly.
    distribution : {"analytic", "samples", "quantiles"} or None
        Origin of prediction intervals: a formula, sample paths, learned quantiles, or none (use
        `intervals="conformal"`).
    learns_distribution : bool
        Whether the distribution is part of the training loss; then the default point forecast is
        the median.
    local : bool
        Whether a forecast and its intervals depend on the series alone, not on other series.
    pooled : bool
        Whether point forecasts depend on the series alone, but intervals on all series. Such a
        model is not `local`.
    partly_own : bool
        Whether a global model has some parameters per series, which are missing for new series
        (with a warning).
    domain : {"real", "nonnegative", "positive"}
        Values of the target that the model accepts.
    scale_equivariant, shift_equivariant : bool
        Whether the forecast changes as the data do when they are multiplied by a positive number or
        shifted.
    sign_equivariant : bool
        Whether a scale-equivariant model also follows a change of sign. Trees do not, as thresholds
        are one-sided.
    precision : float
        Relative error of this equivariance: rounding for closed forms, the tolerance of the
        optimizer otherwise.
    new_values : {"followed", "heard", "ignored"}
        Effect of new observations in `update` and `predict(frame=...)`. "followed": the forecast
        shifts with them; "heard": it depends on them; "ignored": it depends only on `fit` and on
        time.
    simulates : bool
        Whether `simulate` is available.
    explains : bool
        Whether `explain` is available.
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
        """Whether parameters are estimated per series, so that a new series must be fitted before it is forecast."""
        return self.local or self.pooled

    def can_use(self, role: str) -> bool:
        """Whether covariates of a role ("future", "past" or "static") are used."""
        return bool(getattr(self, role))


class CapabilitiesDescriptor:
    """Descriptor that returns the declared capabilities of a class, or those of an instance after `_narrow`."""

    def __init__(self, declared: Capabilities) -> None:
        self.declared = declared

    def __get__(self, instance: object | None, owner: type) -> Capabilities:
        narrow = None if instance is None else getattr(owner, "_narrow", None)
        capabilities = self.declared if narrow is None else narrow(instance, self.declared)
        # sample paths are those of the model's own distribution, which calibrated intervals replace
        return capabilities if getattr(instance, "intervals", None) is None else replace(capabilities, simulates=False)
