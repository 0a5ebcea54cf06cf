"""Device placement: simulated devices reveal operations on tensors of two devices, without a GPU."""

from __future__ import annotations

from deepforecast.testing.check import rule
from deepforecast.testing.subject import Subject


def _requires_network(subject: Subject) -> str | None:
    return None if hasattr(subject.cls, "device_step") else "the model has no network (no method device_step)"


@rule(_requires_network)
def devices_are_not_mixed(subject: Subject) -> None:
    """Loss, gradient and forecasts on another device mix no devices and equal those on the CPU."""
    for device in ("cuda", "mps"):  # with and without float64
        subject.make().device_step(device)  # type: ignore[attr-defined]  # see _requires_network
