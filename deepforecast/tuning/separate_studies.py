"""Separate studies for several models."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deepforecast.core.forecaster import Forecaster
from deepforecast.errors import ParameterError, ParameterTypeError, TrainingError, TrainingWarning, format_value, warn
from deepforecast.tuning.study import TuningOptions

if TYPE_CHECKING:
    from deepforecast.tuning.result import TuningResult

SearchFunction = Callable[[Forecaster, int, float, TuningOptions], "TuningResult"]


def tune_separately(
    models: Sequence[Forecaster], n_trials: int, deadline: float, options: TuningOptions, search: SearchFunction
) -> TuningResult:
    """Run a study per model and return the best result, with the others in `others`.

    Trials are divided equally; a model without a parameter to search gets one trial. `search(model,
    n_trials, deadline, options)` runs a study.
    """
    from deepforecast.tuning.ranges import resolve_ranges
    from deepforecast.tuning.space import refuse_unknown_models

    if n_trials < len(models):
        raise ParameterError(
            f"`n_trials` must be at least the number of models ({len(models)}), as trials are divided among their studies, got "
            f"{n_trials}.",
            parameter="n_trials",
            value=n_trials,
        )
    refuse_unknown_models([model.name for model in models], options.space)
    spaces = [(options.space or {}).get(model.name) for model in models]  # type: ignore[union-attr]
    has_ranges = [bool(resolve_ranges(model, space)) for model, space in zip(models, spaces, strict=True)]
    trial_shares = iter(_share_trials(n_trials - has_ranges.count(False), has_ranges.count(True)))
    tuning_results: list[TuningResult] = []
    last_error = None
    for index, (model, space) in enumerate(zip(models, spaces, strict=True)):
        model_options = replace(options, space=space, initial_params=_initial_params_of(model, options.initial_params))
        seconds_left = deadline - time.monotonic()
        # an equal share of the time that is left
        model_deadline = (
            deadline if seconds_left == math.inf else time.monotonic() + max(seconds_left, 0.0) / (len(models) - index)
        )
        try:
            tuning_results.append(search(model, next(trial_shares) if has_ranges[index] else 1, model_deadline, model_options))
        except TrainingError as error:
            last_error = error
            warn(f"The study of {model.name} failed and is left out of the result: {error}", TrainingWarning)
        except KeyboardInterrupt:
            if not tuning_results:
                raise
            warn(
                f"The search was interrupted before the first trial of {model.name}, which is left out of the result.",
                TrainingWarning,
            )
            break
        if tuning_results and tuning_results[-1].settings.get("interrupted"):
            break
    if last_error is not None and not tuning_results:
        raise last_error
    best_result = min(tuning_results, key=lambda tuning_result: tuning_result.best_value)
    return replace(
        best_result, others=tuple(tuning_result for tuning_result in tuning_results if tuning_result is not best_result)
    )


def _share_trials(n_trials: int, n_studies: int) -> list[int]:
    """Equal numbers of trials for each study; the first studies get the remainder."""
    return [n_trials // n_studies + (index < n_trials % n_studies) for index in range(n_studies)]


def _initial_params_of(model: Forecaster, initial_params: Any) -> Any:
    """The initial configurations of a model: dicts with its name and results of its own search."""
    from deepforecast.tuning.result import TuningResult
    from deepforecast.tuning.space import MODEL_PARAM

    model_params = list[Any]()
    for candidate in initial_params if isinstance(initial_params, list | tuple) else [initial_params]:
        if isinstance(candidate, TuningResult):
            model_params += [
                tuning_result for tuning_result in (candidate, *candidate.others) if tuning_result.space.names == [model.name]
            ]
        elif not isinstance(candidate, Mapping) or MODEL_PARAM not in candidate:
            raise ParameterTypeError(
                f"With several models each dict of `initial_params` must contain the name of its model, e.g. "
                f"{{'{MODEL_PARAM}': {model.name!r}, ...}}, got {format_value(candidate)}.",
                parameter="initial_params",
            )
        elif candidate[MODEL_PARAM] == model.name:
            model_params.append({key: value for key, value in candidate.items() if key != MODEL_PARAM})
    return model_params
