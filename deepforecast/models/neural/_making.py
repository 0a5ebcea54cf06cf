"""From a model's parameters and a panel to a trained network."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.monitor import Monitor
from deepforecast.core.preparing import refuse_short
from deepforecast.core.state import Learned
from deepforecast.core.threads import waiting_passively
from deepforecast.data import calendar_features, windows
from deepforecast.data.digest import digest
from deepforecast.data.frames import Floats
from deepforecast.data.frequency import seasons
from deepforecast.data.panel import Panel
from deepforecast.data.windows import Channels
from deepforecast.errors import ParameterError
from deepforecast.models.neural import _standing
from deepforecast.training.defaults import torch_defaults
from deepforecast.training.importing import ALONE, unnoticed

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.network import ForecastNetwork
    from deepforecast.training.options import Options

ANCHORED = ("standard", "robust", "min_max", "last", "revin", "difference")  # scalers that follow a shift of the data
LocationHead = Literal["point", "quantiles", "normal", "student_t", "laplace"]
PLACES: tuple[str, ...] = get_args(LocationHead)  # heads whose point is on the scale of the window
PASSES = 8  # over all windows, of max_steps="auto"
COUNTING = ("lognormal", "negative_binomial", "poisson", "zero_inflated", "tweedie")  # heads of values that are not negative


def learned(
    model: NeuralForecaster, panel: Panel, monitor: Monitor, before: Learned | None = None, share: float = 1.0
) -> Learned:
    """A network trained on a panel, from new weights or from those learned `before`, at a share of the learning rate."""
    with ALONE, waiting_passively("torch"), unnoticed():
        import torch
    # Tensors made in inference mode, in which a caller may be, cannot be trained.
    with ALONE, torch_defaults(), torch.inference_mode(False):
        return _learned(model, panel, monitor, before, share)


def _learned(model: NeuralForecaster, panel: Panel, monitor: Monitor, before: Learned | None, share: float) -> Learned:
    steps, channels = _steps(model), None if before is None else Channels.read(before["channels"])
    season = _season(model, panel) if before is None else int(before["season"])
    known = before if model.keeps_scale else None
    scales = _standing.scales(panel, model) if known is None else _standing.known_scales(model, known, panel)
    panel, plain = model._beside(panel, before), panel
    if channels is None:
        size = _input_size(model, panel, steps, season)
        channels = windows.channels(panel, size, steps, calendar_features.checked(model.calendar, panel.calendar))
        channels = model._columns_read(channels, panel)
    network = fresh(model, channels, season) if before is None else _copied(model, before)
    if before is None and network.ratio is not None:
        network.ratio.fill_(_ratio(panel, channels))
    if before is None:
        model._start(network, panel, channels, scales)
    shared = {"channels": channels.written(), "season": season}
    if model.scaler_scope == "panel":
        shared["scale"] = [float(one[0]) for one in scales]

    def so_far() -> tuple[Panel, Learned]:
        now = deepcopy(network).cpu().eval()
        return plain, Learned(_standing.at_end(panel, channels, scales), {**shared, "network": now, "record": {}})

    monitor.shows(so_far)
    record = _trained(model, Told(panel, channels, scales), network, monitor, share)
    monitor.shows(None)
    return Learned(_standing.at_end(panel, channels, scales), {**shared, "network": network, "record": record})


def fresh(model: NeuralForecaster, channels: Channels, season: int) -> ForecastNetwork:
    """An untrained network; its weights come from the seed, and nobody is kept waiting."""
    from deepforecast.nn.batch import Sizes
    from deepforecast.nn.drawing import Drawn
    from deepforecast.nn.embeddings import embedding_width
    from deepforecast.nn.heads import head as head_of
    from deepforecast.nn.network import ForecastNetwork

    temporal = [channels.counts[name] for name in channels.codes]
    static = [] if model.looks_up else [channels.counts[name] for name in channels.static_codes]
    with Drawn(model.seed):
        loss, grid = (model.loss if model.head == "point" else None), (_grid(model) if model.head == "quantiles" else None)
        head = head_of(model.head, loss=loss, quantiles=grid)
        known = channels.ahead + channels.clock_width + sum(map(embedding_width, temporal[: channels.ahead_codes]))
        sizes = Sizes(
            channels.input_size, channels.horizon, head.width,
            len(channels.numbers) + channels.clock_width + sum(map(embedding_width, temporal)), known,
            len(channels.static) + sum(map(embedding_width, static)), season, head.location, channels.circles, channels,
        )  # fmt: skip
        scaler = model.scaler + ("/series" if model.scaler_scope != "window" else "")
        return ForecastNetwork(
            sizes, model._body(sizes), head, scaler=scaler, temporal=temporal, static=static,
            codes_ahead=channels.ahead_codes,
        ).eval()  # fmt: skip


def options(model: NeuralForecaster, windows_there: int, rate: float = 1.0) -> Options:
    """The parameters that say how to train."""
    from deepforecast.training.options import Options

    batch = batch_size(model, windows_there)
    steps = usual_steps(windows_there, batch, model.most_steps) if isinstance(model.max_steps, str) else model.max_steps
    if model.max_epochs is not None:
        steps = max(-(-windows_there // (batch * model.accumulate_grad_batches)), 1) * model.max_epochs
    same = ("weight_decay", "lr_schedule", "warmup", "gradient_clip_val", "clip_value", "accumulate_grad_batches", "ema_decay",
            "validate_every", "patience", "time_limit", "seed", "precision", "accelerator", "devices", "strategy", "compile",
            "progress", "checkpoint_dir", "checkpoint_every")  # fmt: skip
    return Options(
        max_steps=steps, batch_size=batch, share=rate, evenly=model.sample_by == "series",
        learning_rate=0.0 if isinstance(model.learning_rate, str) else model.learning_rate * rate,
        teacher=getattr(model, "teacher", "constant"), trainer=model.trainer or {},
        hyperparameters=hyperparameters(model),
        **{name: getattr(model, name) for name in same},
    )  # fmt: skip


def hyperparameters(model: NeuralForecaster) -> dict[str, Any]:
    """The class and the parameters of a model in JSON's types, without the options of a Trainer."""
    given = {name: value for name, value in model.get_params().items() if name != "trainer"}
    text = json.dumps({"model": type(model).__name__, **given}, default=str)
    found: dict[str, Any] = json.loads(text)
    return found


