"""Training of a network from the parameters of a model and a panel.

Where `fit` does what:

1. Columns, window length and network: `new_network`. Windows, and the options of the training: `build_batches`.
2. One or two parts of the training: `_training.train_network`. If quantiles are calibrated and there is no validation set,
   `_training._train_twice` leaves out the end of each series in the first part, calibrates on it, and trains on all windows
   in the second. Each part is a call of `training.trainer.train`, which runs Lightning's Trainer.
3. Windows of a step: `training.sampler.WindowSampler.step_batches` (the draw itself: `data.windows.WindowIndex.draw`).
4. Loss of a step: `training.module.ForecastModule.training_step`, `nn.network.ForecastNetwork.loss`, and `Head.loss`.
5. Scaling: the target of each window in `nn.scaling.scale_window`, called by `ForecastNetwork.inputs`; that of whole series
   (`scaler_scope`) in `_series_state.series_scales`; covariates in `data.windows`.
6. Weights: `training.callbacks.TrainingMonitor`. It goes back to earlier ones when the loss diverges, validates, stops early,
   averages (`ema_decay`), and `finish` loads the final ones.
7. Prediction intervals: `_calibration.calibrate` estimates factors on the observations left out; `_predict` applies them, and
   those of recent values. intervals="conformal" is outside of this package, in `core.conformal`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from deepforecast.core.monitor import Monitor
from deepforecast.core.params import format_param
from deepforecast.core.preprocessing import refuse_short_series
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState
from deepforecast.data import features, windows
from deepforecast.data.frames import Floats
from deepforecast.data.frequency import seasons
from deepforecast.data.panel import Panel
from deepforecast.data.weights import refuse_zero_weights
from deepforecast.data.windows import WindowColumns, WindowIndex
from deepforecast.errors import ParameterError
from deepforecast.models.neural import _series_state
from deepforecast.nn.names import SCALER_FACTS, Head, HeadFacts
from deepforecast.training.options import TRAINER_DEFAULTS, TrainingOptions
from deepforecast.training.process import TRAINING_LOCK, quiet_import, torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.network import ForecastNetwork

DEFAULT_QUANTILES = (0.005, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.995)
AUTO_EPOCHS = 8  # epochs of max_steps="auto"
LONG_SERIES = 20  # horizons; from this median length on, input_size="auto" is never shortened
MIN_SHORT_INPUT = 18  # time steps; shortest window of input_size="auto" when it is shortened
VALIDATION_BATCH_SIZE = 1024  # windows
LEVEL_RATIO_WINDOWS = 4096  # windows drawn to estimate `level_ratio`


class UserTraining(Monitor):
    """Monitor of a fit that leaves the training of the network to a Trainer of the user."""


def fit_network(
    model: NeuralForecaster, panel: Panel, monitor: Monitor, previous: LearnedState | None = None, lr_factor: float = 1.0,
    frozen_steps: Mapping[str, int] = MappingProxyType({}),
) -> LearnedState:
    """Train a new network, or a copy of the one in `previous`, with the learning rate multiplied by `lr_factor`.

    `frozen_steps` are the steps after which a parameter is trained, by name. While the network trains, the monitor can
    take a snapshot of the state.
    """
    with TRAINING_LOCK, quiet_import():
        import torch
    # A caller may be in inference mode, whose tensors cannot be trained.
    with TRAINING_LOCK, torch_defaults(), torch.inference_mode(False):
        original_panel, panel = panel, model._add_series_columns(panel, previous)
        if previous is not None and model.keeps_series_scale:
            scales = _series_state.known_scales(model, previous, original_panel)
        else:
            scales = _series_state.series_scales(original_panel, model)
        if previous is None:
            network = new_network(model, panel, scales)
        else:
            network = deepcopy(previous["network"])
        shared: dict[str, Any] = {"network": network}
        if model.scaler_scope == "panel":
            shared["panel_scale"] = [float(values[0]) for values in scales]
        columns = cast(WindowColumns, network.sizes.window_columns)
        by_series = _series_state.last_observations(panel, columns, scales)
        learned = LearnedState(by_series, shared, series=panel.series)

        def snapshot() -> tuple[Panel, LearnedState]:
            """The panel and the current state, with a copy of the network and an empty record."""
            copies = {"network": deepcopy(network).eval(), "training_record": {}}
            return original_panel, LearnedState(by_series, {**shared, **copies})

        monitor.set_snapshot(snapshot)
        with quiet_import():
            from deepforecast.models.neural import _training  # imports Lightning

        entries = _training.train_network(model, panel, learned, monitor, previous, lr_factor, frozen_steps)
        monitor.set_snapshot(None)
        return LearnedState(by_series, {**shared, **entries})


def new_network(model: NeuralForecaster, panel: Panel, scales: tuple[Floats, Floats]) -> ForecastNetwork:
    """Build a network for a panel, with its columns, window, season and initial weights.

    `scales` are location and scale of each series. season_length="auto" is the shortest season of
    the frequency, 1 if it has none.
    """
    season = model.season_length
    if isinstance(season, str):
        season = (*seasons(panel.calendar.frequency), 1)[0]
    horizon = cast(int, model.horizon)
    input_size = _resolve_input_size(model, panel, horizon, season)
    calendar = features.validate_features(model.calendar, panel.calendar)
    columns = model._select_columns(windows.fit_window_columns(panel, input_size, horizon, calendar), panel)
    network = build_network(model, columns, season)
    if network.level_ratio is not None:
        network.level_ratio.fill_(_level_ratio(panel, columns))
    model._initialize(network, panel, columns, scales)
    return network


def build_network(model: NeuralForecaster, columns: WindowColumns, season: int) -> ForecastNetwork:
    """Build an untrained network, with initial weights from the seed of the model."""
    from deepforecast.nn.batch import InputSizes  # imports torch
    from deepforecast.nn.heads.registry import make_head
    from deepforecast.nn.layers import SeededInit, embedding_width  # imports torch
    from deepforecast.nn.network import ForecastNetwork

    # Numbers of categories of the embedded columns.
    temporal = [columns.counts[name] for name in columns.categorical]
    static = [] if model.uses_series_id else [columns.counts[name] for name in columns.static_codes]
    with SeededInit(model.seed):
        # Copies, as training changes weights of user objects.
        loss = deepcopy(model.loss) if model.head == "point" else None
        levels = None
        if model.head == "quantiles":
            levels = tuple(sorted(set(DEFAULT_QUANTILES if model.quantiles is None else model.quantiles)))
        head = make_head(deepcopy(model.head), loss=loss, quantiles=levels)
        sizes = InputSizes(
            input_size=columns.input_size,
            horizon=columns.horizon,
            out_features=head.out_features,
            past=len(columns.numeric) + columns.calendar_width + sum(map(embedding_width, temporal)),
            future=columns.n_future
            + columns.calendar_width
            + sum(map(embedding_width, temporal[: columns.n_future_codes])),
            static=len(columns.static) + sum(map(embedding_width, static)),
            season=season,
            location_slice=head.location_slice,
            cyclic_columns=columns.cyclic_columns,
            window_columns=columns,
        )
        scaler = model.scaler + ("/series" if model.scaler_scope != "window" else "")
        return ForecastNetwork(
            sizes, model._body(sizes), head, scaler=scaler, temporal=temporal, static=static,
            n_future_codes=columns.n_future_codes,
        ).eval()  # fmt: skip


def training_options(model: NeuralForecaster, n_windows: int) -> TrainingOptions:
    """The options of the training loop from the parameters of the model.

    'auto' values and `max_epochs` are resolved for `n_windows` training windows. learning_rate='find'
    becomes 0, for which the training loop runs the range test.
    """
    trainer = {**TRAINER_DEFAULTS, **(model.trainer or {})}
    # For loggers, as JSON types; other objects become texts.
    params = {name: value for name, value in model.get_params().items() if name != "trainer"}
    hyperparameters = json.loads(json.dumps({"model": type(model).__name__, **params}, default=format_param))
    if isinstance(model.batch_size, str):  # several steps per epoch if there are few windows
        batch_size = min(max(n_windows // AUTO_EPOCHS, 32), model.max_auto_batch)
    else:
        batch_size = model.batch_size
    if model.max_epochs is not None:
        steps_per_epoch = max(-(-n_windows // (batch_size * trainer["accumulate_grad_batches"])), 1)
        max_steps = steps_per_epoch * model.max_epochs
    elif isinstance(model.max_steps, str):
        max_steps = default_max_steps(n_windows, batch_size, model.max_auto_steps)
    else:
        max_steps = model.max_steps
    shared_names = (
        "weight_decay", "lr_schedule", "warmup", "ema_decay", "validate_every", "patience", "time_limit", "seed", "compile",
        "checkpoint_dir", "checkpoint_every",
    )  # fmt: skip
    return TrainingOptions(
        max_steps=max_steps, batch_size=batch_size,
        learning_rate=0.0 if isinstance(model.learning_rate, str) else model.learning_rate,
        teacher_forcing=getattr(model, "teacher_forcing", "constant"), hyperparameters=hyperparameters,
        **{name: trainer.pop(name) for name in TRAINER_DEFAULTS}, trainer=trainer,
        **{name: getattr(model, name) for name in shared_names},
    )  # fmt: skip


def default_max_steps(n_windows: int, batch_size: int, max_steps: int = 500) -> int:
    """The number of training steps of max_steps="auto".

    8 epochs, but at least 50 and at most 500 steps. If `max_steps` allows more than 500, the limit
    grows with the square root of the batches per epoch.

    More epochs overfit on few windows: on the training sets of 10 and 60 short series of M1, of NN5
    and of single series, 8 epochs had better point forecasts and much better intervals than 20 or
    40, in a twentieth of the time of 500 steps of 256 windows.

    >>> default_max_steps(40, 32), default_max_steps(1_000, 125), default_max_steps(300_000, 256)
    (50, 64, 500)
    >>> default_max_steps(300_000, 1024, max_steps=1200), default_max_steps(8_000_000, 1024, max_steps=1200)
    (1027, 1200)
    """
    batches_per_epoch = n_windows / batch_size
    root: float = batches_per_epoch**0.5
    limit = min(max(round(60 * root), 500), max_steps)
    return min(max(round(AUTO_EPOCHS * batches_per_epoch), 50), limit)


def samples_by_series(model: NeuralForecaster, panel: Panel, input_size: int, horizon: int) -> bool:
    """Whether series are drawn with equal probability, rather than windows.

    "auto": if half of the series have at least twice the length of a window and its horizon, and
    they differ in length. Then long series do not dominate. Shorter series have few windows, most
    of them padded, which would be drawn too often: on M4 yearly (median length 29), MASE is 2.99
    with windows and 3.03 with series; on M4 monthly (median length 202) 0.913 and 0.905.
    """
    if model.sample_by != "auto":
        return model.sample_by == "series"
    lengths = panel.lengths
    return bool(lengths.min() < lengths.max() and np.median(lengths) >= 2 * (input_size + horizon))


@lru_cache(maxsize=256)  # called several times per forecast, with few different arguments
def narrow_capabilities(
    capabilities: Capabilities, head: HeadFacts, any_probability: bool, uses_level: bool, scaler: str
) -> Capabilities:
    """The capabilities of a model that remain with this head, loss and scaler.

    `any_probability`: whether the head has quantiles of any probability. `uses_level`: whether the loss depends on the
    level of the series.
    """
    # Whether a constant that is added to the series is added to its forecast.
    is_shifted = SCALER_FACTS[scaler].follows_shift and head.support == "real" and not uses_level
    changes: dict[str, Any] = {"shift_equivariant": is_shifted}
    if not head.has_distribution:
        changes |= {"distribution": None, "learns_distribution": False, "simulates": False}
    elif any_probability:
        changes["distribution"] = "analytic"
    if scaler == "none" or head.is_count:
        changes |= {"scale_equivariant": False, "shift_equivariant": False}
    if head.support != "real":
        changes["domain"] = head.support
    # Read several times per forecast, and a copy takes five times as long as this comparison.
    changes = {name: value for name, value in changes.items() if getattr(capabilities, name) != value}
    return replace(capabilities, **changes) if changes else capabilities


def check_objects(model: NeuralForecaster) -> None:
    """Check a head or a loss that is passed as an object, see `nn.heads.registry`."""
    from deepforecast.nn.heads.registry import check_head, check_loss  # imports torch

    with torch_defaults():
        if isinstance(model.head, Head):
            check_head(model.head)  # type: ignore[arg-type]  # the only subclass is that of nn.heads.base
        if not isinstance(model.loss, str):
            check_loss(model.loss)


def training_report(record: dict[str, Any]) -> dict[str, Any]:
    """The columns of `training_report_`, arrays with one entry per step, from the stored record."""
    steps = np.arange(1, len(record["loss"]) + 1)
    validation = np.full(len(steps), np.nan)
    validation[np.asarray(record["validation_steps"], dtype=np.int64) - 1] = record["validation_loss"]
    return {
        "step": steps, "loss": record["loss"], "learning_rate": record["learning_rate"],
        "gradient_norm": record["gradient_norm"],
        "seconds": record["seconds"], "validation_loss": validation, "selected": steps == record["best_step"],
    }  # fmt: skip


def build_batches(
    model: NeuralForecaster, panel: Panel, columns: WindowColumns, scales: tuple[Floats, Floats]
) -> tuple[Any, Any, TrainingOptions]:
    """A `WindowSampler` of training batches, `EvaluationWindows` or None, and the options of the training.

    `scales` are location and scale of each series. Raises if all series are too short to train on, or
    if all weights are 0.
    """
    from deepforecast.nn.batch import WindowStore  # imports torch
    from deepforecast.training.sampler import EvaluationWindows, WindowSampler

    arrays = windows.window_arrays(panel, columns)
    arrays = replace(arrays, loc=scales[0][:, None], scale=scales[1][:, None])
    store = WindowStore.from_arrays(arrays)
    n_validation = _resolve_validation_size(model, panel)
    window_index = windows.training_windows(
        panel, columns.input_size, columns.horizon, n_validation, model.recent_windows
    )
    if not len(window_index.order):
        refuse_short_series(model, panel, 2)
    if panel.weight is not None:
        refuse_zero_weights(training_targets(panel, window_index))
    options = training_options(model, len(window_index))
    sampler = WindowSampler(
        store,
        arrays,
        window_index,
        batch_size=options.batch_size,
        seed=model.seed,
        by_series=samples_by_series(model, panel, columns.input_size, columns.horizon),
        stop_step=options.max_steps,
        accumulate_grad_batches=options.accumulate_grad_batches,
    )
    if not n_validation:
        return sampler, None, options
    validation_index = windows.validation_windows(panel, columns.horizon, n_validation)
    return sampler, EvaluationWindows(store, arrays, validation_index, VALIDATION_BATCH_SIZE), options


def training_targets(panel: Panel, window_index: WindowIndex) -> Panel:
    """The rows of the panel that are targets of training windows."""
    end = panel.lengths if window_index.n_training_rows is None else window_index.n_training_rows
    return panel.between(window_index.first_cutoff, np.maximum(end, window_index.first_cutoff))


def _level_ratio(panel: Panel, columns: WindowColumns) -> float:
    """Factor that the scaler "level" multiplies its scales by, estimated from a sample of training windows.

    It is the ratio of a window's mean |y - last value| to its mean |y|, the median over windows, see
    `nn.scaling.level_ratio`.
    """
    import torch

    from deepforecast.nn.scaling import level_ratio  # imports torch

    target_only = replace(columns, numeric=(), categorical=(), static=(), static_codes=())
    arrays = windows.window_arrays(replace(panel, covariates={}, static={}), target_only)
    window_index = windows.training_windows(panel, columns.input_size, columns.horizon)
    series, cutoff = window_index.draw(seed=0, step=0, n_windows=LEVEL_RATIO_WINDOWS, by_series=True)
    start, _ = arrays.window_start(series, cutoff)
    return level_ratio(torch.from_numpy(arrays.y[start[:, None] + np.arange(columns.input_size)]))


def _resolve_validation_size(model: NeuralForecaster, panel: Panel) -> int:
    """The number of last observations of each series held out, 0 without validation.

    Raises `ParameterError` if it leaves too little to train on, or if `patience` needs it.
    """
    if model.validation_size is None:
        if model.patience is not None:
            raise ParameterError(
                "`patience` cannot be used without a validation set.",
                hint="Set `validation_size` to "
                "the number of observations to hold out per series.",
                parameter="patience",
            )
        return 0
    longest = int(panel.lengths.max())
    if longest < model.validation_size + 2:
        raise ParameterError(
            "`validation_size` must leave at least 2 time steps to train on, got "
            f"validation_size={model.validation_size} and at most {longest} time steps per series.",
            hint=f"Set validation_size to at most {longest - 2}.",
            parameter="validation_size",
        )
    return model.validation_size


def _resolve_input_size(model: NeuralForecaster, panel: Panel, horizon: int, season: int) -> int:
    """The length of the window: `input_size`, or for 0 a single unused time step.

    "auto": 3 horizons or 2 seasons (the longer one), as far as the longest series permits. With
    `model.shortens_windows` and a median length of the series below 20 horizons: 2 horizons, at
    least 2 seasons and 18 time steps. On the many short series of M4 longer windows overfit NBEATS
    (monthly, 3 instead of 2 horizons: sMAPE 12.98 instead of 12.56), shorter ones miss the trend
    (yearly, 12 instead of 18 time steps: 13.30 instead of 13.16).

    Raises `DataError` if no series has the observations of a window and its horizon.
    """
    longest = int(panel.observed.max())
    if model.input_size == 0:
        if longest < 2:
            refuse_short_series(model, panel, 2)
        return 1
    if isinstance(model.input_size, str):
        if longest < horizon + 1:
            refuse_short_series(model, panel, horizon + 1)
        wanted = max(3 * horizon, 2 * season)
        if model.shortens_windows and np.median(panel.lengths) < LONG_SERIES * horizon:
            wanted = max(2 * horizon, 2 * season, MIN_SHORT_INPUT)
        return max(min(wanted, longest - horizon), 1)
    if longest < model.input_size + horizon:
        refuse_short_series(model, panel, model.input_size + horizon)
    return model.input_size


