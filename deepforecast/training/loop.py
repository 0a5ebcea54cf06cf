"""A network learns: the Trainer set up, run, and everything as it was afterwards but for the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deepforecast.core.monitor import Monitor
from deepforecast.core.threads import keep_buffers, limited
from deepforecast.errors import ParameterError, TrainingWarning, keeping, say, say_kept
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.checkpoints import Checkpoints
from deepforecast.training.finder import found_rate
from deepforecast.training.guard import LOOK, Guard, Record
from deepforecast.training.lightning import FitTraining
from deepforecast.training.options import Options
from deepforecast.training.policy import placed, precision_for, threads_for
from deepforecast.training.sampler import Every, Grouped, Steps
from deepforecast.training.setting import as_it_was, interrupted, trainer_for, watched


def learn(
    network: ForecastNetwork,
    steps: Steps,
    validation: Every | None,
    options: Options,
    monitor: Monitor,
    run: Mapping[str, Any] | None = None,
) -> Record:
    """Train in place; what was seen of it. `run`: what tells this run from others, for its checkpoints."""
    options = replace(options, precision=precision_for(options))
    checkpoints = _checkpoints(options, run or {})
    with as_it_was(options), limited(threads_for(network, options)), keep_buffers():
        network.train()
        try:
            if not options.learning_rate:
                options = replace(options, learning_rate=found_rate(network, steps, options) * options.share)
            guard = Guard(network, options, monitor, checkpoints, validation)
            with interrupted(guard):
                _run(guard, steps, options)
        finally:
            network.eval().cpu().zero_grad()
        if guard.interrupted:
            said = f"Training was interrupted at step {guard.at} of {options.max_steps}; what it had learned is kept."
            say(said, TrainingWarning)
        return guard.finish()


def _run(guard: Guard, steps: Steps, options: Options) -> None:
    several = not watched(options)
    training = FitTraining(guard.network, options, guard, several)
    if guard.at >= options.max_steps or (guard.checkpoints is not None and guard.checkpoints.ended):
        guard.begin(training.configure_optimizers())
        return
    trainer = trainer_for(options, several)
    device = trainer.strategy.root_device
    steps.begin, steps.windows = guard.at, placed(steps.windows, device)
    if guard.validation is not None:
        guard.validation.windows = steps.windows
    kept: Any = {}
    try:
        with keeping(kept):  # or what is said would point at a line of Lightning's
            trainer.fit(training, Grouped(steps, LOOK) if several else steps)
    finally:
        say_kept(kept)


def _checkpoints(options: Options, run: Mapping[str, Any]) -> Checkpoints | None:
    if options.checkpoint_dir is None:
        return None
    if options.precision == "16-mixed":
        raise ParameterError(
            "A run goes on from a checkpoint as if it had not been cut short, which precision='16-mixed', whose scale depends "
            "on all steps before, does not allow. Say precision='bf16-mixed' or '32-true', or checkpoint_dir=None."
        )
    return Checkpoints.of(options.checkpoint_dir, run)
