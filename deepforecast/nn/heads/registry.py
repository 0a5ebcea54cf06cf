"""Heads by name, and checks of heads and losses that a user passes as objects, on a few values before the training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, get_args

import torch
from torch import Tensor, nn

from deepforecast.errors import DeepForecastError, ParameterError, ParameterTypeError, format_list, format_value
from deepforecast.nn import names
from deepforecast.nn.heads.base import Head
from deepforecast.nn.heads.point import CustomLoss, PointHead
from deepforecast.nn.heads.quantiles import QuantileHead
from deepforecast.nn.names import HEAD_FACTS, implementation
from deepforecast.nn.scaling import Scale

HEADS: dict[str, type[Head]] = {name: implementation(facts.implementation) for name, facts in HEAD_FACTS.items()}
"""Heads by name."""
OPTION_HEADS = {"loss": PointHead.name, "quantiles": QuantileHead.name}
"""The head that takes each option of `make_head`, its only argument."""

N_VALUES = 8
BATCH, HORIZON = 2, 3
MAX_OUT_FEATURES = 100_000
LEVELS = (0.25, 0.5, 0.75)
MEAN_TOLERANCE = 0.25  # relative change of a mean if each value is repeated; that of a sum is 1


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
    if not isinstance(name, Head | str):
        raise ParameterTypeError(
            f"`head` must be one of {_head_names()}, or a Head, got {format_value(name)} ({type(name).__name__}).",
            parameter="head",
            value=name,
        )
    if isinstance(name, str) and name not in HEADS:
        raise ParameterError(
            f"`head` must be one of {_head_names()}, or a Head, got {format_value(name)}.", parameter="head", value=name
        )
    options = {
        option: value for option, value in (("loss", loss), ("quantiles", quantiles)) if value is not None
    }
    head_name = name.name if isinstance(name, Head) else name
    for option, value in options.items():
        if name != OPTION_HEADS[option]:
            raise ParameterError(
                f"`{option}` cannot be used with head={head_name!r}, "
                f"got {option}={format_value(value)}.",
                hint=f"Use head={OPTION_HEADS[option]!r}, or leave out `{option}`.",
                parameter=option,
                value=value,
            )
    return name if isinstance(name, Head) else HEADS[name](*options.values())


def _head_names() -> str:
    return format_list(HEADS, max_shown=len(HEADS))


def check_loss(loss: Callable[..., Any]) -> None:
    """Raise unless `loss(prediction, target)` of vectors is a finite tensor with a gradient, elementwise or a mean."""
    with _isolated():
        losses, prediction = _loss_values(loss)
        _check_tensor("loss", loss, "loss(prediction, target)", losses, ((N_VALUES,), ()))
        _check_gradient("loss", loss, "loss(prediction, target)", losses, prediction)
        if losses.ndim == 0:
            _check_mean(loss)


def check_head(head: Head) -> None:
    """Raise unless loss, mean, median and quantiles of a head have the shapes of `Head`, and are finite."""
    _check_facts(head)
    with _isolated():
        raw = _raw_outputs(head).requires_grad_()
        for call, compute in _head_calls(head, raw).items():
            values = _call("head", head, compute)
            shape = (BATCH, HORIZON, len(LEVELS)) if call.startswith("quantiles") else (BATCH, HORIZON)
            _check_tensor("head", head, call, values, (shape,))
            if call.startswith("loss"):
                _check_gradient("head", head, call, values, raw)
            else:
                _check_support(head, call, values)
            if call.startswith("quantiles") and bool((values.diff(dim=-1) < 0).any()):
                levels = format_list(LEVELS)
                problem = f"must not decrease in p, got {format_value(values[0, 0].tolist())} for p = {levels}"
                raise _error("head", head, call, problem)


def equal_outputs(value: Any, other: Any) -> bool:
    """Whether two losses, or two heads of a class, have the same outputs for the inputs of the checks."""
    with _isolated():
        if not isinstance(value, Head):
            return _equal_tensors(*(_loss_values(_evaluated(loss))[0] for loss in (value, other)))
        calls, other_calls = (_head_calls(_evaluated(head), _raw_outputs(head)) for head in (value, other))
        return all(_equal_tensors(compute(), other_calls[name]()) for name, compute in calls.items())


def _equal_tensors(values: Tensor, others: Tensor) -> bool:
    return values.shape == others.shape and torch.allclose(values, others, rtol=1e-6, atol=1e-6, equal_nan=True)


@contextmanager
def _isolated() -> Iterator[None]:
    """Gradients whatever the caller has switched off, and its random numbers as they were, also if the block raises."""
    with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        yield


def _loss_values(loss: Callable[..., Any], repeats: int = 1) -> tuple[Any, Tensor]:
    """The losses of a few values, each of them repeated, and the predictions."""
    loss = deepcopy(loss)  # a call may change it
    # No symmetry around 0, which would hide an odd loss, and no equal pair, where many losses have no gradient.
    prediction = torch.linspace(-1, 1, N_VALUES).repeat(repeats).requires_grad_()
    target = torch.linspace(0.7, -0.4, N_VALUES).repeat(repeats)
    return _call("loss", loss, lambda: loss(prediction, target)), prediction


def _raw_outputs(head: Head) -> Tensor:
    """Outputs of a body for the head, (batch, horizon, out_features)."""
    return torch.linspace(-1, 1, BATCH * HORIZON * head.out_features).reshape(BATCH, HORIZON, head.out_features)


def _head_calls(head: Head, raw: Tensor) -> dict[str, Callable[[], Any]]:
    """The computations of a copy of a head, by name."""
    head = deepcopy(head)
    ones = torch.ones(BATCH, 1, dtype=torch.float64)
    scaling, target = Scale(0 * ones, ones, ones.float()), torch.arange(1.0, BATCH * HORIZON + 1).reshape(BATCH, HORIZON)
    calls: dict[str, Callable[[], Any]] = {
        "loss(raw, target, scaling)": lambda: head.loss(raw, target, scaling),
        "mean(raw)": lambda: head.mean(raw), "median(raw)": lambda: head.median(raw),
    }  # fmt: skip
    if head.has_distribution:
        lowest, highest = head.probability_range
        levels = torch.tensor(LEVELS, dtype=torch.float64).clamp(lowest, highest)
        calls["quantiles(raw, p)"] = lambda: head.quantiles(raw, levels)
    return calls


def _evaluated(value: Any) -> Any:
    """A copy of a loss or a head in evaluation mode, without dropout."""
    value = deepcopy(value)
    return value.eval() if isinstance(value, nn.Module) else value


def _call(name: str, value: Any, compute: Callable[[], Any]) -> Any:
    """The result; `ParameterError` if the code of the user raises."""
    try:
        return compute()
    except DeepForecastError:
        raise
    except Exception as error:  # user code may raise anything
        raise ParameterError(
            f"`{name}` must be computable for tensors, got {type(error).__name__}: {format_value(str(error), 300)}.",
            hint="Pass a function of prediction and target." if name == "loss" else "See the docstring of deepforecast.Head.",
            parameter=name,
            value=value,
        ) from error


def _check_facts(head: Head) -> None:
    """Raise unless the attributes that describe a head have valid values."""
    if not hasattr(head, "_modules"):
        raise ParameterError(
            f"The constructor of {type(head).__name__} must call that of Head.", hint="Call super().__init__().",
            parameter="head", value=head,
        )  # fmt: skip
    width, supports = getattr(head, "out_features", None), get_args(names.Support)
    is_width = isinstance(width, int) and width is not True and 0 < width <= MAX_OUT_FEATURES
    rules = {"out_features": (width, is_width, f"an integer of at least 1 and at most {MAX_OUT_FEATURES:,}")}
    rules["support"] = head.support, head.support in supports, f"one of {format_list(supports)}"
    for name in ("is_count", "has_distribution"):
        value = getattr(head, name)
        rules[name] = value, isinstance(value, bool), "True or False"
    for name, (value, is_valid, rule) in rules.items():
        if not is_valid:
            raise ParameterError(
                f"`{name}` of a head must be {rule}, got {format_value(value)}.",
                hint=f"Set it in {type(head).__name__}.",
                parameter="head",
                value=head,
            )


def _check_tensor(name: str, value: Any, call: str, result: Any, shapes: tuple[tuple[int, ...], ...]) -> None:
    """Raise unless the result is a finite tensor of one of the shapes."""
    if not isinstance(result, Tensor) or tuple(result.shape) not in shapes:
        got = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
        raise _error(name, value, call, f"must return a tensor of shape {' or '.join(map(str, shapes))}, got {got}")
    if not bool(result.isfinite().all()):
        raise _error(name, value, call, f"must be finite, got {format_value(result.detach().flatten()[:N_VALUES].tolist(), 200)}")


def _check_gradient(name: str, value: Any, call: str, losses: Tensor, inputs: Tensor) -> None:
    """Raise unless the losses have a finite gradient with respect to the predictions."""
    gradient = None
    if losses.requires_grad:
        (gradient,) = _call(name, value, lambda: torch.autograd.grad(losses.sum(), inputs, allow_unused=True))
    hint = "Use differentiable operations of torch on the first argument"
    if gradient is None:
        raise _error(name, value, call, "must have a gradient to its first argument, got none", hint)
    if not bool(gradient.isfinite().all()):
        got = format_value(gradient.flatten()[:N_VALUES].tolist(), 200)
        raise _error(name, value, call, f"must have a finite gradient, got {got}", hint)


def _check_mean(loss: Callable[..., Any]) -> None:
    """Raise if repeating the values changes the loss, as it does for a sum."""
    mean, repeated = (_loss_values(_evaluated(loss), repeats)[0].detach().item() for repeats in (1, 2))
    if abs(repeated - mean) > MEAN_TOLERANCE * abs(mean):
        problem = f"must be the mean over the values, or elementwise, got {mean:.4g} for {N_VALUES} values and {repeated:.4g}"
        problem += " for each of them twice"
        raise _error("loss", loss, "loss(prediction, target)", problem, "Use the mean instead of the sum, e.g. reduction='mean'")


def _check_support(head: Head, call: str, values: Tensor) -> None:
    """Raise if points or quantiles are outside the support of the head."""
    lowest, is_positive = values.detach().min().item(), head.support == "positive"
    if head.support == "real" or lowest > 0 or (lowest == 0 and not is_positive):
        return
    rule = "positive" if is_positive else "at least 0"
    hint = f"Set another `support` in {type(head).__name__}, or transform `raw`, e.g. by softplus_floor"
    raise _error("head", head, call, f"must be {rule} with support={head.support!r}, got {format_value(lowest)}", hint)


def _error(
    name: str, value: Any, call: str, problem: str, hint: str = "Correct it, or use a registered name"
) -> ParameterError:
    return ParameterError(f"{call} of `{name}` {problem}.", hint=f"{hint}.", parameter=name, value=value)
