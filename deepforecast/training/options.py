"""How a network is trained: what a model's parameters say, in one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEDULES = ("one_cycle", "cosine", "constant")


@dataclass(frozen=True)
class Options:
    """See the parameters of `models.neural.NeuralForecaster`, where each is explained."""

    max_steps: int
    batch_size: int
    learning_rate: float  # 0: found by a range test
    share: float = 1.0  # of the rate found that is learned at
    weight_decay: float = 0.0
    schedule: str = "one_cycle"
    warmup: float = 0.1
    grad_clip: float | None = 1.0
    clip_value: float | None = None
    accumulate: int = 1
    average: float = 0.0
    teacher: str = "constant"
    evenly: bool = False
    validate_every: int = 50
    patience: int | None = None
    time_limit: float | None = None
    seed: int = 0
    precision: str = "32-true"
    accelerator: str = "auto"
    devices: Any = 1
    strategy: str = "auto"
    compile: bool = False
    progress: bool = False
    checkpoint_dir: str | None = None
    checkpoint_every: int = 100
    trainer: Mapping[str, Any] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)  # for Lightning's loggers


def rate(options: Options, step: int) -> float:
    """The learning rate of a step (from 0) as a share of the largest.

    >>> [round(rate(Options(5, 1, 0.1), step), 2) for step in range(5)]
    [1.0, 0.9, 0.63, 0.31, 0.07]
    """
    from math import cos, pi

    rise = max(round(options.warmup * options.max_steps), 1)
    if step + 1 < rise:
        return (step + 1) / rise
    if options.schedule == "constant":
        return 1.0
    done = min((step + 1 - rise) / max(options.max_steps - rise, 1), 1.0)
    least = 1e-3 if options.schedule == "one_cycle" else 0.0
    return least + (1 - least) * 0.5 * (1 + cos(pi * done * options.max_steps / (options.max_steps + 1)))


def taught(options: Options, step: int) -> float:
    """The share of steps that a stepwise network is taught by the true value before them (teacher forcing), by its schedule.

    >>> from dataclasses import replace
    >>> plain = Options(100, 1, 0.1)
    >>> [round(taught(replace(plain, teacher=kind), 50), 2) for kind in ("constant", "linear", "inverse_sigmoid", "free")]
    [1.0, 0.5, 0.5, 0.0]
    """
    from math import exp

    done = step / max(options.max_steps, 1)
    if options.teacher == "linear":
        return 1 - done
    if options.teacher == "inverse_sigmoid":
        return 1 / (1 + exp(12 * (done - 0.5)))
    return 0.0 if options.teacher == "free" else 1.0
