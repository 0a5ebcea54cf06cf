"""Checks of heads and losses that a user passes as objects, on a few values, before the training."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from deepforecast.errors import DeepForecastError, ParameterError, ParameterTypeError, format_value
from deepforecast.nn.heads.base import Head
from deepforecast.nn.scaling import Scale

N_VALUES = 8
BATCH, HORIZON = 2, 3


def check_loss(loss: Callable[..., Any]) -> None:
    """Raise unless `loss(prediction, target)` of vectors is a finite tensor with a gradient, elementwise or a mean."""
    if isinstance(loss, type):
        raise ParameterTypeError(
            f"`loss` must be a name or a function, got the class {loss.__name__}.",
            hint=f"Pass an instance, loss={loss.__name__}().",
            parameter="loss",
            value=loss,
        )
    prediction = torch.linspace(-1, 1, N_VALUES).requires_grad_()
    losses = _call("loss", loss, lambda: deepcopy(loss)(prediction, torch.linspace(0.5, -0.5, N_VALUES)))
    _check_tensor("loss", loss, "loss(prediction, target)", losses, ((N_VALUES,), ()), N_VALUES)


def check_head(head: Head) -> None:
    """Raise unless loss, mean, median and quantiles of a head have the shapes of `Head`, and are finite."""
    width = getattr(head, "out_features", None)
    if not isinstance(width, int) or isinstance(width, bool) or width < 1:
        raise ParameterError(
            f"`out_features` of a head must be an integer of at least 1, got {format_value(width)}.",
            hint=f"Set it in {type(head).__name__}.",
            parameter="head",
            value=head,
        )
    head = deepcopy(head)
    shape = (BATCH, HORIZON)
    raw = torch.linspace(-1, 1, BATCH * HORIZON * width).reshape(*shape, width).requires_grad_()
    ones = torch.ones(BATCH, 1, dtype=torch.float64)
    scaling, target = Scale(0 * ones, ones, ones.float()), torch.arange(1.0, BATCH * HORIZON + 1).reshape(shape)
    results: dict[str, tuple[Callable[[], Tensor], tuple[int, ...]]] = {}
    results |= {"loss(raw, target, scaling)": (lambda: head.loss(raw, target, scaling), shape)}
    results |= {"mean(raw)": (lambda: head.mean(raw), shape), "median(raw)": (lambda: head.median(raw), shape)}
    if head.has_distribution:
        lowest, highest = head.probability_range
        levels = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64).clamp(lowest, highest)
        results["quantiles(raw, p)"] = lambda: head.quantiles(raw, levels), (*shape, len(levels))
    for call, (compute, expected) in results.items():
        values = _call("head", head, compute)
        _check_tensor("head", head, call, values, (expected,), width, has_gradient=call.startswith("loss"))
        if call.startswith("quantiles") and bool((values.diff(dim=-1) < 0).any()):
            raise ParameterError(
                f"{call} of `head` must not decrease in p, got {format_value(values[0, 0].tolist())} for p = 0.25, 0.5, 0.75.",
                hint="Correct it.", parameter="head", value=head,
            )


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


def _check_tensor(
    name: str, value: Any, call: str, result: Any, shapes: tuple[tuple[int, ...], ...], n_values: int, has_gradient: bool = True
) -> None:
    """Raise unless the result is a finite tensor of one of the shapes, differentiable if `has_gradient`."""
    expected = " or ".join(map(str, shapes))
    if not isinstance(result, Tensor) or tuple(result.shape) not in shapes:
        got = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
        problem = f"must return a tensor of shape {expected}, got {got}"
    elif not bool(result.isfinite().all()):
        problem = f"must be finite, got {format_value(result.detach().flatten()[:n_values].tolist(), 200)}"
    elif has_gradient and not result.requires_grad:
        problem = "must have a gradient, got a tensor without one"
    else:
        return
    hint = "Use operations of torch on the first argument." if "gradient" in problem else "Correct it, or use a registered name."
    raise ParameterError(f"{call} of `{name}` {problem}.", hint=hint, parameter=name, value=value)
