"""What a study is about, kept in its storage: a call that joins or resumes it has to be about the same."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import optuna

from deepforecast.data.fingerprint import panel_fingerprint
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, format_value
from deepforecast.tuning.objective import Objective
from deepforecast.tuning.space import Configuration, written
from deepforecast.tuning.storage import told
from deepforecast.tuning.survival import GIVEN

IDENTITY = "deepforecast"  # the attribute of a study that says it, and that it is ready
PATIENCE = 10.0  # seconds that another process may take between making a study and saying what it is about
WORDS = {
    "windows": "windows", "data": "data", "models": "models", "space": "ranges", "metric": "metrics", "tries": "seeds a trial",
}  # fmt: skip


def identity_of(panel: Panel, objective: Objective, holdout: int) -> dict[str, Any]:
    """What tells this search from others."""
    plan = objective.plan
    windows = {"horizon": plan.horizon, "n_windows": plan.n_windows, "step_size": plan.step, "gap": plan.gap,
               "size": plan.train_size, "align": plan.align, "refit": str(objective.refit), "holdout": holdout}  # fmt: skip
    return {
        "data": described(panel), "models": [repr(model) for model in objective.space.models],
        "space": objective.space.told(), "metric": list(objective.objectives), "windows": windows, "tries": objective.n_seeds,
    }  # fmt: skip


def described(panel: Panel) -> dict[str, Any]:
    """Data in words, and a sum over all of them."""
    series = panel.series
    return {
        "series": len(panel), "rows": len(panel.y), "frequency": str(series.calendar.frequency),
        "columns": repr(series.columns), "values": panel_fingerprint(panel),
    }  # fmt: skip


def begun(
    storage: Any, name: str, about: dict[str, Any], starts: Sequence[Configuration], objective: Objective, where: Any
) -> optuna.Study:
    """The study of this name: made, with the configurations to start from, or joined, if it is about the same."""
    directions = [optuna.study.StudyDirection.MINIMIZE] * len(objective.objectives)
    try:
        study = optuna.create_study(storage=storage, study_name=name, directions=directions)
        _prepared(study, about, starts, objective)
        return study
    except optuna.exceptions.DuplicatedStudyError:
        study = optuna.load_study(storage=storage, study_name=name)
    waited = time.monotonic() + PATIENCE
    while IDENTITY not in study.user_attrs and time.monotonic() < waited and len(study.directions) == len(directions):
        time.sleep(0.05)
    if IDENTITY not in study.user_attrs:
        if study.get_trials(deepcopy=False):
            raise ParameterError(
                f"A study is resumed by what made it; {format_value(name)} in {told(where)} was not made by tune(). Say another "
                "study_name=."
            )
        _prepared(study, about, starts, objective)  # whoever made it did not live to say what it is about
    _refuse_other(study.user_attrs[IDENTITY], about, name, where)
    return study


def _prepared(study: optuna.Study, about: dict[str, Any], starts: Sequence[Configuration], objective: Objective) -> None:
    study.set_metric_names(list(objective.objectives))
    for number, one in enumerate(starts):
        note = {"model": one.model, "params": written(one.params)}
        kind = "default" if not one.params else f"start {number}"
        study.enqueue_trial(objective.space.spelled(one), user_attrs={GIVEN: note, "start": kind})
    study.set_user_attr(IDENTITY, about)


def _refuse_other(before: dict[str, Any], now: dict[str, Any], name: str, where: Any) -> None:
    """Name the first thing in which two searches differ, and both its values."""
    for key, words in WORDS.items():
        one, other = before.get(key), now[key]
        if one != other:
            first, second = _difference(one, other)
            raise ParameterError(
                f"A study goes on with what it was begun with; {format_value(name)} in {told(where)} was begun with other "
                f"{words}: {format_value(first, 300)}, not {format_value(second, 300)}. Say the same, or another study_name=."
            )


def _difference(one: Any, other: Any) -> tuple[str, str]:
    """The parts in which two descriptions differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        if len(keys) == 1 and isinstance(one.get(keys[0]), dict) and isinstance(other.get(keys[0]), dict):
            return _difference(one[keys[0]], other[keys[0]])
        first, second = (", ".join(f"{key} {each.get(key)}" for key in keys) for each in (one, other))
        return first, second
    return str(one), str(other)
