"""All that the library says of fixed data, as text that compares to the bit; also by a process of another kind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
TIMES = {"fit_seconds": 1.0, "predict_seconds": 1.0, "peak_mb": 1.0}  # columns of a board that are measured
MOMENT = dict.fromkeys(("made", "seconds", "estimate_seconds"), "")  # settings of a board that are
Said = dict[str, dict[str, str]]


def everything() -> Said:
    """Forecasts of every model, windows, paths, boards, pages, files, the command line's words, and errors."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "models": {subject.name: of_a_model(subject.make(horizon=4), Path(folder)) for subject in representatives()},
            "board": of_a_board(),
            "program": of_the_program(Path(folder)),
            "errors": {str(number): told(act) for number, act in enumerate(MISTAKES)},
        }


def elsewhere(code: str = "", flags: tuple[str, ...] = (), **environment: str) -> Said:
    """The same, said by a fresh process that runs `code` first."""
    program = f"{code}\nimport json, sys\nfrom tests.everything import everything\njson.dump(everything(), sys.stdout)"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LC_", "LANG", "TZ"))}
    env = {**kept, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8", **environment}
    command = [sys.executable, *flags, "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


@cache
def settled() -> Said:
    """What a fresh process says: the measure for processes of any kind."""
    return elsewhere()


def representatives() -> list[Any]:
    """All baselines and models in models, and two of each other family that can run here: enough for what concerns the
    process."""
    from deepforecast.core import registry
    from deepforecast.core.registry import MODELS
    from deepforecast.testing.subject import make_subjects

    families: dict[str, list[str]] = {}
    for name, module in MODELS.items():
        package = getattr(registry.get(name), "package", None)
        if package is None or find_spec(package) is not None:
            families.setdefault(module.rpartition(".")[0], []).append(name)
    whole = ("deepforecast.models.baselines", "deepforecast.models")
    return make_subjects([name for family, names in families.items() for name in (names if family in whole else names[:2])])


def days() -> pd.DataFrame:
    """Three series of days with a week in them and a column known ahead."""
    rng = np.random.default_rng(4)
    stamps = pd.date_range("2024-01-01", periods=42)
    week = 20 + 5 * (np.arange(42) % 7)
    parts = [pd.DataFrame({"unique_id": one, "ds": stamps, "y": week + rng.normal(size=42)}) for one in ("I", "ı", "ä,1")]
    return pd.concat(parts, ignore_index=True)


def hours() -> pd.DataFrame:
    """A series of hours over the night in which Berlin's clocks go forward."""
    stamps = pd.date_range("2024-03-28", periods=72, freq="h", tz="Europe/Berlin")
    return pd.DataFrame({"ds": stamps, "y": 5 + np.arange(72) % 24 + np.random.default_rng(5).normal(size=72)})


def of_a_model(model: Any, folder: Path) -> str:
    """Forecasts with bands, windows of the past, paths and components where there are any, and the file."""
    from deepforecast import cross_validate, load

    levels = [50, 62.5] if model.capabilities.distribution is not None else None
    said = [text(model.clone().fit(frame).predict(level=levels)) for frame in (days(), hours())]
    said.append(text(cross_validate(model, days(), n_windows=2, level=levels)))
    model.fit(days())
    if model.capabilities.simulates:
        said.append(text(model.simulate(3, seed=1)))
    if model.capabilities.explains:
        said.append(text(model.explain()))
    model.save(folder / "model")
    said += [sha256((folder / "model").read_bytes()).hexdigest(), text(load(folder / "model").predict()), repr(model)]
    return "\n".join(said)


def of_a_board() -> dict[str, str]:
    """A comparison, its page, a picture's words and scores, without what was measured."""
    from deepforecast import Conformal, Drift, Naive, SeasonalNaive, check, compare, score
    from deepforecast.evaluation.report import render_page

    board = compare([Naive(), SeasonalNaive(), Drift(), Conformal(Naive())], days(), horizon=3, n_windows=2, level=50)
    settings = {name: "" if name in MOMENT else value for name, value in board.settings.items()}
    timeless = replace(board, table=board.table.assign(**TIMES), settings=settings)
    return {
        "board": text(timeless.table) + text(board.by_series) + text(board.significance) + repr(timeless),
        "page": sha256(render_page(timeless).encode()).hexdigest(),
        "scores": text(score(board.forecasts, metrics=["mae", "smape", "mase"], train=days())),
        "check": repr(check(days().drop(index=[5, 60]))),
    }


def of_the_program(folder: Path) -> dict[str, str]:
    """What commands write and print."""
    from deepforecast.cli import main

    data, fitted, ahead = (str(folder / name) for name in ("days.csv", "fitted.dfc", "ahead.csv"))
    Path(data).write_text(days().to_csv(index=False), encoding="utf-8")
    commands = [
        ["fit", data, "--model", "SeasonalNaive", "--horizon", "3", "--save", fitted],
        ["predict", fitted, "--level", "80", "--output", ahead],
        ["check", data],
        ["predict", fitted, "--level", "120"],
        ["compare", data, "--horizon", "3", "--models", "Naive:horizn=5"],
    ]
    said = {}
    for command in commands:
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = main(command)
        name = " ".join(Path(part).name for part in command)
        printed = f"{status}\n{out.getvalue()}\n{err.getvalue()}".replace(str(folder), "")
        said[name] = re.sub(r"in [0-9.]+ s;", "", printed)
    return {**said, "file": Path(ahead).read_text(encoding="utf-8")}


def text(frame: Any) -> str:
    """A frame as text, its numbers in hexadecimal."""
    columns = {name: [one.hex() if isinstance(one, float) else str(one) for one in frame[name].tolist()] for name in frame}
    return json.dumps(columns)


def told(act: Callable[[], object]) -> str:
    """The error that `act` raises, as text."""
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("a mistake was not refused")


def _naive(**given: Any) -> Any:
    from deepforecast import Naive

    return Naive(**{"horizon": 2, **given})


def _fit(frame: pd.DataFrame, **given: Any) -> object:
    return _naive().fit(frame, **given)


def _doubled() -> pd.DataFrame:
    return pd.concat([days(), days().iloc[[7, 50, 99]]], ignore_index=True)


def _scored(**given: Any) -> object:
    from deepforecast import cross_validate, score

    return score(cross_validate(_naive(), days()), **given)


def _compared(**given: Any) -> object:
    from deepforecast import compare

    return compare([_naive(), _naive(alias="B")], days(), **given)


def _registered(name: str) -> object:
    from deepforecast.core import registry

    return registry.get(name)


MISTAKES: tuple[Callable[[], object], ...] = (
    lambda: _naive(horizn=5, alas=1, levl=2),
    lambda: _naive(horizon=-1),
    lambda: _naive(horizon=True),
    lambda: _naive(missing="interpolat"),
    lambda: _naive().predict(),
    lambda: _naive().fit(days()).predict(level=[80, 100]),
    lambda: _naive().fit(days()).update(days()),
    lambda: _fit(_doubled()),
    lambda: _fit(days().drop(columns="y").assign(a=1, b=2, c=3)),
    lambda: _fit(days().assign(y="1,5")),
    lambda: _fit(days().assign(y=np.inf)),
    lambda: _fit(days(), freq="h"),
    lambda: _fit(days(), freq="İ"),
    lambda: _fit(days().assign(ds=days()["ds"].dt.strftime("%d/%m/%Y"))),
    lambda: _fit(days().assign(a=1.0, b=2.0, c=3.0), columns={"future": ["a", "b"], "past": ["c"]}),
    lambda: _fit(days(), columns={"futur": ["a"], "pst": ["b"]}),
    lambda: _scored(metrics=["mae", "accuracy", "precision"]),
    lambda: _compared(horizon=3, n_windows=99),
    lambda: _compared(horizon=3, metrics="nothing"),
    lambda: _registered("naive"),
)


def same(found: Mapping[str, Mapping[str, str]], wanted: Mapping[str, Mapping[str, str]]) -> None:
    """Every part is the same text."""
    for part, texts in wanted.items():
        assert found[part].keys() == texts.keys()
        different = [name for name, one in texts.items() if found[part][name] != one]
        assert not different, f"{part}: {', '.join(different)}"
