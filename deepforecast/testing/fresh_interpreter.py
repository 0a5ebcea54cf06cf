"""A new Python process that loads saved models: started on first use, shared by all models, ended at exit.

`python -m deepforecast.testing.fresh_interpreter` is that process: it reads one JSON request per line from stdin and writes one
JSON reply per line to stdout.
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
from deepforecast.testing.assertions import RuleBroken, model_columns

if TYPE_CHECKING:
    from deepforecast.testing.subject import Subject

TRAINERS = ("pytorch_lightning", "lightning")


@dataclass(frozen=True)
class LoadedForecast:
    """Reply of the other process: repr, ids and timestamps, forecast columns, and the trainers it imported."""

    repr: str
    keys: list[str]
    columns: dict[str, Floats]
    imported_trainers: list[str]


def requires_importable_module(subject: Subject) -> str | None:
    """Return None if another process can import the module of the model, otherwise the reason why not."""
    module = subject.cls.__module__
    is_importable = module != "__main__" and find_spec(module.partition(".")[0]) is not None
    return None if is_importable else f"no other process can import the module {module}"


def load_and_forecast(cls: type[Forecaster], path: Path, level: Any) -> LoadedForecast:
    """Load a model from a file in a new process and forecast with it."""
    child = _start_child()
    line = _request(child, json.dumps({"module": cls.__module__, "path": str(path), "level": level}))
    if not line:
        _start_child.cache_clear()
        raise RuleBroken(f"the new process that loads the model must not exit, but ended with status {_close_child(child)}")
    reply = json.loads(line)
    if "error" in reply:
        raise RuleBroken(f"load and predict must work in a new process, got {reply['error']}")
    columns = {name: np.frombuffer(bytes.fromhex(text), dtype=np.float64) for name, text in reply["columns"].items()}
    return LoadedForecast(reply["repr"], reply["keys"], columns, reply["trainers"])


@lru_cache(maxsize=1)
def _start_child() -> subprocess.Popen[str]:
    """Start a Python process with this search path that answers requests on standard input until this
    process ends."""
    command = [sys.executable, "-m", "deepforecast.testing.fresh_interpreter"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    atexit.register(_close_child, child)
    return child


def _request(child: subprocess.Popen[str], request: str) -> str:
    """Send a request and return the reply; an empty string if the process has ended."""
    if child.stdin is None or child.stdout is None:
        return ""
    with suppress(BrokenPipeError):
        child.stdin.write(request + "\n")
        child.stdin.flush()
    return child.stdout.readline()


def _close_child(child: subprocess.Popen[str]) -> int:
    """Close stdin of the process, which ends it, and return its exit status."""
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    atexit.unregister(_close_child)
    return child.wait()


def main() -> None:
    """Reply to each request on stdin with the forecast of the loaded model or the error."""
    output = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        try:
            reply = _reply(**json.loads(line))
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        output.write(json.dumps(reply) + "\n")
        output.flush()


def _reply(module: str, path: str, level: Any) -> dict[str, Any]:
    """Load the model of a file, forecast, and describe both with exact bits; `trainers` lists the
    training libraries that were imported."""
    from deepforecast.core.model_file import load

    import_module(module)  # registers a model that is not in the index; the file does not contain its module
    model = load(path)
    frame = model.predict(level=level)
    return {
        "repr": repr(model),
        "keys": [str(key) for key in (*frame["unique_id"], *frame["ds"])],
        "columns": {name: values.tobytes().hex() for name, values in model_columns(frame, model.name).items()},
        "trainers": [name for name in TRAINERS if name in sys.modules],
    }


if __name__ == "__main__":
    main()
