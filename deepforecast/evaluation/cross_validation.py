"""Rolling cross-validation: a thin shell on `core.rolling`, one frame out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from deepforecast.core.forecast import checked_horizon, checked_levels, columns_of
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.histories import usable
from deepforecast.core.parallel import map_chunks
from deepforecast.core.rolling import refit_every, roll
from deepforecast.data import frames
from deepforecast.data.columns import Columns
from deepforecast.data.cutoffs import Plan, windows
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, ParameterTypeError, say, shown, some


T = TypeVar("T")


@dataclass(frozen=True)
class Backtest:
    """The rarer options of a backtest.

    gap: rows left out between a cutoff and the first step judged. size: rows a window learns from (None: all before the cutoff, an
    expanding window). align: "series" counts cutoffs back from each series' own end, so that every series is in every window;
    "calendar" from the latest end of all, so that nothing after a cutoff is seen of any series. workers: processes at a time.
    seed: given to every model that has one. progress: a bar on stderr (default: in a terminal only).
    """

    gap: int = 0
    size: int | None = None
    align: Literal["series", "calendar"] = "series"
    workers: int = 1
    seed: int | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.gap, bool) or not hasattr(self.gap, "__index__") or self.gap < 0:
            raise ParameterError(f"gap is a whole number of rows, at least 0; got {shown(self.gap)}.")
        if self.size is not None:
            whole_number(self.size, "size")
        if self.align not in ("series", "calendar"):
            raise ParameterError(f"align is 'series' or 'calendar'; got {shown(self.align)}.")


def cross_validate(
    models: Forecaster | Sequence[Forecaster],
    frame: Frame,
    *,
    horizon: int | None = None,
    n_windows: int = 3,
    step_size: int | None = None,
    refit: Any = "auto",
    level: Any = None,
    freq: Any = None,
    columns: Columns | Mapping[str, Any] | None = None,
    static: Frame | None = None,
    options: Backtest = Backtest(),
) -> Frame:
    """Forecast `n_windows` stretches of the past, each from the rows before it only: `unique_id, ds, cutoff, y, <model>...`.

    `cutoff` is the last stamp a forecast has seen. `step_size` rows lie between cutoffs (default: the horizon, so that windows do not
    overlap). `refit`: "auto" (local models at every window, global ones once), True, False, or every k windows; between refits the
    parameters stay and the state moves on.

    >>> from deepforecast import Naive, SeasonalNaive, datasets
    >>> found = cross_validate([Naive(), SeasonalNaive()], datasets.load("air_passengers"), horizon=12, n_windows=2)
    >>> found.shape, list(found.columns)
    ((24, 6), ['unique_id', 'ds', 'cutoff', 'y', 'Naive', 'SeasonalNaive'])
    """
    candidates = [seeded(model, options.seed) for model in checked_models(models, horizon)]
    panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static)
    say_undeclared(panel)
    plan = planned(candidates, n_windows, step_size, options)
    levels = checked_levels(level)
    rows = Rows.of(panel, plan)
    panels = [panel] * len(candidates)
    if len(candidates) > 1:  # a single model that cannot use a declared covariate refuses it
        panels = [_usable_aloud(model, panel) for model in candidates]

    def work(number: int) -> Backtested:
        return backtest(candidates[number], panels[number], plan, refit, levels)

    for found in side_by_side(work, len(candidates), options):
        rows.columns |= found.columns
    return rows.frame(panel)


@dataclass(frozen=True)
class Backtested:
    """The forecast columns of one model over the rows of `Rows.of(panel, plan)`, and what they took."""

    columns: Mapping[str, Floats]
    fit_seconds: float
    predict_seconds: float


def backtest(model: Forecaster, panel: Panel, plan: Plan, refit: Any, levels: Sequence[float]) -> Backtested:
    """One model through all windows of a plan."""
    parts: list[dict[str, Floats]] = []
    fit, predict = 0.0, 0.0
    for fold in roll(model, panel, plan, every=refit_every(refit, model.capabilities.local)):
        flat = columns_of(fold.forecast, model.name, model.point_kind, levels, [])
        parts.append({name: values[fold.there.reshape(-1)] for name, values in flat.items()})
        fit, predict = fit + fold.fit_seconds, predict + fold.predict_seconds
    return Backtested({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, fit, predict)


def side_by_side(work: Callable[[int], T], count: int, options: Backtest) -> list[T]:
    """`work(0)`, `work(1)` ... in this process, or on `options.workers` of them (then with one thread each)."""
    if options.workers == 1 or count == 1:
        return [work(number) for number in range(count)]

    def chunk(part: slice) -> list[T]:
        return [work(number) for number in range(count)[part]]

    found = map_chunks(chunk, count, workers=options.workers, prefer="processes", progress=options.progress, label="models")
    return [one for part in found for one in part]


@dataclass
class Rows:
    """The rows judged, window after window: series, positions and columns, put in order (series, cutoff, step) at the end."""

    series: Ints
    position: Ints
    cutoff: Ints
    actual: Floats
    order: Ints
    columns: dict[str, Floats]

    @classmethod
    def of(cls, panel: Panel, plan: Plan) -> Rows:
        """The rows of every window of a plan that are there."""
        series, position, cutoff, actual = [], [], [], []
        for window in windows(panel, plan):
            rows, there = window.ahead(panel, plan.gap, plan.horizon)
            last = panel.start[window.series] + (window.cut - 1) * panel.calendar.step
            ahead = panel.calendar.following(last, plan.gap + plan.horizon)[:, plan.gap :]
            series.append(np.repeat(window.series, there.sum(axis=1)))
            position.append(ahead[there])
            cutoff.append(np.repeat(last, there.sum(axis=1)))
            actual.append(panel.y[rows[there]])
        flat = [np.concatenate(part) for part in (series, position, cutoff)]
        order = np.lexsort((flat[1], flat[2], flat[0]))
        return cls(flat[0], flat[1], flat[2], np.concatenate(actual), order, {})

    def frame(self, panel: Panel) -> Frame:
        """The long frame, in the caller's library."""
        names, series = panel.series.columns, panel.series
        held: dict[str, Any] = {}
        if names.id is not None and series.ids is not None:
            held[names.id] = frames.taken(series.ids, self.series[self.order])
        held[names.time] = series.time_column(self.position[self.order])
        held["cutoff"] = series.time_column(self.cutoff[self.order])
        held[names.target] = self.actual[self.order]
        held |= {name: values[self.order] for name, values in self.columns.items()}
        return frames.build(series.library, held)


