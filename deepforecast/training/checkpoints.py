"""Copies of the state of a run: snapshots and averages of weights in memory, and checkpoints of the run, written atomically.

The last two checkpoints of a run stay on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepforecast.core import encoding
from deepforecast.errors import TrainingError
from deepforecast.nn.network import ForecastNetwork

if TYPE_CHECKING:
    from deepforecast.training.callbacks import TrainingMonitor

SUFFIX = ".checkpoint"
MAX_CHECKPOINTS = 2
# Parameters that may differ when a run is resumed.
IGNORED_PARAMETERS = (
    "checkpoint_dir", "checkpoint_every", "time_limit", "trainer", "alias"
)  # fmt: skip

Weights = dict[str, Tensor]
"""A state dict: weights and buffers by name."""


@dataclass
class Checkpoints:
    """The checkpoints of one run, in a folder of their own.

    Parameters
    ----------
    folder : Path
    run : dict of str
        Settings and data of the run, as texts; a checkpoint with other ones is refused.
    contents : (dict, dict), optional
        Manifest and arrays of the last checkpoint.
    """

    folder: Path
    run: dict[str, str]
    contents: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None

    @classmethod
    def from_folder(cls, folder: str, run: Mapping[str, Any]) -> Checkpoints:
        """Read the last checkpoint of a folder, if there is one.

        A missing folder is created with the first checkpoint. Raises `TrainingError` if the
        checkpoint is that of another run.
        """
        run_texts = {
            name: value if isinstance(value, str) else repr(value) for name, value in run.items()
        }
        checkpoints = cls(
            Path(folder),
            {name: value for name, value in run_texts.items() if name not in IGNORED_PARAMETERS},
        )
        paths = sorted(checkpoints.folder.glob(f"*{SUFFIX}")) if checkpoints.folder.is_dir() else []
        if paths:
            checkpoints._read(paths[-1])
        return checkpoints

    @property
    def step(self) -> int:
        """Step to resume from."""
        return 0 if self.contents is None else int(self.contents[0]["step"])

    @property
    def stopped_early(self) -> bool:
        """Whether the run ended before its last step for another reason, e.g. early stopping."""
        return self.contents is not None and bool(self.contents[0]["stop_reason"])

    def write(self, training_monitor: TrainingMonitor) -> None:
        """Write the state of the run; it and the checkpoint before it stay, older ones are deleted."""
        record = asdict(training_monitor.record)
        validation = record.pop("validation_loss")
        manifest = {
            "run": self.run, "step": training_monitor.step, "lr_damping": training_monitor.lr_damping,
            "n_retries": training_monitor.n_retries, "checks_without_improvement": training_monitor.checks_without_improvement,
            "good_step": training_monitor.good_step, "n_undone_steps": training_monitor.n_undone_steps,
            "precision": training_monitor.precision_plugin.state_dict(),
            "best": None if training_monitor.best is None else training_monitor.best[0],
            "best_step": record.pop("best_step"), "stop_reason": record.pop("stop_reason"),
        }  # fmt: skip
        arrays = {f"record:{name}": np.array(values) for name, values in record.items()}
        arrays |= {
            "validation_steps": np.array(list(validation), dtype=np.int64),
            "validation_loss": np.array(list(validation.values())),
        }
        arrays |= {
            f"weight:{name}": _to_array(value)
            for name, value in training_monitor.network.state_dict().items()
        }
        for index, parameter in enumerate(training_monitor.network.parameters()):
            arrays |= {
                f"moment:{index}:{name}": _to_array(value)
                for name, value in training_monitor.optimizer.state[parameter].items()
            }
        if training_monitor.weight_average is not None:
            arrays |= {
                f"average:{index}": _to_array(parameter)
                for index, parameter in enumerate(training_monitor.weight_average.values)
            }
        if training_monitor.best is not None:
            arrays |= {
                f"best:{name}": _to_array(value) for name, value in training_monitor.best[1].items()
            }
        self._delete_old()
        encoding.write_archive(self.folder / f"step-{training_monitor.step:09d}{SUFFIX}", manifest, arrays)

    def restore(self, training_monitor: TrainingMonitor) -> None:
        """Restore the state of the run from the last checkpoint."""
        if self.contents is None:
            return
        manifest, arrays = self.contents
        training_monitor.network.load_state_dict(_select_tensors(arrays, "weight:"))
        for index, parameter in enumerate(training_monitor.network.parameters()):
            moments = _select_tensors(arrays, f"moment:{index}:")
            if moments:
                training_monitor.optimizer.state[parameter] = {
                    name: value.to(parameter.device) for name, value in moments.items()
                }
        if training_monitor.weight_average is not None:
            means = _select_tensors(arrays, "average:")
            training_monitor.weight_average.values = [
                means[str(index)].to(parameter.device)
                for index, parameter in enumerate(training_monitor.weight_average.values)
            ]
        training_monitor.precision_plugin.load_state_dict(manifest["precision"])
        training_monitor.lr_damping = manifest["lr_damping"]
        training_monitor.n_retries = manifest["n_retries"]
        training_monitor.checks_without_improvement = manifest["checks_without_improvement"]
        training_monitor.good_step = manifest["good_step"]
        training_monitor.n_undone_steps = manifest["n_undone_steps"]
        if manifest["best"] is not None:
            training_monitor.best = (float(manifest["best"]), _select_tensors(arrays, "best:"))
        record = training_monitor.record
        for name in ("loss", "learning_rate", "gradient_norm", "seconds"):
            setattr(record, name, arrays[f"record:{name}"].tolist())
        record.validation_loss = dict(
            zip(arrays["validation_steps"].tolist(), arrays["validation_loss"].tolist(), strict=True)
        )
        record.best_step, record.stop_reason = int(manifest["best_step"]), str(manifest["stop_reason"])

    def _read(self, path: Path) -> None:
        """Read a checkpoint into `contents`; raise `TrainingError` if it is that of another run."""
        self.contents = encoding.read_archive(path)
        stored_run = self.contents[0].get("run")
        if stored_run != self.run:
            stored_texts = stored_run if isinstance(stored_run, dict) else {}
            differing = sorted(
                name
                for name in {*self.run, *stored_texts}
                if stored_texts.get(name) != self.run.get(name)
            )
            raise TrainingError(
                f"A run must be resumed with its own settings and data; those of {path} differ in: "
                f"{', '.join(differing)}.",
                hint="Set another `checkpoint_dir`, or delete the folder to start again."
            )

    def _delete_old(self) -> None:
        """Delete old checkpoints, so that with the next one `MAX_CHECKPOINTS` are left.

        Delete also the temporary files of interrupted writes.
        """
        for path in [
            *sorted(self.folder.glob(f"*{SUFFIX}"))[: 1 - MAX_CHECKPOINTS],
            *self.folder.glob(".deepforecast-*.tmp"),
        ]:
            with suppress(FileNotFoundError):
                path.unlink()


def _to_array(value: Any) -> np.ndarray:
    """Return a contiguous copy of a tensor or number as an array."""
    return np.array(torch.as_tensor(value).detach().cpu().numpy(), order="C")


def _select_tensors(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, torch.Tensor]:
    """Return copies of the arrays whose names have the prefix, as tensors by the rest of the name."""
    return {
        name[len(prefix) :]: torch.from_numpy(array.copy())
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


@dataclass
class ModelAverage:
    """Exponential moving average of the weights (EMA).

    Parameters
    ----------
    values : list of Tensor
        The averages, in the order of `network.parameters()`.
    decay : float
        Weight of the old average in an update.
    """

    values: list[Tensor]
    decay: float

    @classmethod
    def from_network(cls, network: ForecastNetwork, decay: float) -> ModelAverage:
        """Start from the current weights."""
        return cls([parameter.detach().clone() for parameter in network.parameters()], decay)

    def update(self, network: ForecastNetwork, step: int) -> None:
        """Update the average in place after training step `step` (from 1).

        The decay is at most (step + 1) / (step + 10), so that the first steps are forgotten faster.
        """
        decay = min(self.decay, (step + 1) / (step + 10))
        torch._foreach_lerp_(
            self.values, [parameter.detach() for parameter in network.parameters()], 1 - decay
        )

    def copy_to(self, network: ForecastNetwork) -> None:
        """Copy the average to the network."""
        with torch.no_grad():
            torch._foreach_copy_(list(network.parameters()), self.values)

    @contextmanager
    def applied(self, network: ForecastNetwork) -> Iterator[None]:
        """Replace the weights of the network by the average inside the block, and restore them after it."""
        weights = [parameter.detach().clone() for parameter in network.parameters()]
        self.copy_to(network)
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(list(network.parameters()), weights)


def take_snapshot(
    network: ForecastNetwork, optimizer: torch.optim.Optimizer, average: ModelAverage | None
) -> Any:
    """Return copies of weights and buffers, optimizer state and average, for `restore_snapshot`."""
    weights = {name: value.detach().clone() for name, value in network.state_dict().items()}
    moments = [
        {name: value.clone() for name, value in optimizer.state[parameter].items()}
        for parameter in network.parameters()
    ]
    return (
        weights,
        moments,
        None if average is None else [parameter.clone() for parameter in average.values],
    )


def restore_snapshot(
    snapshot: Any,
    network: ForecastNetwork,
    optimizer: torch.optim.Optimizer,
    average: ModelAverage | None,
) -> None:
    """Restore a snapshot in place; it can be restored several times."""
    weights, moments, average_values = snapshot
    network.load_state_dict(weights)
    optimizer.state.clear()
    for parameter, parameter_state in zip(network.parameters(), moments, strict=True):
        if parameter_state:
            optimizer.state[parameter] = {
                name: value.clone() for name, value in parameter_state.items()
            }
    if average is not None:
        average.values = [parameter.clone() for parameter in average_values]
