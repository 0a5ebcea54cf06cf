"""The identity of a study in its storage: calls that join or resume it must match."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import optuna

from deepforecast.core.state import fingerprint
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, format_value
from deepforecast.tuning.objective import Objective
from deepforecast.tuning.space import Configuration, format_params
from deepforecast.tuning.storage import describe_storage
from deepforecast.tuning.trial_recovery import GIVEN_CONFIGURATION

IDENTITY_KEY = "deepforecast"  # study attribute with the identity, set when the study is complete
MAX_WAIT = 10.0  # seconds to wait for the identity of a study that another process has just created
# parts of the identity -> their names in messages
LABELS = {
    "windows": "windows",
    "data": "data",
    "models": "models",
    "space": "ranges",
    "metric": "metrics",
    "tries": "seeds per trial",
}


def make_identity(panel: Panel, objective: Objective, holdout: int) -> dict[str, Any]:
    """The settings that identify a search."""
    plan = objective.plan
    windows = {"horizon": plan.horizon, "n_windows": plan.n_windows, "step_size": plan.step, "gap": plan.gap,
               "size": plan.train_size, "align": plan.align, "refit": str(objective.refit), "holdout": holdout}  # fmt: skip
    return {
        "data": describe_data(panel),
        "models": [repr(model) for model in objective.space.models],
        "space": objective.space.describe(),
        "metric": list(objective.objectives),
        "windows": windows,
        "tries": objective.n_seeds,
    }


def describe_data(panel: Panel) -> dict[str, Any]:
    """A description of the data with a fingerprint of all values."""
    series = panel.series
    return {
        "series": len(panel), "rows": len(panel.y), "frequency": str(series.calendar.frequency),
        "columns": repr(series.columns), "values": fingerprint(panel),
    }  # fmt: skip


def create_or_load_study(
    storage: Any,
    name: str,
    identity: dict[str, Any],
    configurations: Sequence[Configuration],
    objective: Objective,
    location: Any,
) -> optuna.Study:
    """Create the study with its initial configurations, or load it if its identity matches.

    `location`: the storage as passed by the caller, for messages.
    """
    directions = [optuna.study.StudyDirection.MINIMIZE] * len(objective.objectives)
    try:
        study = optuna.create_study(storage=storage, study_name=name, directions=directions)
        _initialize_study(study, identity, configurations, objective)
        return study
    except optuna.exceptions.DuplicatedStudyError:
        study = optuna.load_study(storage=storage, study_name=name)
    deadline = time.monotonic() + MAX_WAIT
    while IDENTITY_KEY not in study.user_attrs and time.monotonic() < deadline and len(study.directions) == len(directions):
        time.sleep(0.05)
    if IDENTITY_KEY not in study.user_attrs:
        if study.get_trials(deepcopy=False):
            raise ParameterError(
                f"The study {format_value(name)} in {describe_storage(location)} cannot be resumed, because it was not created "
                "by tune().",
                hint="Pass another `study_name`.",
            )
        _initialize_study(study, identity, configurations, objective)  # the process that created it died before this step
    _refuse_mismatch(study.user_attrs[IDENTITY_KEY], identity, name, location)
    return study


def _initialize_study(
    study: optuna.Study, identity: dict[str, Any], configurations: Sequence[Configuration], objective: Objective
) -> None:
    """Enqueue the initial configurations, then set the identity, which marks the study as complete."""
    study.set_metric_names(list(objective.objectives))
    for index, configuration in enumerate(configurations):
        given_configuration = {"model": configuration.model, "params": format_params(configuration.params)}
        start_name = "default" if not configuration.params else f"start {index}"
        study.enqueue_trial(
            objective.space.to_trial_params(configuration),
            user_attrs={GIVEN_CONFIGURATION: given_configuration, "start": start_name},
        )
    study.set_user_attr(IDENTITY_KEY, identity)


def _refuse_mismatch(stored: dict[str, Any], current: dict[str, Any], name: str, location: Any) -> None:
    """Raise an error with the first setting in which two searches differ."""
    for key, description in LABELS.items():
        stored_value = stored.get(key)
        current_value = current[key]
        if stored_value != current_value:
            stored_text, current_text = _difference(stored_value, current_value)
            raise ParameterError(
                f"The study {format_value(name)} in {describe_storage(location)} cannot be resumed with other {description}: it was "
                f"created with {format_value(stored_text, 300)}, and this call has {format_value(current_text, 300)}.",
                hint="Pass the same arguments, or another `study_name`.",
            )


def _difference(stored: Any, current: Any) -> tuple[str, str]:
    """The differing parts of two descriptions as text."""
    if isinstance(stored, dict) and isinstance(current, dict):
        keys = [key for key in {**stored, **current} if stored.get(key) != current.get(key)]
        if len(keys) == 1 and isinstance(stored.get(keys[0]), dict) and isinstance(current.get(keys[0]), dict):
            return _difference(stored[keys[0]], current[keys[0]])
        stored_text, current_text = (
            ", ".join(f"{key} {description.get(key)}" for key in keys) for description in (stored, current)
        )
        return stored_text, current_text
    return str(stored), str(current)
