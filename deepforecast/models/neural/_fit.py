"""Training of a network from the parameters of a model and a panel."""

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
from deepforecast.core.preprocessing import refuse_short_series
from deepforecast.core.state import LearnedState
from deepforecast.core.threads import passive_waiting
from deepforecast.data import calendar_features, windows
from deepforecast.data.fingerprint import panel_fingerprint
from deepforecast.data.frames import Floats
from deepforecast.data.frequency import seasons
from deepforecast.data.panel import Panel
from deepforecast.data.windows import WindowColumns
from deepforecast.errors import ParameterError
from deepforecast.models.neural import _series_state
from deepforecast.training.defaults import torch_defaults
from deepforecast.training.imports import TRAINING_LOCK, quiet_import

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.network import ForecastNetwork
    from deepforecast.training.options import TrainingOptions

SHIFT_EQUIVARIANT_SCALERS = ("standard", "robust", "min_max", "last", "revin", "difference")
LocationHead = Literal["point", "quantiles", "normal", "student_t", "laplace"]
LOCATION_HEADS: tuple[str, ...] = get_args(LocationHead)  # their point forecast is loc + scale z
PASSES = 8  # epochs of max_steps="auto"
NONNEGATIVE_HEADS = ("lognormal", "negative_binomial", "poisson", "zero_inflated", "tweedie")


def fit_network(
    model: NeuralForecaster, panel: Panel, monitor: Monitor, previous: LearnedState | None = None, lr_factor: float = 1.0
) -> LearnedState:
    """Train a new network, or the one in `previous`; `lr_factor` multiplies the learning rate."""
    with TRAINING_LOCK, passive_waiting("torch"), quiet_import():
        import torch
    # A caller may be in inference mode, whose tensors cannot be trained.
    with TRAINING_LOCK, torch_defaults(), torch.inference_mode(False):
        return _fit_network(model, panel, monitor, previous, lr_factor)


def _fit_network(
    model: NeuralForecaster,
    panel: Panel,
    monitor: Monitor,
    previous: LearnedState | None,
    lr_factor: float,
) -> LearnedState:
    steps, columns = _required_horizon(model), None if previous is None else WindowColumns.from_dict(previous["channels"])
    season = _season(model, panel) if previous is None else int(previous["season"])
    scale_source = previous if model.keeps_series_scale else None
    scales = (
        _series_state.series_scales(panel, model)
        if scale_source is None
        else _series_state.known_scales(model, scale_source, panel)
    )
    panel, original_panel = model._add_series_columns(panel, previous), panel
    if columns is None:
        size = _input_size(model, panel, steps, season)
        columns = windows.fit_window_columns(
            panel, size, steps, calendar_features.validate_features(model.calendar, panel.calendar)
        )
        columns = model._select_columns(columns, panel)
    network = build_network(model, columns, season) if previous is None else _copy_network(model, previous)
    if previous is None and network.level_ratio is not None:
        network.level_ratio.fill_(_level_ratio(panel, columns))
    if previous is None:
        model._initialize(network, panel, columns, scales)
    shared = {"channels": columns.to_dict(), "season": season}
    if model.scaler_scope == "panel":
        shared["scale"] = [float(values[0]) for values in scales]

    def so_far() -> tuple[Panel, LearnedState]:
        current_network = deepcopy(network).cpu().eval()
        return original_panel, LearnedState(
            _series_state.last_observations(panel, columns, scales),
            {**shared, "network": current_network, "record": {}},
        )

    monitor.set_snapshot(so_far)
    record = _train(model, TrainingData(panel, columns, scales), network, monitor, lr_factor)
    monitor.set_snapshot(None)
    return LearnedState(
        _series_state.last_observations(panel, columns, scales),
        {**shared, "network": network, "record": record},
    )


