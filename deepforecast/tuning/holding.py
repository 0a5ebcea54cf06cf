"""How much of what a search found holds where it did not look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.trial import TrialState

from deepforecast.errors import suppress_warnings
from deepforecast.tuning import survival
from deepforecast.tuning.objective import Objective, reason
from deepforecast.tuning.space import Configuration

if TYPE_CHECKING:
    import pandas as pd

    from deepforecast.tuning.result import TuningResult


def held_out(result: TuningResult, objective: Objective) -> pd.DataFrame:
    """Scores of the model as it is and of the best: in the search, and on the windows held out. `gain` is what the best
    promised over the model as it is, `gain_held_out` what it kept, both as shares; `optimism` is the difference of the two."""
    import pandas as pd

    best = result._tried(result.best_trial)
    usual = Configuration(best.model, {})
    rows: list[dict[str, Any]] = []
    for name, tried, search in (("default", usual, _found(result, best.model)), ("best", best, result.best_value)):
        with suppress_warnings():
            try:
                value, why = objective.run(tried).values[0], ""
            except Exception as error:  # the search is over, and found something: this is a row of it
                value, why = np.nan, reason(error)
        rows.append({"configuration": name, "search": search, "held_out": value, "error": why})
    table = pd.DataFrame(rows)
    for column, gain in (("search", "gain"), ("held_out", "gain_held_out")):
        table[gain] = 1 - table[column] / table[column].iloc[0]
    table["optimism"] = table["gain"] - table["gain_held_out"]
    return table[["configuration", "search", "held_out", "gain", "gain_held_out", "optimism", "error"]]


def _found(result: TuningResult, model: int) -> float:
    """The score of a model as it is."""
    for one in result.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        given = one.user_attrs.get(survival.GIVEN)
        if one.user_attrs.get("start") == "default" and given is not None and given["model"] == model:
            return float(one.values[0])
    return float("nan")
