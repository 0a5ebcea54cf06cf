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
    """Return AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) for the parameters with gradients.

    Weight decay applies to parameters with two or more axes only.
    """
    trainable = [parameter for parameter in network.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in trainable if parameter.ndim > 1]
    vectors = [parameter for parameter in trainable if parameter.ndim <= 1]
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


def clip_gradients(parameters: Sequence[Tensor], options: TrainingOptions) -> Tensor:
    """Clip gradients in place by norm or by value, and return the norm before clipping.

    The result equals that of torch's `clip_grad_norm_` or `clip_grad_value_`, in a third of the time.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    limit = options.gradient_clip_val
    if limit is not None and options.gradient_clip_algorithm == "norm":
        torch._foreach_mul_(gradients, (limit / (norm + 1e-6)).clamp(max=1.0))
    elif limit is not None:
        torch._foreach_clamp_min_(gradients, -limit)
        torch._foreach_clamp_max_(gradients, limit)
    return norm


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed torch's global generators of the CPU and of the device.

    `torch.manual_seed` seeds all devices, which takes 3 ms.
    """
    torch.default_generator.manual_seed(seed % 2**63)
    if device.type in ("cuda", "mps"):
        getattr(torch, device.type).manual_seed(seed % 2**63)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """Return the batch on the device; for CUDA it is copied from pinned memory, asynchronously."""
    if batch.past.device == device:
        return batch
    if device.type == "cuda":
        return batch.pin_memory().to(device, non_blocking=True)
    return batch.to(device)


def compile_loss(loss: Any) -> Any:
    """Return the loss compiled by `torch.compile`.

    Compilation happens in the first call. If it fails, the loss is used uncompiled, with a warning.
    """
    state: dict[str, Any] = {"loss": torch.compile(loss), "was_called": False}

    def call(*arguments: Any) -> Any:
        """Compute the loss; only the first call can fall back to the uncompiled one."""
        if state["was_called"]:
            return state["loss"](*arguments)
        state["was_called"] = True
        try:
            return state["loss"](*arguments)
        except RuntimeError as error:  # base class of the compiler's errors
            state["loss"] = loss
            value = loss(*arguments)  # an error of the loss itself is raised here
            first_line = str(error).strip().partition("\n")[0][:200]
            warn(
                f"torch cannot compile the network, which is trained uncompiled: {first_line}. Set compile=False to "
                "silence this warning.",
                TrainingWarning,
            )
            return value

    return call
