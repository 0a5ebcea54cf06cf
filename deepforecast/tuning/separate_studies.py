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
    models: Sequence[Forecaster], total: int, deadline: float, options: TuningOptions, search: SearchFunction
) -> TuningResult:
    """Run a study per model and return the best result, with the others in `others`.

    Trials are divided equally; a model without a parameter to search gets one trial. `search(model,
    n_trials, deadline, options)` runs a study.
    """
    from deepforecast.tuning.ranges import resolve_ranges
    from deepforecast.tuning.space import refuse_unknown_models

    if total < len(models):
        raise ParameterError(f"`n_trials` must be at least 1 for each of {len(models)} models, got {total}.")
    refuse_unknown_models([model.name for model in models], options.space)
    spaces = [(options.space or {}).get(model.name) for model in models]  # type: ignore[union-attr]
    has_ranges = [bool(resolve_ranges(model, space)) for model, space in zip(models, spaces, strict=True)]
    trial_shares = iter(_share_trials(total - has_ranges.count(False), has_ranges.count(True)))
    tuning_results, failure = list["TuningResult"](), None
    for number, (model, space) in enumerate(zip(models, spaces, strict=True)):
        model_options = replace(options, space=space, initial_params=_initial_params_of(model, options.initial_params))
        seconds_left = deadline - time.monotonic()
        model_deadline = (
            deadline if seconds_left == math.inf else time.monotonic() + max(seconds_left, 0.0) / (len(models) - number)
        )
        try:
            tuning_results.append(search(model, next(trial_shares) if has_ranges[number] else 1, model_deadline, model_options))
        except TrainingError as error:
            failure = error
            warn(f"The study of {model.name} failed and is left out: {error}", TrainingWarning)
        except KeyboardInterrupt:
            if not tuning_results:
                raise
            warn(f"The search was interrupted before the first trial of {model.name}, which is left out.", TrainingWarning)
            break
        if tuning_results and tuning_results[-1].settings.get("interrupted"):
            break
    if failure is not None and not tuning_results:
        raise failure
    best = min(tuning_results, key=lambda tuning_result: tuning_result.best_value)
    return replace(best, others=tuple(tuning_result for tuning_result in tuning_results if tuning_result is not best))


def _share_trials(total: int, count: int) -> list[int]:
    """Equal shares; the first ones get the remainder."""
    return [total // count + (number < total % count) for number in range(count)]


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
                f"With several models `initial_params` must have the model, e.g. {{'{MODEL_PARAM}': {model.name!r}, ...}}, got "
                f"{format_value(candidate)}."
            )
        elif candidate[MODEL_PARAM] == model.name:
            model_params.append({key: value for key, value in candidate.items() if key != MODEL_PARAM})
    return model_params
