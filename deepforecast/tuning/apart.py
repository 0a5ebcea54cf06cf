"""A study for each of several models."""

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

Search = Callable[[Forecaster, int, float, TuningOptions], "TuningResult"]


def searched_apart(
    models: Sequence[Forecaster], total: int, until: float, options: TuningOptions, search: Search
) -> TuningResult:
    """Every model's study, with an equal share of the trials, or one trial where there is nothing to search; the result of the
    best, which holds the others. `search(model, trials, until, options)` runs one."""
    from deepforecast.tuning.ranges import ranges_for
    from deepforecast.tuning.space import refuse_strangers

    if total < len(models):
        raise ParameterError(f"n_trials is shared by {len(models)} models, one each at least; got {total}.")
    refuse_strangers([model.name for model in models], options.space)
    spaces = [(options.space or {}).get(model.name) for model in models]  # type: ignore[union-attr]
    several = [bool(ranges_for(model, space)) for model, space in zip(models, spaces, strict=True)]
    parts = iter(_parts(total - several.count(False), several.count(True)))
    found, failed = list["TuningResult"](), None
    for number, (model, space) in enumerate(zip(models, spaces, strict=True)):
        own = replace(options, space=space, initial_params=_of(model, options.initial_params))
        left = until - time.monotonic()
        share = until if left == math.inf else time.monotonic() + max(left, 0.0) / (len(models) - number)
        try:
            found.append(search(model, next(parts) if several[number] else 1, share, own))
        except TrainingError as error:
            failed = error
            warn(f"The study of {model.name} came to nothing, and is left out: {error}", TrainingWarning)
        except KeyboardInterrupt:
            if not found:
                raise
            warn(f"The search was interrupted before {model.name} had a trial; it is left out.", TrainingWarning)
            break
        if found and found[-1].settings.get("interrupted"):
            break
    if failed is not None and not found:
        raise failed
    best = min(found, key=lambda one: one.best_value)
    return replace(best, others=tuple(one for one in found if one is not best))


def _parts(total: int, count: int) -> list[int]:
    """Equal shares, the first ones of what is left over."""
    return [total // count + (number < total % count) for number in range(count)]


def _of(model: Forecaster, start: Any) -> Any:
    """Those configurations to begin with that are of a model: dicts that name it, results of its own search."""
    from deepforecast.tuning.result import TuningResult
    from deepforecast.tuning.space import MODEL

    own = list[Any]()
    for one in start if isinstance(start, list | tuple) else [start]:
        if isinstance(one, TuningResult):
            own += [each for each in (one, *one.others) if each.space.names == [model.name]]
        elif not isinstance(one, Mapping) or MODEL not in one:
            raise ParameterTypeError(
                f"With several models a start says which: {{'{MODEL}': {model.name!r}, ...}}; got {format_value(one)}."
            )
        elif one[MODEL] == model.name:
            own.append({key: value for key, value in one.items() if key != MODEL})
    return own
