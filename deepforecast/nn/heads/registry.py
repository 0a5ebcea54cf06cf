"""Heads by name."""

from __future__ import annotations

from collections.abc import Sequence

from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value
from deepforecast.nn import names
from deepforecast.nn.heads.base import Head
from deepforecast.nn.heads.point import PointHead
from deepforecast.nn.heads.quantiles import QuantileHead
from deepforecast.nn.losses import CustomLoss
from deepforecast.nn.names import HEAD_FACTS, implementation

__all__ = ["HEADS", "Head", "make_head"]

HEADS: dict[str, type[Head]] = {name: implementation(facts.implementation) for name, facts in HEAD_FACTS.items()}
"""Heads by name."""


def make_head(
    name: str | names.Head, *, loss: str | CustomLoss | None = None, quantiles: Sequence[float] | None = None
) -> Head:
    """Return a head by its name, or the given head.

    Parameters
    ----------
    name : str or Head
    loss : str or callable, optional
        Loss of the head "point".
    quantiles : sequence of float, optional
        Probabilities of the head "quantiles".

    Raises
    ------
    ParameterError
        If there is no such head, or if it does not have an option that is given.

    Examples
    --------
    >>> make_head("point", loss="owa")
    PointHead(loss='owa')
    >>> make_head("quantiles", quantiles=[0.05, 0.95]).probability_range
    (0.05, 0.95)
    """
    if isinstance(name, Head):
        return _check_options(name, name.name, loss, quantiles)
    if not isinstance(name, str):
        raise ParameterTypeError(
            f"`head` must be one of {_head_names()}, or a Head, got {format_value(name)} ({type(name).__name__}).", parameter="head",
            value=name
        )
    if name not in HEADS:
        raise ParameterError(
            f"`head` must be one of {_head_names()}, or a Head, got {format_value(name)}.", parameter="head", value=name
        )
    if name == PointHead.name and loss is not None:
        return _check_options(PointHead(loss), name, None, quantiles)
    if name == QuantileHead.name and quantiles is not None:
        return _check_options(QuantileHead(quantiles), name, loss, None)
    return _check_options(HEADS[name](), name, loss, quantiles)


def _check_options(
    head: Head, name: str, loss: str | CustomLoss | None, quantiles: Sequence[float] | None
) -> Head:
    """Return the head; raise `ParameterError` if `loss` or `quantiles` is not None, as the caller
    passes only options that the head does not have.
    """
    for option, value, head_with_option in (
        ("loss", loss, PointHead.name),
        ("quantiles", quantiles, QuantileHead.name),
    ):
        if value is not None:
            raise ParameterError(
                f"`{option}` cannot be used with head={name!r}, got {option}={format_value(value)}.",
                hint=f"Use head={head_with_option!r}, or leave out `{option}`.",
                parameter=option,
                value=value,
            )
    return head


def _head_names() -> str:
    return format_list(HEADS, max_shown=len(HEADS))
