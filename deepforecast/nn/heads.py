"""All heads by name, and how a user's word for one becomes one."""

from __future__ import annotations

from collections.abc import Sequence

from deepforecast.errors import ParameterError, ParameterTypeError, shown, some
from deepforecast.nn.bins import Bins
from deepforecast.nn.counts import NegativeBinomial, Poisson, ZeroInflated
from deepforecast.nn.distributions import Laplace, LogNormal, Normal, StudentT
from deepforecast.nn.head import Head
from deepforecast.nn.implicit import ImplicitQuantile
from deepforecast.nn.mixture import Mixture
from deepforecast.nn.points import Point
from deepforecast.nn.quantiles import Quantiles
from deepforecast.nn.tweedie import Tweedie

__all__ = ["HEADS", "Head", "head"]

HEADS: dict[str, type[Head]] = {
    one.name: one
    for one in (
        *(Point, Quantiles, ImplicitQuantile, Bins),
        *(Normal, StudentT, Laplace, LogNormal, Mixture),
        *(NegativeBinomial, Poisson, ZeroInflated, Tweedie),
    )
}
"""The heads there are."""


def head(kind: str | Head, *, loss: str | None = None, quantiles: Sequence[float] | None = None) -> Head:
    """The head of that name, or the one given. `loss` belongs to a point, `quantiles` to learned quantiles.

    >>> head("point", loss="owa")
    Point(loss='owa')
    >>> head("quantiles", quantiles=[0.05, 0.95]).reach
    (0.05, 0.95)
    """
    if isinstance(kind, Head):
        return _plain(kind, kind.name, loss, quantiles)
    if not isinstance(kind, str):
        raise ParameterTypeError(f"head is one of {_names()}, or a Head; got {shown(kind)} ({type(kind).__name__}).")
    if kind not in HEADS:
        raise ParameterError(f"head is one of {_names()}, or a Head; got {shown(kind)}.")
    if kind == Point.name and loss is not None:
        return _plain(Point(loss), kind, None, quantiles)
    if kind == Quantiles.name and quantiles is not None:
        return _plain(Quantiles(quantiles), kind, loss, None)
    return _plain(HEADS[kind](), kind, loss, quantiles)


def _plain(found: Head, kind: str, loss: str | None, quantiles: Sequence[float] | None) -> Head:
    """The head, if no option is left that it has no use for."""
    for option, value, owner in (("loss", loss, Point.name), ("quantiles", quantiles, Quantiles.name)):
        if value is not None:
            raise ParameterError(f'{option} goes with head="{owner}"; got {shown(value)} beside {kind}. Leave it out.')
    return found


def _names() -> str:
    return some(HEADS, most=len(HEADS))
