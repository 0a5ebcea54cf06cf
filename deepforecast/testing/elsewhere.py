"""One fresh process that loads what was saved here: started when first needed, used for every model, ended with this one.

Run as `python -m deepforecast.testing.elsewhere` it is that process: a line of JSON in, a line of JSON out.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.forecaster import Forecaster
from deepforecast.data.frames import Floats
from deepforecast.testing.expect import RuleBroken, forecasts

if TYPE_CHECKING:
    from deepforecast.testing.subject import Subject

TRAINERS = ("pytorch_lightning", "lightning")


@dataclass(frozen=True)
class Found:
    """What the other process says of a file."""

    repr: str
    keys: list[str]
    columns: dict[str, Floats]
    trainers: list[str]


def importable(subject: Subject) -> str | None:
    """A condition: the module of the model can be imported by name, as a fresh process has to."""
    module = subject.cls.__module__
    found = module != "__main__" and find_spec(module.partition(".")[0]) is not None
    return None if found else f"no other process can import the module {module}"


def forecast(cls: type[Forecaster], path: Path, level: Any) -> Found:
    """What a fresh process loads from a file and forecasts with it."""
    child = _child()
    line = _asked(child, json.dumps({"module": cls.__module__, "path": str(path), "level": level}))
    if not line:
        _child.cache_clear()
        raise RuleBroken(f"the fresh process ended with status {_end(child)}")
    said = json.loads(line)
    if "error" in said:
        raise RuleBroken(f"in a fresh process: {said['error']}")
    columns = {name: np.frombuffer(bytes.fromhex(text), dtype=np.float64) for name, text in said["columns"].items()}
    return Found(said["repr"], said["keys"], columns, said["trainers"])


@lru_cache(maxsize=1)
def _child() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "deepforecast.testing.elsewhere"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    atexit.register(_end, child)
    return child


def _asked(child: subprocess.Popen[str], question: str) -> str:
    """The line that the child answers; empty if it has ended."""
    if child.stdin is None or child.stdout is None:
        return ""
    with suppress(BrokenPipeError):
        child.stdin.write(question + "\n")
        child.stdin.flush()
    return child.stdout.readline()


def _end(child: subprocess.Popen[str]) -> int:
    """The child reads to the end of its input, and ends; its exit status."""
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    atexit.unregister(_end)
    return child.wait()


def main() -> None:
    """Answer each line of stdin: load the file, forecast, and say what came of it."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            answer = _answer(**json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _answer(module: str, path: str, level: Any) -> dict[str, Any]:
    from deepforecast.core.model_file import load

    import_module(module)  # registers a model that no index names; the file itself names no module
    model = load(path)
    frame = model.predict(level=level)
    return {
        "repr": repr(model),
        "keys": [str(one) for one in (*frame["unique_id"], *frame["ds"])],
        "columns": {name: values.tobytes().hex() for name, values in forecasts(frame, model.name).items()},
        "trainers": [name for name in TRAINERS if name in sys.modules],
    }


if __name__ == "__main__":
    main()
