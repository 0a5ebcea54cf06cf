"""A run on disk: weights, moments and record of the last steps, each file written whole or not at all, at most two."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepforecast.errors import TrainingError
from deepforecast.io import bundle

if TYPE_CHECKING:
    from deepforecast.training.guard import Guard

ENDING = ".checkpoint"
KEPT = 2
NOT_OF_THE_RUN = (
    "checkpoint_dir", "checkpoint_every", "progress", "time_limit", "accelerator", "devices", "strategy", "trainer", "alias"
)  # fmt: skip


@dataclass
class Checkpoints:
    """The checkpoints of one run in a folder of their own. `run`: what tells the run from others, by name."""

    folder: Path
    run: dict[str, str]
    found: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None

    @classmethod
    def of(cls, folder: str, run: Mapping[str, Any]) -> Checkpoints:
        """Those in a folder, the last one read; a folder that does not exist is made when one is written."""
        said = {name: value if isinstance(value, str) else repr(value) for name, value in run.items()}
        checkpoints = cls(Path(folder), {name: value for name, value in said.items() if name not in NOT_OF_THE_RUN})
        paths = sorted(checkpoints.folder.glob(f"*{ENDING}")) if checkpoints.folder.is_dir() else []
        if paths:
            checkpoints._read(paths[-1])
        return checkpoints

    @property
    def step(self) -> int:
        """The step to go on from."""
        return 0 if self.found is None else int(self.found[0]["step"])

    @property
    def ended(self) -> bool:
        """Whether the run was over before its last step."""
        return self.found is not None and bool(self.found[0]["why"])

    def write(self, guard: Guard) -> None:
        """The run as it is, for one that goes on from here."""
        record = asdict(guard.record)
        validation = record.pop("validation")
        manifest = {
            "run": self.run, "step": guard.at, "damping": guard.damping, "retries": guard.retries, "since": guard.since,
            "good_step": guard.good_step, "steps_undone": guard.steps_undone,
            "best": None if guard.best is None else guard.best[0], "kept": record.pop("kept"), "why": record.pop("why"),
        }  # fmt: skip
        arrays = {f"record:{name}": np.array(values) for name, values in record.items()}
        arrays |= {"validated": np.array(list(validation), dtype=np.int64), "validation": np.array(list(validation.values()))}
        arrays |= {f"weight:{name}": _array(value) for name, value in guard.network.state_dict().items()}
        for place, one in enumerate(guard.network.parameters()):
            arrays |= {f"moment:{place}:{name}": _array(value) for name, value in guard.optimizer.state[one].items()}
        if guard.average is not None:
            arrays |= {f"average:{place}": _array(one) for place, one in enumerate(guard.average.values)}
        if guard.best is not None:
            arrays |= {f"best:{name}": _array(value) for name, value in guard.best[1].items()}
        self._tidy()
        bundle.write(self.folder / f"step-{guard.at:09d}{ENDING}", manifest, arrays)

    def restore(self, guard: Guard) -> None:
        """The run as it was at the checkpoint."""
        if self.found is None:
            return
        manifest, arrays = self.found
        guard.network.load_state_dict(_tensors(arrays, "weight:"))
        for place, one in enumerate(guard.network.parameters()):
            held = _tensors(arrays, f"moment:{place}:")
            if held:
                guard.optimizer.state[one] = {name: value.to(one.device) for name, value in held.items()}
        if guard.average is not None:
            means = _tensors(arrays, "average:")
            guard.average.values = [means[str(place)].to(one.device) for place, one in enumerate(guard.average.values)]
        guard.damping, guard.retries, guard.since = manifest["damping"], manifest["retries"], manifest["since"]
        guard.good_step, guard.steps_undone = manifest["good_step"], manifest["steps_undone"]
        if manifest["best"] is not None:
            guard.best = (float(manifest["best"]), _tensors(arrays, "best:"))
        record = guard.record
        for name in ("loss", "rate", "norm", "seconds"):
            setattr(record, name, arrays[f"record:{name}"].tolist())
        record.validation = dict(zip(arrays["validated"].tolist(), arrays["validation"].tolist(), strict=True))
        record.kept, record.why = int(manifest["kept"]), str(manifest["why"])

    def _read(self, path: Path) -> None:
        self.found = bundle.read(path)
        other = self.found[0].get("run")
        if other != self.run:
            known = other if isinstance(other, dict) else {}
            differs = sorted(name for name in {*self.run, *known} if known.get(name) != self.run.get(name))
            raise TrainingError(
                f"A run goes on from its own checkpoints; {path} is of another one: other {', '.join(differs)}. Say another "
                "checkpoint_dir=, or delete the folder to begin anew."
            )

    def _tidy(self) -> None:
        """Room for one more beside the last ones; what a write that was cut short left behind goes."""
        for old in [*sorted(self.folder.glob(f"*{ENDING}"))[: 1 - KEPT], *self.folder.glob(".deepforecast-*.tmp")]:
            with suppress(FileNotFoundError):
                old.unlink()


def _array(value: Any) -> np.ndarray:
    return np.array(torch.as_tensor(value).detach().cpu().numpy(), order="C")


def _tensors(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, torch.Tensor]:
    return {name[len(prefix) :]: torch.from_numpy(one.copy()) for name, one in arrays.items() if name.startswith(prefix)}