def checked_models(models: Any, horizon: int | None) -> list[Forecaster]:
    """A list of models that agree on the horizon, cloned with it; each has a name of its own."""
    given = list(models) if isinstance(models, (list, tuple)) else [models]
    if not given:
        raise ParameterError("models is a model or a list of them; the list is empty.")
    for model in given:
        if not isinstance(model, Forecaster):
            hint = f" Did you mean {model.__name__}()?" if isinstance(model, type) else ""
            raise ParameterTypeError(f"models holds model objects; got {shown(model)} ({type(model).__name__}).{hint}")
    names = [model.name for model in given]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise ParameterError(f"Each model has a name of its own; {some(twice)} is there twice. Give alias= to one of them.")
    if horizon is not None:
        return [model.clone(horizon=checked_horizon(horizon)) for model in given]
    said = {model.horizon for model in given if model.horizon is not None}
    if len(said) != 1:
        found = "none of them says one" if not said else f"they say {some(sorted(said))}"
        raise ParameterError(f"horizon is given or the models agree on it; {found}. Say horizon=...")
    return [model.clone(horizon=said.copy().pop()) for model in given]


def planned(models: Sequence[Forecaster], n_windows: Any, step_size: Any, options: Backtest) -> Plan:
    """The checked plan of a backtest."""
    horizon = int(models[0].horizon or 0)
    step = horizon if step_size is None else whole_number(step_size, "step_size")
    return Plan(horizon, whole_number(n_windows, "n_windows"), step, int(options.gap), options.size, options.align)


def whole_number(value: Any, name: str) -> int:
    """An integer of at least 1."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < 1:
        raise ParameterError(f"{name} is a whole number, at least 1; got {shown(value)}.")
    return int(value)


def seeded(model: Forecaster, seed: int | None) -> Forecaster:
    """The model with that seed, if it has one."""
    return model.clone(seed=seed) if seed is not None and "seed" in model.get_params(deep=False) else model


def _usable_aloud(model: Forecaster, panel: Panel) -> Panel:
    own, unused = usable(panel, model.capabilities)
    if unused:
        say(f"{model.name} runs without the covariates it cannot use: {some(unused)}.")
    return own


def say_undeclared(panel: Panel) -> None:
    """One warning that names the columns without a role."""
    if panel.undeclared:
        say(f"Columns without a role are left out: {some(panel.undeclared)}. Declare them in columns= or drop them.")


