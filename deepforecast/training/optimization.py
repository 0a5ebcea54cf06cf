"""What a step of training consists of: optimiser, clipped gradients, seeds, batches on their device, compiled arithmetic."""

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
    """AdamW, with decay of matrices alone."""
    matrices = [parameter for parameter in network.parameters() if parameter.requires_grad and parameter.ndim > 1]
    vectors = [parameter for parameter in network.parameters() if parameter.requires_grad and parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": options.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    fused = options.precision != "16-mixed"  # a fused step scales gradients back by itself, after they were clipped
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=options.learning_rate, fused=fused or None)


def clip_gradients(weights: Sequence[Tensor], options: TrainingOptions) -> Tensor:
    """The norm of the gradients, which are then cut by value and by norm: as torch does it, in a third of its time."""
    gradients = [parameter.grad for parameter in weights if parameter.grad is not None]
    norm = unclipped_norm = _norm(gradients)
    if options.clip_value is not None:
        torch._foreach_clamp_min_(gradients, -options.clip_value)
        torch._foreach_clamp_max_(gradients, options.clip_value)
        norm = _norm(gradients)
    if options.gradient_clip_val is not None:
        torch._foreach_mul_(gradients, (options.gradient_clip_val / (norm + 1e-6)).clamp(max=1.0))
    return unclipped_norm


def _norm(gradients: list[Tensor]) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    return norm


def seed_generators(number: int, device: torch.device) -> None:
    """Of the CPU and of the device at hand: `torch.manual_seed` would seed all there could be, at 3 ms a call."""
    torch.default_generator.manual_seed(number % 2**63)
    if device.type in ("cuda", "mps"):
        getattr(torch, device.type).manual_seed(number % 2**63)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """A batch on the device; from pinned memory, so that the copy runs beside the arithmetic, where there is such memory."""
    if batch.y.device == device:
        return batch
    if device.type == "cuda":
        batch = batch.pin_memory()
    return batch.to(device, non_blocking=True)


def compile_loss(loss: Any) -> Any:
    """The same function compiled by torch; as it is, and said so, where torch cannot."""
    state: dict[str, Any] = {"act": torch.compile(loss), "tried": False}

    def call(*arguments: Any) -> Any:
        if state["tried"]:
            return state["act"](*arguments)
        state["tried"] = True
        try:
            return state["act"](*arguments)
        except RuntimeError as error:  # of which all errors of the compiler are kinds
            state["act"] = loss
            value = loss(*arguments)  # what is wrong with the loss itself shows here
            message = str(error).strip().partition("\n")[0][:200]
            warn(f"torch could not compile the network, which is trained as it is: {message}", TrainingWarning)
            return value

    return call
