"""Optimizer, gradient clipping, seeds, transfer of batches and compilation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from deepforecast.errors import TrainingWarning, warn
from deepforecast.nn.batch import Batch
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.options import TrainingOptions


def make_optimizer(network: ForecastNetwork, options: TrainingOptions) -> torch.optim.Optimizer:
    """Return AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) with weight decay on matrices
    only.
    """
    matrices = [
        parameter
        for parameter in network.parameters()
        if parameter.requires_grad and parameter.ndim > 1
    ]
    vectors = [
        parameter
        for parameter in network.parameters()
        if parameter.requires_grad and parameter.ndim <= 1
    ]
    groups = [
        {"params": matrices, "weight_decay": options.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    fused = options.precision != "16-mixed"  # the fused step would unscale gradients after clipping
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=options.learning_rate,
        fused=fused or None,
    )


def clip_gradients(weights: Sequence[Tensor], options: TrainingOptions) -> Tensor:
    """Clip gradients in place by norm or by value, and return the norm before clipping.

    Equal to torch's `clip_grad_value_` and `clip_grad_norm_`, in a third of their time.
    """
    gradients = [parameter.grad for parameter in weights if parameter.grad is not None]
    norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    limit = options.gradient_clip_val
    if limit is not None and options.gradient_clip_algorithm == "norm":
        torch._foreach_mul_(gradients, (limit / (norm + 1e-6)).clamp(max=1.0))
    elif limit is not None:
        torch._foreach_clamp_min_(gradients, -limit)
        torch._foreach_clamp_max_(gradients, limit)
    return norm


def seed_generators(number: int, device: torch.device) -> None:
    """Seed the generators of the CPU and of the device; `torch.manual_seed` would take 3 ms to seed
    all devices.
    """
    torch.default_generator.manual_seed(number % 2**63)
    if device.type in ("cuda", "mps"):
        getattr(torch, device.type).manual_seed(number % 2**63)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """Move a batch to the device, from pinned memory where the copy can overlap with computation."""
    if batch.y.device == device:
        return batch
    if device.type == "cuda":
        batch = batch.pin_memory()
    return batch.to(device, non_blocking=True)


def compile_loss(loss: Any) -> Any:
    """Compile the loss by `torch.compile`, or use it as it is, with a warning, if that fails."""
    state: dict[str, Any] = {"act": torch.compile(loss), "tried": False}

    def call(*arguments: Any) -> Any:
        if state["tried"]:
            return state["act"](*arguments)
        state["tried"] = True
        try:
            return state["act"](*arguments)
        except RuntimeError as error:  # base class of the compiler's errors
            state["act"] = loss
            value = loss(*arguments)  # an error of the loss itself is raised here
            message = str(error).strip().partition("\n")[0][:200]
            warn(
                f"torch cannot compile the network; it is trained uncompiled. Set compile=False. torch: {message}",
                TrainingWarning,
            )
            return value

    return call