def build_network(model: NeuralForecaster, columns: WindowColumns, season: int) -> ForecastNetwork:
    """Build an untrained network, with initial weights from the seed of the model."""
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.embeddings import embedding_width
    from deepforecast.nn.network import ForecastNetwork
    from deepforecast.nn.registry import make_head as head_of
    from deepforecast.nn.seeded_init import SeededInit

    temporal = [columns.counts[name] for name in columns.categorical]
    static = [] if model.uses_series_id else [columns.counts[name] for name in columns.static_codes]
    with SeededInit(model.seed):
        loss, levels = (
            (model.loss if model.head == "point" else None),
            (_quantile_levels(model) if model.head == "quantiles" else None),
        )
        head = head_of(model.head, loss=loss, quantiles=levels)
        future_width = columns.n_future + columns.calendar_width + sum(map(embedding_width, temporal[: columns.n_future_codes]))
        sizes = InputSizes(
            columns.input_size,
            columns.horizon,
            head.out_features,
            len(columns.numeric) + columns.calendar_width + sum(map(embedding_width, temporal)),
            future_width,
            len(columns.static) + sum(map(embedding_width, static)),
            season,
            head.location_slice,
            columns.cyclic_columns,
            columns,
        )
        scaler = model.scaler + ("/series" if model.scaler_scope != "window" else "")
        return ForecastNetwork(
            sizes, model._body(sizes), head, scaler=scaler, temporal=temporal, static=static,
            n_future_codes=columns.n_future_codes,
        ).eval()  # fmt: skip


