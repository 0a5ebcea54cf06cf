"""Options of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from deepforecast.errors import ParameterError, format_list, format_value

TRAINER_DEFAULTS: dict[str, Any] = {
    "accelerator": "auto",
    "devices": 1,
    "precision": "32-true",
    "accumulate_grad_batches": 1,
    "gradient_clip_val": 1.0,
    "gradient_clip_algorithm": "norm",
    "enable_progress_bar": False,
}
"""Arguments of Lightning's Trainer that have other defaults here, or that the training code reads."""

TRAINER_CHOICES = {
    "precision": ("32-true", "bf16-mixed", "16-mixed"),
    "gradient_clip_algorithm": ("norm", "value"),
    "enable_progress_bar": (False, True),
}

MODEL_PARAMETERS = {
    "max_steps": "max_steps",
    "max_epochs": "max_epochs",
    "max_time": "time_limit",
    "val_check_interval": "validate_every",
    "check_val_every_n_epoch": "validate_every",
    "limit_val_batches": "validation_size",
    "overfit_batches": "recent_windows",
}
"""Arguments of Lightning's Trainer that cannot be passed, and the parameters of a model to use instead."""


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a training run; see the parameters of `models.neural.NeuralForecaster`.

    A `learning_rate` of 0 means that it is found by a range test, and is then multiplied by
    `lr_factor`. `frozen_steps` are numbers of steps, counted over all parts, after which a parameter
    is trained, by name. `trainer` has the arguments of Lightning's Trainer that are no fields of
    their own; `hyperparameters` are those logged by Lightning's loggers. A fit in two parts has
    further steps before or after this run.
    """

    max_steps: int
    batch_size: int
    learning_rate: float
    lr_factor: float = 1.0
    frozen_steps: Mapping[str, int] = field(default_factory=dict)
    weight_decay: float = 0.0
    lr_schedule: str = "one_cycle"
    warmup: float = 0.1
    gradient_clip_val: float | None = 1.0
    gradient_clip_algorithm: str = "norm"
    accumulate_grad_batches: int = 1
    ema_decay: float = 0.0
    teacher_forcing: str = "constant"
    validate_every: int = 50
    patience: int | None = None
    time_limit: float | None = None
    seed: int = 0
    precision: str = "32-true"
    accelerator: str = "auto"
    devices: Any = 1
    compile: bool = False
    enable_progress_bar: bool = False
    checkpoint_dir: str | None = None
    checkpoint_every: int = 100
    trainer: Mapping[str, Any] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    steps_before: int = 0
    steps_after: int = 0

    @property
    def total_steps(self) -> int:
        """Number of steps of all parts of the fit."""
        return self.steps_before + self.max_steps + self.steps_after


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


def check_trainer(trainer: Any) -> Any:
    """Return the parameter `trainer` unchanged; raise `ParameterError` for arguments that cannot be used.

    Lightning checks the others when training starts.
    """
    for name, value in trainer.items() if isinstance(trainer, dict) else ():
        if name in MODEL_PARAMETERS:
            raise ParameterError(
                f"`trainer` cannot contain {name!r}, got {name}={format_value(value)}.",
                hint=f"Use the parameter {MODEL_PARAMETERS[name]} of the model.",
                parameter="trainer",
                value=name,
            )
        rule = _violated_rule(name, value)
        if rule:
            raise ParameterError(
                f"{name!r} of `trainer` must be {rule}, got {format_value(value)}.", parameter="trainer", value=value
            )
    return trainer


def _violated_rule(name: str, value: Any) -> str:
    """Return what an argument of the Trainer must be, or an empty text if it is."""
    choices = TRAINER_CHOICES.get(name)
    if choices is not None:
        return "" if isinstance(value, str | bool) and value in choices else f"one of {format_list(choices)}"
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if name == "accumulate_grad_batches":
        return "" if isinstance(value, Integral) and is_number and int(value) >= 1 else "an integer of at least 1"
    if name == "gradient_clip_val":
        return "" if value is None or (is_number and value > 0) else "a number above 0, or None for no clipping"
    return "a logger of Lightning, a list of them, or False" if name == "logger" and value is True else ""
