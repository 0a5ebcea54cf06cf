"""Options of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEDULES = ("one_cycle", "cosine", "constant")


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a training run; see the parameters of `models.neural.NeuralForecaster`.

    A `learning_rate` of 0 means that it is found by a range test, and is then multiplied by
    `lr_factor`. `hyperparameters` are those logged by Lightning's loggers.
    """

    max_steps: int
    batch_size: int
    learning_rate: float
    lr_factor: float = 1.0
    weight_decay: float = 0.0
    lr_schedule: str = "one_cycle"
    warmup: float = 0.1
    gradient_clip_val: float | None = 1.0
    gradient_clip_algorithm: str = "norm"
    accumulate_grad_batches: int = 1
    ema_decay: float = 0.0
    teacher_forcing: str = "constant"
    sample_by_series: bool = False
    validate_every: int = 50
    patience: int | None = None
    time_limit: float | None = None
    seed: int = 0
    precision: str = "32-true"
    accelerator: str = "auto"
    devices: Any = 1
    compile: bool = False
    progress: bool = False
    checkpoint_dir: str | None = None
    checkpoint_every: int = 100
    trainer: Mapping[str, Any] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)


def schedule_factor(options: TrainingOptions, step: int) -> float:
    """Return the learning rate of a step (from 0) divided by the maximum learning rate.

    After a linear warmup it is constant, or a cosine decay (Loshchilov and Hutter 2017,
    arXiv:1608.03983) to 1e-3 ("one_cycle") or 0 ("cosine").

    Examples
    --------
    >>> [round(schedule_factor(TrainingOptions(5, 1, 0.1), step), 2) for step in range(5)]
    [1.0, 0.9, 0.63, 0.31, 0.07]
    """
    from math import cos, pi

    warmup_steps = max(round(options.warmup * options.max_steps), 1)
    if step + 1 < warmup_steps:
        return (step + 1) / warmup_steps
    if options.lr_schedule == "constant":
        return 1.0
    progress = min((step + 1 - warmup_steps) / max(options.max_steps - warmup_steps, 1), 1.0)
    minimum = 1e-3 if options.lr_schedule == "one_cycle" else 0.0
    # The factor below 1 keeps the learning rate of the last step above the minimum.
    return minimum + (1 - minimum) * 0.5 * (
        1 + cos(pi * progress * options.max_steps / (options.max_steps + 1))
    )


def teacher_forcing_ratio(options: TrainingOptions, step: int) -> float:
    """Return the probability of teacher forcing at a step (Bengio et al. 2015, arXiv:1506.03099).

    By the schedule it is 1 ("constant"), 0 ("free"), or decays from 1 to 0, linearly or as a
    sigmoid.

    Examples
    --------
    >>> from dataclasses import replace
    >>> plain = TrainingOptions(100, 1, 0.1)
    >>> schedules = [replace(plain, teacher_forcing=name) for name in ("constant", "linear", "inverse_sigmoid", "free")]
    >>> [round(teacher_forcing_ratio(options, 50), 2) for options in schedules]
    [1.0, 0.5, 0.5, 0.0]
    """
    from math import exp

    progress = step / max(options.max_steps, 1)
    if options.teacher_forcing == "linear":
        return 1 - progress
    if options.teacher_forcing == "inverse_sigmoid":
        return 1 / (1 + exp(12 * (progress - 0.5)))
    return 0.0 if options.teacher_forcing == "free" else 1.0
