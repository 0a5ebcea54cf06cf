"""Scores on holdout windows after a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.trial import TrialState

from deepforecast.errors import suppress_warnings
from deepforecast.tuning import trial_recovery
from deepforecast.tuning.objective import Objective, format_error
from deepforecast.tuning.space import Configuration

if TYPE_CHECKING:
    import pandas as pd

    from deepforecast.tuning.result import TuningResult


def score_holdout(tuning_result: TuningResult, objective: Objective) -> pd.DataFrame:
    """Scores of the default and the best configuration in the search and on the holdout windows.

    A row per configuration, the default first; a failed one has its `error` and no score. `gain` and
    `gain_held_out` are the relative gains over the default in the search and on the holdout windows;
    `optimism` is their difference.
    """
    import pandas as pd

    best_configuration = tuning_result._configuration_of(tuning_result.best_trial)
    default = Configuration(best_configuration.model, {})
    rows: list[dict[str, Any]] = []
    for name, configuration, search in (
        ("default", default, _default_score(tuning_result, best_configuration.model)),
        ("best", best_configuration, tuning_result.best_value),
    ):
        with suppress_warnings():
            try:
                score = objective.run(configuration).values[0]
                message = ""
            except Exception as error:  # the result of the search must not be lost
                score = np.nan
                message = format_error(error)
        rows.append({"configuration": name, "search": search, "held_out": score, "error": message})
    table = pd.DataFrame(rows)
    for column, gain_column in (("search", "gain"), ("held_out", "gain_held_out")):
        table[gain_column] = 1 - table[column] / table[column].iloc[0]
    table["optimism"] = table["gain"] - table["gain_held_out"]
    return table[["configuration", "search", "held_out", "gain", "gain_held_out", "optimism", "error"]]


def _default_score(tuning_result: TuningResult, model: int) -> float:
    """The score in the search of the model as passed; NaN if its trial did not complete."""
    for trial in tuning_result.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        given_configuration = trial.user_attrs.get(trial_recovery.GIVEN_CONFIGURATION)
        if (
            trial.user_attrs.get("start") == "default"
            and given_configuration is not None
            and given_configuration["model"] == model
        ):
            return float(trial.values[0])
    return float("nan")