def batch_size(model: NeuralForecaster, windows_there: int) -> int:
    """Windows of a step: as many as the model says, or so many that one pass over few windows takes some steps."""
    if not isinstance(model.batch_size, str):
        return model.batch_size
    return min(max(windows_there // PASSES, 32), model.largest_batch)


def usual_steps(windows_there: int, batch_size: int, most: int = 500) -> int:
    """Steps of training for so many windows: a few passes over them, at least 50 steps and at most 500; where more are allowed,
    they grow from there as the root of the batches that one pass takes.

    On few windows, more passes learn them by heart. On the parts to learn from of 10 and 60 short series of M1, of NN5 and of
    single ones, 8 passes had better points and far better bands than 20 or 40, in a twentieth of the time of 500 steps of 256.

    >>> usual_steps(40, 32), usual_steps(1_000, 125), usual_steps(300_000, 256), usual_steps(8_000_000, 1024, most=4500)
    (50, 64, 500, 4500)
    """
    batches = windows_there / batch_size
    root: float = batches**0.5
    usual = min(max(round(60 * root), 500), most)
    return min(max(round(PASSES * batches), 50), usual)


@lru_cache(maxsize=256)  # asked several times a forecast, and there are but a few
def narrowed(able: Capabilities, head: str, loss: str, scaler: str, shows: tuple[bool, bool], bounded: bool) -> Capabilities:
    """What head, loss, scaling and bounds leave of what networks can do."""
    adds_parts, attends = shows
    if head == "point":
        able = replace(able, distribution=None, learns_distribution=False, simulates=False)
    elif head != "quantiles":
        able = replace(able, distribution="analytic")
    anchored = scaler in ANCHORED and head not in COUNTING
    able = replace(able, shift_equivariant=anchored and loss not in ("smape", "owa"))
    if scaler == "none" or head in ("negative_binomial", "poisson", "zero_inflated"):
        able = replace(able, scale_equivariant=False, shift_equivariant=False)
    able = replace(able, explains=attends or (adds_parts and head in PLACES and scaler not in ("difference", "revin")))
    if head in COUNTING:
        able = replace(able, domain="positive" if head == "lognormal" else "nonnegative")
    return replace(able, shift_equivariant=False, scale_equivariant=False) if bounded else able


def report(record: dict[str, Any]) -> dict[str, Any]:
    """The columns of a training report."""
    steps = np.arange(1, len(record["loss"]) + 1)
    validation = np.full(len(steps), np.nan)
    validation[np.asarray(record["validated"], dtype=np.int64) - 1] = record["validation"]
    return {
        "step": steps, "loss": record["loss"], "rate": record["rate"], "gradient_norm": record["norm"],
        "seconds": record["seconds"], "validation": validation, "kept": steps == record["kept"],
    }  # fmt: skip


def batches(
    model: NeuralForecaster, panel: Panel, channels: Channels, scales: tuple[Floats, Floats]
) -> tuple[Any, Any]:
    """The batches to learn from, and those of windows held out if there are any; each series scaled as `scales` say."""
    from deepforecast.nn.windows import Windows
    from deepforecast.training.sampler import Every, Steps

    rows = windows.rows(panel, channels)
    rows = replace(rows, place=scales[0][:, None], spread=scales[1][:, None])
    held = Windows.of(rows)
    size, horizon, out = channels.input_size, channels.horizon, _held_out(model, panel)
    there = windows.places(panel, size, horizon, out, model.recent_windows)
    if not len(there.order):
        refuse_short(model, panel, 2)
    steps = Steps(
        held,
        rows,
        there,
        batch_size(model, len(there)),
        model.seed,
        model.sample_by == "series",
        1,
        parts=model.accumulate_grad_batches,
    )
    if not out:
        return steps, None
    return steps, Every(held, rows, windows.held_out(panel, horizon, out), 1024)


@dataclass(frozen=True)
class Told:
    """What a network learns from: a panel, which of its columns, and the scales of its series."""

    panel: Panel
    channels: Channels
    scales: tuple[Floats, Floats]


def _trained(
    model: NeuralForecaster, told: Told, network: ForecastNetwork, monitor: Monitor, rate: float
) -> dict[str, Any]:
    with unnoticed():
        from deepforecast.training.guard import Record
        from deepforecast.training.loop import learn

    if "_untrained" in model.__dict__:
        return _plain(Record(why="left to a Trainer of one's own"))
    train, validation = batches(model, told.panel, told.channels, told.scales)
    said = options(model, len(train.places), rate)
    train.end = said.max_steps
    run = {} if model.checkpoint_dir is None else {
        **model.get_params(deep=False), "model": type(model).__name__, "data": digest(told.panel),
        "weights": _weights(network),
    }  # fmt: skip
    record = learn(network, train, validation, said, monitor, run)
    return _plain(record, record.kept * said.batch_size * said.accumulate / len(train.places))


def _ratio(panel: Panel, channels: Channels) -> float:
    """What spreads of the scaler "level" are multiplied by, so that the usual window has spread 1."""
    import torch

    from deepforecast.nn.scaling import ratio_of

    plain = replace(channels, numbers=(), codes=(), static=(), static_codes=())
    rows = windows.rows(replace(panel, covariates={}, static={}), plain)
    begin, _ = rows.begin(*windows.places(panel, channels.input_size, channels.horizon).draw(0, 0, 4096, True))
    return ratio_of(torch.from_numpy(rows.y[begin[:, None] + np.arange(channels.input_size)]))


def _held_out(model: NeuralForecaster, panel: Panel) -> int:
    """Rows of each series that are not learned from: with patience= at least so many that there is something to wait for."""
    if model.validation_size is None:
        if model.patience is not None:
            raise ParameterError("patience= waits for a better loss on rows held out, and there are none. Say validation_size= too.")
        return 0
    longest = int(panel.lengths.max())
    if longest < model.validation_size + 2:
        raise ParameterError(
            f"validation_size= leaves rows to learn from; {model.validation_size} of at most {longest} in a series are too many."
        )
    return model.validation_size


def _plain(record: Any, passes: float = 0.0) -> dict[str, Any]:
    return {
        "loss": np.array(record.loss), "rate": np.array(record.rate), "norm": np.array(record.norm),
        "seconds": np.array(record.seconds), "validated": np.array(list(record.validation), dtype=np.int64),
        "validation": np.array(list(record.validation.values())), "kept": record.kept, "why": record.why,
        "passes": passes,
    }  # fmt: skip


def _weights(network: ForecastNetwork) -> str:
    """Of the weights a run begins with."""
    return sha256(b"".join(one.detach().cpu().numpy().tobytes() for one in network.state_dict().values())).hexdigest()[:16]


def _copied(model: NeuralForecaster, before: Learned) -> ForecastNetwork:
    network: ForecastNetwork = deepcopy(before["network"])
    return network


def _grid(model: NeuralForecaster) -> tuple[float, ...]:
    from deepforecast.models.neural._base import GRID

    if model.quantiles is not None and not model.quantiles:
        raise ParameterError("quantiles= is a list of probabilities, or None for 15 of them; this one is empty. Leave it out.")
    return tuple(sorted(set(model.quantiles or GRID)))


def _steps(model: NeuralForecaster) -> int:
    if model.horizon is None:
        raise ParameterError(
            f"A network learns to forecast so many steps: {type(model).__name__} needs its horizon before fit. Say "
            f"{type(model).__name__}(horizon=...)."
        )
    return model.horizon


def _season(model: NeuralForecaster, panel: Panel) -> int:
    """The season of errors and of the auto input size; of integer time, which tells none, 1."""
    if not isinstance(model.season_length, str):
        return model.season_length
    found = seasons(panel.calendar.frequency)
    return found[0] if found else 1


def _input_size(model: NeuralForecaster, panel: Panel, horizon: int, season: int) -> int:
    longest = int(panel.observed.max())
    if model.input_size == 0:
        if longest < 2:
            refuse_short(model, panel, 2)
        return 1
    if isinstance(model.input_size, str):
        needed = horizon + 1
        if longest < needed:
            refuse_short(model, panel, needed)
        return max(min(max(3 * horizon, 2 * season), longest - horizon), 1)
    if longest < model.input_size + horizon:
        refuse_short(model, panel, model.input_size + horizon)
    return model.input_size


