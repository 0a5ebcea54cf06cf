"""What a step of training consists of: optimiser, clipped gradients, seeds, batches on their device, compiled arithmetic."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from deepforecast.errors import TrainingWarning, say
from deepforecast.nn.batch import Batch
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.options import Options


def optimizer_for(network: ForecastNetwork, options: Options) -> torch.optim.Optimizer:
    """AdamW, with decay of matrices alone."""
    matrices = [one for one in network.parameters() if one.requires_grad and one.ndim > 1]
    others = [one for one in network.parameters() if one.requires_grad and one.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": options.weight_decay}, {"params": others, "weight_decay": 0.0}]
    fused = options.precision != "16-mixed"  # a fused step scales gradients back by itself, after they were clipped
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=options.learning_rate, fused=fused or None)


def clipped(network: ForecastNetwork, options: Options) -> Tensor:
    """The norm of the gradients, which are then cut by value and by norm."""
    weights = [one for one in network.parameters() if one.grad is not None]
    if options.clip_value is not None:
        norm = torch.nn.utils.get_total_norm([one.grad for one in weights if one.grad is not None])
        torch.nn.utils.clip_grad_value_(weights, options.clip_value)
        if options.grad_clip is not None:
            torch.nn.utils.clip_grad_norm_(weights, options.grad_clip)
        return norm
    if options.grad_clip is None:
        return torch.nn.utils.get_total_norm([one.grad for one in weights if one.grad is not None])
    return torch.nn.utils.clip_grad_norm_(weights, options.grad_clip)


def seed(number: int, device: torch.device) -> None:
    """Of the CPU and of the device at hand: `torch.manual_seed` would seed all there could be, at 3 ms a call."""
    torch.default_generator.manual_seed(number % 2**63)
    if device.type in ("cuda", "mps"):
        getattr(torch, device.type).manual_seed(number % 2**63)


def moved(batch: Batch, device: torch.device) -> Batch:
    """A batch on the device; from pinned memory, so that the copy runs beside the arithmetic, where there is such memory."""
    if batch.y.device == device:
        return batch
    if device.type == "cuda":
        batch = batch.pinned()
    return batch.to(device, non_blocking=True)


def compiled(loss: Any) -> Any:
    """The same function compiled by torch; as it is, and said so, where torch cannot."""
    held: dict[str, Any] = {"act": torch.compile(loss), "tried": False}

    def act(*given: Any) -> Any:
        if held["tried"]:
            return held["act"](*given)
        held["tried"] = True
        try:
            return held["act"](*given)
        except RuntimeError as error:  # of which all errors of the compiler are kinds
            held["act"] = loss
            found = loss(*given)  # what is wrong with the loss itself shows here
            said = str(error).strip().partition("\n")[0][:200]
            say(f"torch could not compile the network, which is trained as it is: {said}", TrainingWarning)
            return found

    return act
