"""One fresh process that loads what was saved here: started when first needed, used for every model, ended with this one.

Run as `python -m deepforecast.testing.fresh_interpreter` it is that process: a line of JSON in, a line of JSON out.
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
    """What the other process says of a file."""

    repr: str
    keys: list[str]
    columns: dict[str, Floats]
    imported_trainers: list[str]


def requires_importable_module(subject: Subject) -> str | None:
    """A condition: the module of the model can be imported by name, as a fresh process has to."""
    module = subject.cls.__module__
    is_importable = module != "__main__" and find_spec(module.partition(".")[0]) is not None
    return None if is_importable else f"no other process can import the module {module}"


def load_and_forecast(cls: type[Forecaster], path: Path, level: Any) -> LoadedForecast:
    """What a fresh process loads from a file and forecasts with it."""
    child = _start_child()
    line = _ask(child, json.dumps({"module": cls.__module__, "path": str(path), "level": level}))
    if not line:
        _start_child.cache_clear()
        raise RuleBroken(f"the fresh process ended with status {_close_child(child)}")
    reply = json.loads(line)
    if "error" in reply:
        raise RuleBroken(f"in a fresh process: {reply['error']}")
    columns = {name: np.frombuffer(bytes.fromhex(text), dtype=np.float64) for name, text in reply["columns"].items()}
    return LoadedForecast(reply["repr"], reply["keys"], columns, reply["trainers"])


@lru_cache(maxsize=1)
def _start_child() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "deepforecast.testing.fresh_interpreter"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    atexit.register(_close_child, child)
    return child


def _ask(child: subprocess.Popen[str], question: str) -> str:
    """The line that the child answers; empty if it has ended."""
    if child.stdin is None or child.stdout is None:
        return ""
    with suppress(BrokenPipeError):
        child.stdin.write(question + "\n")
        child.stdin.flush()
    return child.stdout.readline()


def _close_child(child: subprocess.Popen[str]) -> int:
    """The child reads to the end of its input, and ends; its exit status."""
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    atexit.unregister(_close_child)
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
        "keys": [str(key) for key in (*frame["unique_id"], *frame["ds"])],
        "columns": {name: values.tobytes().hex() for name, values in model_columns(frame, model.name).items()},
        "trainers": [name for name in TRAINERS if name in sys.modules],
    }


if __name__ == "__main__":
    main()