def training_options(model: NeuralForecaster, n_windows: int, lr_factor: float = 1.0) -> TrainingOptions:
    """The options of the training loop from the parameters of the model."""
    from deepforecast.training.options import TrainingOptions

    size = batch_size(model, n_windows)
    steps = default_max_steps(n_windows, size, model.max_auto_steps) if isinstance(model.max_steps, str) else model.max_steps
    if model.max_epochs is not None:
        steps = max(-(-n_windows // (size * model.accumulate_grad_batches)), 1) * model.max_epochs
    shared_names = (
        "weight_decay",
        "lr_schedule",
        "warmup",
        "gradient_clip_val",
        "gradient_clip_algorithm",
        "accumulate_grad_batches",
        "ema_decay",
        "validate_every",
        "patience",
        "time_limit",
        "seed",
        "precision",
        "accelerator",
        "devices",
        "compile",
        "progress",
        "checkpoint_dir",
        "checkpoint_every",
    )
    return TrainingOptions(
        max_steps=steps, batch_size=size, lr_factor=lr_factor, sample_by_series=model.sample_by == "series",
        learning_rate=0.0 if isinstance(model.learning_rate, str) else model.learning_rate * lr_factor,
        teacher_forcing=getattr(model, "teacher_forcing", "constant"), trainer=model.trainer or {},
        hyperparameters=hyperparameters(model),
        **{name: getattr(model, name) for name in shared_names},
    )  # fmt: skip


def hyperparameters(model: NeuralForecaster) -> dict[str, Any]:
    """Class and parameters of the model as JSON types, without `trainer`."""
    settings = {name: value for name, value in model.get_params().items() if name != "trainer"}
    text = json.dumps({"model": type(model).__name__, **settings}, default=str)
    hyperparameters: dict[str, Any] = json.loads(text)
    return hyperparameters


def batch_size(model: NeuralForecaster, n_windows: int) -> int:
    """The batch size; "auto" gives several steps per epoch if there are few windows."""
    if not isinstance(model.batch_size, str):
        return model.batch_size
    return min(max(n_windows // PASSES, 32), model.max_auto_batch)


def default_max_steps(n_windows: int, batch_size: int, max_steps: int = 500) -> int:
    """The number of training steps of max_steps="auto".

    8 epochs, but at least 50 and at most 500 steps. If `max_steps` allows more than 500, the limit
    grows with the square root of the batches per epoch.

    More epochs overfit on few windows: on the training sets of 10 and 60 short series of M1, of NN5
    and of single series, 8 epochs had better point forecasts and much better intervals than 20 or
    40, in a twentieth of the time of 500 steps of 256 windows.

    >>> default_max_steps(40, 32), default_max_steps(1_000, 125), default_max_steps(300_000, 256)
    (50, 64, 500)
    >>> default_max_steps(8_000_000, 1024, max_steps=4500)
    4500
    """
    batches = n_windows / batch_size
    root: float = batches**0.5
    limit = min(max(round(60 * root), 500), max_steps)
    return min(max(round(PASSES * batches), 50), limit)


@lru_cache(maxsize=256)  # called several times per forecast, with few different arguments
def narrow_capabilities(
    capabilities: Capabilities,
    head: str,
    loss: str,
    scaler: str,
    explanations: tuple[bool, bool],
    bounded: bool,
) -> Capabilities:
    """The capabilities that remain with this head, loss, scaler and bounds.

    `explanations`: whether the model has components, and attention weights.
    """
    has_components, has_attention = explanations
    if head == "point":
        capabilities = replace(capabilities, distribution=None, learns_distribution=False, simulates=False)
    elif head != "quantiles":
        capabilities = replace(capabilities, distribution="analytic")
    anchored = scaler in SHIFT_EQUIVARIANT_SCALERS and head not in NONNEGATIVE_HEADS
    capabilities = replace(capabilities, shift_equivariant=anchored and loss not in ("smape", "owa"))
    if scaler == "none" or head in ("negative_binomial", "poisson", "zero_inflated"):
        capabilities = replace(capabilities, scale_equivariant=False, shift_equivariant=False)
    capabilities = replace(
        capabilities,
        explains=has_attention
        or (has_components and head in LOCATION_HEADS and scaler not in ("difference", "revin")),
    )
    if head in NONNEGATIVE_HEADS:
        capabilities = replace(capabilities, domain="positive" if head == "lognormal" else "nonnegative")
    return replace(capabilities, shift_equivariant=False, scale_equivariant=False) if bounded else capabilities


def training_report(record: dict[str, Any]) -> dict[str, Any]:
    """The columns of `training_report_`, one entry per step."""
    steps = np.arange(1, len(record["loss"]) + 1)
    validation = np.full(len(steps), np.nan)
    validation[np.asarray(record["validated"], dtype=np.int64) - 1] = record["validation"]
    return {
        "step": steps, "loss": record["loss"], "rate": record["rate"], "gradient_norm": record["norm"],
        "seconds": record["seconds"], "validation": validation, "kept": steps == record["kept"],
    }  # fmt: skip


def build_batches(
    model: NeuralForecaster, panel: Panel, columns: WindowColumns, scales: tuple[Floats, Floats]
) -> tuple[Any, Any]:
    """Training batches, and validation windows or None; `scales`: location and scale per series."""
    from deepforecast.nn.windows import WindowStore
    from deepforecast.training.sampler import ValidationWindows, WindowSampler

    rows = windows.window_arrays(panel, columns)
    rows = replace(rows, loc=scales[0][:, None], scale=scales[1][:, None])
    store = WindowStore.from_arrays(rows)
    size, horizon, n_validation = columns.input_size, columns.horizon, _validation_size(model, panel)
    window_index = windows.training_windows(panel, size, horizon, n_validation, model.recent_windows)
    if not len(window_index.order):
        refuse_short_series(model, panel, 2)
    steps = WindowSampler(
        store,
        rows,
        window_index,
        batch_size(model, len(window_index)),
        model.seed,
        model.sample_by == "series",
        1,
        accumulate_grad_batches=model.accumulate_grad_batches,
    )
    if not n_validation:
        return steps, None
    return steps, ValidationWindows(store, rows, windows.validation_windows(panel, horizon, n_validation), 1024)


@dataclass(frozen=True)
class TrainingData:
    """Training panel, the columns that the network uses, and location and scale per series."""

    panel: Panel
    window_columns: WindowColumns
    scales: tuple[Floats, Floats]


def _train(
    model: NeuralForecaster, training_data: TrainingData, network: ForecastNetwork, monitor: Monitor, lr_factor: float
) -> dict[str, Any]:
    with quiet_import():
        from deepforecast.training.loop import train
        from deepforecast.training.training_monitor import TrainingRecord

    if "_untrained" in model.__dict__:
        return _record_arrays(TrainingRecord(stop_reason="trained by a user's own Trainer"))
    sampler, validation = build_batches(model, training_data.panel, training_data.window_columns, training_data.scales)
    run_options = training_options(model, len(sampler.window_index), lr_factor)
    sampler.stop_step = run_options.max_steps
    run = {} if model.checkpoint_dir is None else {
        **model.get_params(deep=False), "model": type(model).__name__, "data": panel_fingerprint(training_data.panel),
        "weights": _weights_hash(network),
    }  # fmt: skip
    record = train(network, sampler, validation, run_options, monitor, run)
    return _record_arrays(
        record,
        record.best_step
        * run_options.batch_size
        * run_options.accumulate_grad_batches
        / len(sampler.window_index),
    )


def _level_ratio(panel: Panel, columns: WindowColumns) -> float:
    """Factor of the scales of the scaler "level" that gives typical windows unit variance."""
    import torch

    from deepforecast.nn.scaling import level_ratio

    plain = replace(columns, numeric=(), categorical=(), static=(), static_codes=())
    rows = windows.window_arrays(replace(panel, covariates={}, static={}), plain)
    begin, _ = rows.window_start(*windows.training_windows(panel, columns.input_size, columns.horizon).draw(0, 0, 4096, True))
    return level_ratio(torch.from_numpy(rows.y[begin[:, None] + np.arange(columns.input_size)]))


def _validation_size(model: NeuralForecaster, panel: Panel) -> int:
    if model.validation_size is None:
        if model.patience is not None:
            raise ParameterError(
                "`patience` cannot be used without a validation set. Set `validation_size` to "
                "the number of observations to hold out per series."
            )
        return 0
    longest = int(panel.lengths.max())
    if longest < model.validation_size + 2:
        raise ParameterError(
            "`validation_size` must leave at least 2 time steps to train on, got "
            f"{model.validation_size} with at "
            f"most {longest} in a series. Set validation_size to at most {longest - 2}."
        )
    return model.validation_size


def _record_arrays(record: Any, passes: float = 0.0) -> dict[str, Any]:
    return {
        "loss": np.array(record.loss), "rate": np.array(record.rate), "norm": np.array(record.norm),
        "seconds": np.array(record.seconds), "validated": np.array(list(record.validation), dtype=np.int64),
        "validation": np.array(list(record.validation.values())), "kept": record.best_step,
        "why": record.stop_reason, "passes": passes,
    }  # fmt: skip


def _weights_hash(network: ForecastNetwork) -> str:
    return sha256(
        b"".join(
            tensor.detach().cpu().numpy().tobytes() for tensor in network.state_dict().values()
        )
    ).hexdigest()[:16]


def _copy_network(model: NeuralForecaster, previous: LearnedState) -> ForecastNetwork:
    network: ForecastNetwork = deepcopy(previous["network"])
    return network


def _quantile_levels(model: NeuralForecaster) -> tuple[float, ...]:
    from deepforecast.models.neural._base import DEFAULT_QUANTILES

    if model.quantiles is not None and not model.quantiles:
        raise ParameterError(
            "`quantiles` must be a non-empty list of probabilities, or None for 15 levels, got "
            "an empty list. Leave it out."
        )
    return tuple(sorted(set(model.quantiles or DEFAULT_QUANTILES)))


def _required_horizon(model: NeuralForecaster) -> int:
    if model.horizon is None:
        raise ParameterError(
            f"{type(model).__name__} must have a horizon before `fit`, as the network is trained "
            f"for it. Set {type(model).__name__}(horizon=...)."
        )
    return model.horizon


def _season(model: NeuralForecaster, panel: Panel) -> int:
    """Season length of scaled errors and of input_size="auto"; 1 for integer time."""
    if not isinstance(model.season_length, str):
        return model.season_length
    lengths = seasons(panel.calendar.frequency)
    return lengths[0] if lengths else 1


def _input_size(model: NeuralForecaster, panel: Panel, horizon: int, season: int) -> int:
    longest = int(panel.observed.max())
    if model.input_size == 0:
        if longest < 2:
            refuse_short_series(model, panel, 2)
        return 1
    if isinstance(model.input_size, str):
        needed = horizon + 1
        if longest < needed:
            refuse_short_series(model, panel, needed)
        return max(min(max(3 * horizon, 2 * season), longest - horizon), 1)
    if longest < model.input_size + horizon:
        refuse_short_series(model, panel, model.input_size + horizon)
    return model.input_size


