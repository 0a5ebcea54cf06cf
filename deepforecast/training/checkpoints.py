"""A run on disk: weights, moments and record of the last steps, each file written whole or not at all, at most two."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepforecast.errors import ModelFileError, TrainingError
from deepforecast.io import bundle

if TYPE_CHECKING:
    from deepforecast.nn.network import ForecastNetwork
    from deepforecast.training.guard import Guard, Record
    from deepforecast.training.options import Options

ENDING = ".checkpoint"
KEPT = 2
NOT_OF_THE_RUN = ("checkpoint_dir", "checkpoint_every", "progress", "time_limit", "accelerator", "devices", "strategy", "trainer")


@dataclass
class Checkpoints:
    """The checkpoints of one run in a folder of their own. `run`: what tells the run from others."""

    folder: Path
    run: dict[str, str]
    every: int
    found: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None
    path: Path | None = None
    _written: int = field(default=0)

    @classmethod
    def of(cls, options: Options, data: str, network: ForecastNetwork) -> Checkpoints:
        """Those in the folder of the options, the last one read; a folder that does not exist is made when one is written."""
        said = {name: repr(value) for name, value in asdict(options).items() if name not in NOT_OF_THE_RUN}
        shapes = [(name, tuple(value.shape)) for name, value in network.state_dict().items()]
        run = {**said, "data": data, "network": hashlib.sha256(repr(shapes).encode()).hexdigest()[:16]}
        folder = Path(str(options.checkpoint_dir))
        checkpoints = cls(folder, run, options.checkpoint_every)
        paths = sorted(folder.glob(f"*{ENDING}")) if folder.is_dir() else []
        if paths:
            checkpoints._read(paths[-1])
        return checkpoints

    @property
    def step(self) -> int:
        """The step to go on from."""
        return 0 if self.found is None else int(self.found[0]["step"])

    def maybe_write(self, guard: Guard, optimizer: torch.optim.Optimizer) -> None:
        """Write one, if it is time for one or the run ends."""
        step = guard.training.at
        if step - max(self._written, self.step) < self.every and step < guard.training.options.max_steps:
            return
        self._written = step
        record = asdict(guard.record)
        validation = {str(at): value for at, value in record.pop("validation").items()}
        text = {"kept": record.pop("kept"), "why": record.pop("why")}
        arrays = {f"record:{name}": np.array(values) for name, values in record.items()}
        arrays |= {f"weight:{name}": _array(value) for name, value in guard.training.network.state_dict().items()}
        for place, one in enumerate(guard.training.network.parameters()):
            arrays |= {f"moment:{place}:{name}": _array(value) for name, value in optimizer.state[one].items()}
        arrays |= {f"average:{place}": _array(one) for place, one in enumerate(guard.average or ())}
        best, weights = guard.best or (None, {})
        arrays |= {f"best:{name}": _array(value) for name, value in weights.items()}
        manifest = {
            "run": self.run, "step": step, "damping": guard.training.damping, "retries": guard.retries, "since": guard.since,
            "best": best, "validation": validation, **text,
        }  # fmt: skip
        self.folder.mkdir(parents=True, exist_ok=True)
        bundle.write(self.folder / f"step-{step:09d}{ENDING}", manifest, arrays)
        for old in sorted(self.folder.glob(f"*{ENDING}"))[:-KEPT]:
            old.unlink()

    def restore(self, guard: Guard, optimizer: torch.optim.Optimizer) -> None:
        """The run as it was at the checkpoint."""
        if self.found is None:
            return
        manifest, arrays = self.found
        self._weights(guard.training.network, arrays, "weight:")
        for place, one in enumerate(guard.training.network.parameters()):
            prefix = f"moment:{place}:"
            held = {name[len(prefix) :]: value for name, value in arrays.items() if name.startswith(prefix)}
            # the count of steps stays where the optimiser keeps it, the moments beside the weights
            optimizer.state[one] = {name: torch.from_numpy(value.copy()).to(one.device) for name, value in held.items()}
        if guard.average is not None:
            guard.average = [torch.from_numpy(arrays[f"average:{i}"].copy()).to(one.device) for i, one in enumerate(guard.average)]
        guard.training.damping, guard.retries, guard.since = manifest["damping"], manifest["retries"], manifest["since"]
        if manifest["best"] is not None:
            best = {name[5:]: torch.from_numpy(value.copy()) for name, value in arrays.items() if name.startswith("best:")}
            guard.best = (float(manifest["best"]), best)
        self.fill(guard.record)

    def fill(self, record: Record) -> None:
        """What the run did up to the checkpoint."""
        if self.found is None:
            return
        manifest, arrays = self.found
        for name in ("loss", "rate", "norm", "seconds"):
            setattr(record, name, arrays[f"record:{name}"].tolist())
        record.validation = {int(at): float(value) for at, value in manifest["validation"].items()}
        record.kept, record.why = int(manifest["kept"]), str(manifest["why"])

    def _read(self, path: Path) -> None:
        self.path, self.found = path, bundle.read(path)
        other = self.found[0].get("run")
        if other != self.run:
            differs = sorted(name for name in self.run if not isinstance(other, dict) or other.get(name) != self.run[name])
            raise TrainingError(
                f"A run goes on from its own checkpoints; {path} is of another one ({', '.join(differs) or 'unknown'} differ). Say "
                "another checkpoint_dir=, or delete the folder to begin anew."
            )

    @staticmethod
    def _weights(network: ForecastNetwork, arrays: dict[str, np.ndarray], prefix: str) -> None:
        held = {name[len(prefix) :]: torch.from_numpy(value.copy()) for name, value in arrays.items() if name.startswith(prefix)}
        try:
            network.load_state_dict(held)
        except RuntimeError as error:
            raise ModelFileError(f"A checkpoint holds the weights of its network; this one does not: {error}") from error


def _array(value: Any) -> np.ndarray:
    return np.ascontiguousarray(torch.as_tensor(value).detach().cpu().numpy())
