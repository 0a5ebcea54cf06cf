"""The base class of neural forecasters: parameters, training and forecasting.

A model adds hyperparameters and `_body(sizes)`, the torch module between inputs and head. `_fit` lists the steps of `fit`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np

from deepforecast.core.encoding import InvalidManifest, SkopsSerializer
from deepforecast.core.fitted_values import fitted_frame, require_training_data
from deepforecast.core.forecast import Forecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.model_file import histories_required_error
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import Not, param
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState, State
from deepforecast.data import frames
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, format_value
from deepforecast.models.neural import _fit, _lightning, _serialization, _series_state
from deepforecast.models.neural._array_predictor import Predictor
from deepforecast.models.neural._forecast import DEFAULT_DECODING, DecodingOptions
from deepforecast.nn.names import (
    HEAD_FACTS,
    LOCATION_HEADS,
    LOSS_FACTS,
    SCALER_FACTS,
    Head,
    HeadName,
    LossName,
    Scaler,
    head_facts,
)
from deepforecast.training.options import check_trainer
from deepforecast.training.process import quiet_import

if TYPE_CHECKING:
    from deepforecast.core.forecast import AttentionMap
    from deepforecast.data.columns import Columns
    from deepforecast.data.components import TimeFeatures
    from deepforecast.data.windows import WindowColumns
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.network import AutoregressiveBody, DirectBody, ForecastNetwork

NEURAL = Capabilities(
    future=True, past=True, static=True, weights=True, categorical=True, missing=True, distribution="quantiles",
    learns_distribution=True, local=False, scale_equivariant=True, shift_equivariant=True, sign_equivariant=False,
    precision=5e-3, simulates=True, explains=True,
)  # fmt: skip


class NeuralForecaster(Forecaster):
    """Base class of neural forecasters: one global network, trained on windows of all series.

    The network maps a window of the past and the covariates to the distribution of every step of
    the horizon.
    """

    capabilities = NEURAL

    input_size: int | Literal["auto"] = param(
        default="auto", at_least=1,
        help="length of the input window in time steps; 'auto': 3 horizons or 2 seasons (the longer one; NBEATS, NHITS: "
        "2 horizons, at least 18 time steps, if half of the series are shorter than 20 horizons), as far as the longest "
        "series permits",
    )
    head: HeadName | Head = param(
        default="quantiles", search=("quantiles", "normal", "student_t"),
        help="output of the network per step: quantiles, a point or a distribution, by name or as an instance of a Head",
    )  # fmt: skip
    quantiles: list[float] | None = param(
        default=None, above=0, below=1, needs={"head": "quantiles"},
        help="quantile levels that are trained; None: 15 levels from 0.005 to 0.995",
    )
    loss: LossName | Callable[..., Any] = param(
        default="mae", needs={"head": "point"},
        help="loss function: a name, or a function of predictions and targets (torch tensors, scaled), such as a torch module",
    )  # fmt: skip
    scaler: Scaler = param(
        default="standard",
        help="scaler of the target, e.g. 'standard' (mean and standard deviation), 'last' (last value and mean "
        "absolute deviation from it), 'revin' (as 'standard', with a learned affine map) or 'none'",
    )
    scaler_scope: Literal["window", "series", "panel"] = param(
        default="window", needs={"scaler": Not("none")},
        help="data that the scaler is fitted on: each window, each series, or all series",
    )
    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1,
        help="number of time steps per season; 'auto': inferred from the frequency",
    )
    calendar: list[str] | Literal["auto"] | None = param(
        default="auto", help="calendar features; 'auto': chosen by the frequency, None: no calendar features",
    )
    max_steps: int | Literal["auto"] = param(
        default="auto", group="training", at_least=1, needs={"max_epochs": None},
        help="number of training steps; 'auto': 8 epochs, but at least 50 and at most 500 (NBEATS, NHITS: 1200)",
    )
    max_epochs: int | None = param(
        default=None, group="training", at_least=1,
        help="number of epochs, in place of max_steps; None: max_steps determines the length of training",
    )
    batch_size: int | Literal["auto"] = param(
        default="auto", group="training", at_least=1,
        help="number of windows per batch; 'auto': an eighth of the training windows, at least 32 and at most 256 "
        "(NBEATS, NHITS: 1024)",
    )
    sample_by: Literal["auto", "windows", "series"] = param(
        default="windows", group="training",
        help="unit sampled with equal probability: windows or series; 'auto': series if their lengths differ and half "
        "of them have at least twice the length of a window and its horizon, otherwise windows",
    )
    recent_windows: int | None = param(
        default=None, group="training", at_least=1,
        help="number of most recent windows per series to train on; None: all windows",
    )
    learning_rate: float | Literal["find"] = param(
        default=3e-3, group="training", above=0, low=1e-4, high=1e-2, log=True,
        help="maximum learning rate; 'find': chosen by a learning rate range test",
    )
    lr_schedule: Literal["one_cycle", "cosine", "constant"] = param(
        default="one_cycle", group="training",
        help="learning rate schedule after the warmup; 'one_cycle' and 'cosine': cosine decay, 'constant': no decay",
    )
    warmup: float = param(
        default=0.1, group="training", at_least=0, below=1,
        help="fraction of the training steps with increasing learning rate",
    )
    weight_decay: float = param(
        default=1e-4, group="training", at_least=0, help="decoupled weight decay (AdamW)",
    )
    ema_decay: float = param(
        default=0.0, group="training", at_least=0, below=1,
        help="decay of an exponential moving average of the weights; 0: no average",
    )
    validation_size: int | None = param(
        default=None, group="training", at_least=1,
        help="number of last observations per series held out for validation, which selects the best weights; "
        "None: no validation",
    )
    validate_every: int = param(
        default=50, group="training", at_least=1, needs={"validation_size": Not(None)},
        help="number of training steps between validation checks",
    )
    patience: int | None = param(
        default=None, group="training", at_least=1,
        help="number of validation checks without improvement before training stops; None: no early stopping",
    )
    time_limit: float | None = param(
        default=None, group="training", above=0,
        help="maximum training time in seconds; None: no limit",
    )
    seed: int = param(
        default=0, group="training", at_least=0, at_most=2**63 - 1,
        help="random seed of initial weights and batches",
    )
    compile: bool = param(
        default=False, group="training", help="whether to compile the network with torch.compile",
    )
    checkpoint_dir: str | None = param(
        default=None, group="training",
        help="folder to write checkpoints to and to resume interrupted training from; None: no checkpoints",
    )
    checkpoint_every: int = param(
        default=100, group="training", at_least=1, needs={"checkpoint_dir": Not(None)},
        help="number of training steps between checkpoints",
    )
    trainer: dict[str, Any] | None = param(
        default=None, group="training",
        convert=check_trainer, save_plain=True,
        help="arguments of Lightning's Trainer, e.g. {'accelerator': 'cpu', 'precision': 'bf16-mixed'}; by default it "
        "trains on a CUDA GPU where there is one, else on the CPU, with single precision, gradients clipped to a "
        "norm of 1 and no progress bar",
    )

    intervals: Literal["conformal", "uncalibrated"] | None = param(  # type: ignore[assignment]
        default=None,
        help="method for prediction intervals: None: those of the learned distribution, calibrated on the last tenth of the "
        "time steps, which the first half of the training leaves out; 'uncalibrated': those of the learned distribution as "
        "they are; 'conformal': calibrated on rolling forecasts during fit",
    )

    forecasts_any_frequency: ClassVar[bool] = True
    max_auto_steps: ClassVar[int] = 500  # limit of max_steps="auto"
    max_auto_batch: ClassVar[int] = 256  # limit of batch_size="auto"
    shortens_windows: ClassVar[bool] = False  # whether input_size="auto" is shorter for short series
    calibrates_tail: ClassVar[bool] = True  # whether quantiles are calibrated on the last observations, see `_calibration`
    has_components: ClassVar[bool] = False  # whether the forecast is a sum of components
    uses_series_id: ClassVar[bool] = False  # whether the body embeds static categories itself
    keeps_series_scale: ClassVar[bool] = False  # whether a series keeps its scale from fit in `update`

    warm_up_params: ClassVar[dict[str, Any]] = {
        "max_steps": 1, "max_epochs": None, "validation_size": None, "validate_every": 50, "patience": None, "time_limit": None,
        "learning_rate": 1e-3, "compile": False,
        "checkpoint_dir": None, "checkpoint_every": 100, "trainer": None,
    }  # fmt: skip  # see evaluation.warm_up
    learning_example: ClassVar[dict[str, Any]] = {
        "max_steps": 300, "learning_rate": 1e-2, "scaler": "standard", "scaler_scope": "panel", "input_size": 6
    }  # fmt: skip
    coverage_process: ClassVar[str] = "seasonal_noise"
    coverage_example: ClassVar[dict[str, Any]] = {"max_steps": 300, "learning_rate": 1e-2, "batch_size": 64}

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Small networks for the contract checks."""
        return [{"input_size": 14, "max_steps": 12, "batch_size": 32}]

    @property
    def family(self) -> str:
        """Family of models that `deepforecast.testing` checks together."""
        return "networks"

    # -- inspection and export ---------------------------------------------------------------------

    @property
    def network_(self) -> ForecastNetwork:
        """The trained network, a torch module."""
        network: ForecastNetwork = self.fitted_state().learned["network"]
        return network

    @property
    def training_report_(self) -> Frame:
        """The training history, one row per step.

        Columns: `step`, `loss`, `learning_rate`, `gradient_norm`, `seconds` (NaN in a loaded
        model), `validation_loss` (NaN at other steps) and `selected`, whether the final weights are
        those after this step.
        """
        state = self.fitted_state()
        return frames.build(state.series.library, _fit.training_report(state.learned["training_record"]))

    @property
    def calibration_(self) -> Frame:
        """Coverage of prediction intervals on the observations that calibrated them, one row per level.

        Columns: `level` (the nominal coverage in percent), coverage `uncalibrated` (by the network
        alone) and `calibrated`, both in percent, and `n_windows`, the mean number of horizons
        observed in the held-out part of a series. After `fine_tune`, which changes the network but
        keeps its calibration, the coverage is unknown (NaN). There are no rows if the intervals are
        not calibrated on held-out observations (`intervals="conformal"` or "uncalibrated", series
        too short).
        """
        state = self.fitted_state()
        from deepforecast.models.neural import _calibration  # imports torch

        calibration = None if self.calibrates else state.learned.shared.get("calibration")
        return frames.build(state.series.library, _calibration.calibration_columns(calibration))

    @property
    def stop_reason_(self) -> str:
        """Reason why training stopped."""
        return str(self.fitted_state().learned["training_record"]["stop_reason"])

    def fitted_values(self, frame: Frame | None = None, *, static: Frame | None = None) -> Frame:
        """Forecast the time steps of the training data, or of other histories, each from an earlier cutoff.

        The cutoffs of a series are `horizon` time steps apart, the first one after `input_size`
        time steps (after one, in series shorter than `input_size` + `horizon`). So the first time
        step after a cutoff is forecast 1 step ahead, and the last one `horizon` steps ahead. An
        autoregressive network continues from its point forecasts instead of sample paths, which is
        one pass; other forecasts are the point forecasts of `predict` for the time steps up to the
        cutoff. No value after the cutoff is used, except by missing="interpolate", which fills
        missing values before it from the next observation.

        Parameters
        ----------
        frame : DataFrame, optional
            Histories to forecast. None: the training data, without rows added by `update`.
        static : DataFrame, optional
            Static covariates of the series in `frame`.

        Returns
        -------
        DataFrame
            The id, time and target columns, and the forecast of each time step; NaN up to the first
            cutoff, and where a window has no observation.

        Raises
        ------
        DataError
            If there is no `frame`, and the model was loaded from a file, which has no training
            data.

        Examples
        --------
        >>> from deepforecast import DLinear
        >>> from deepforecast.datasets import generate
        >>> fitted = DLinear(horizon=7, input_size=14, max_steps=20).fit(generate(1, 60)).fitted_values()
        >>> len(fitted), len(fitted.dropna())
        (60, 46)
        """
        from deepforecast.models.neural import _predict  # imports torch

        _series_state.refuse_pretrained(self)
        state = self._state_for_frame(frame, static)
        panel = require_training_data(self.name, state.learned)
        return fitted_frame(self.name, panel, _predict.fitted_values(self, state.learned, panel))

    def pretrain(
        self, frame: Frame, objective: Any = "auto", *, freq: Any = None, columns: Columns | Mapping[str, Any] | None = None,
        static: Frame | None = None, max_steps: int | None = None, learning_rate: float | None = None,
    ) -> Self:
        """Train the network on windows of a frame without a forecast as target (self-supervised), from scratch.

        Parts of each window are hidden, and the network learns to infer them. Afterwards `fine_tune` trains it to
        forecast, usually on fewer data than `fit` would need; after "next_patch", a `DecoderOnly` can also forecast
        series that it has never seen, with predict(frame=...). `save(path, histories=False)` stores the weights alone.

        Parameters
        ----------
        frame : DataFrame
            Series to pretrain on, as for `fit`.
        objective : str, Objective, list or dict, default "auto"
            What the network learns: "masked_patches" (BERT), "masked_spans" (SpanBERT), "next_patch" (GPT),
            "next_window" (next-sentence prediction) or "permutation_order" (XLNet); an `Objective`, e.g.
            MaskedPatches(fraction=0.3); or several of these, as a list or as a dict with their weights. "auto": "next_patch"
            for networks that are causal, otherwise "masked_patches".
        freq : str, optional
            Frequency, as for `fit`.
        columns : Columns or dict, optional
            Names and roles of the columns, as for `fit`.
        static : DataFrame, optional
            Static covariates, one row per series.
        max_steps : int, optional
            Number of training steps. Defaults to that of the constructor.
        learning_rate : float, optional
            Maximum learning rate. Defaults to that of the constructor.

        Returns
        -------
        Self
            The pretrained model.

        Raises
        ------
        CapabilityError
            If the network has no encoder over patches, which the objective needs.

        See Also
        --------
        fine_tune : Trains the pretrained network to forecast.

        Examples
        --------
        >>> from deepforecast import Transformer
        >>> from deepforecast.datasets import generate
        >>> model = Transformer(horizon=7, input_size=28, d_model=8, n_heads=2, n_layers=1, seed=1)
        >>> model = model.pretrain(generate(5, 200), "masked_patches", max_steps=20)
        >>> model.fine_tune(generate(1, 100), max_steps=20).predict().shape
        (7, 3)
        """
        with quiet_import():
            from deepforecast.models.neural import _pretraining  # imports Lightning

        panel = Panel.from_frame(frame, freq=freq, columns=columns, static=static)
        self.state_ = _pretraining.pretrain(self, panel, objective, max_steps, learning_rate)
        return self

    def lightning_module(self, frame: Frame, **fit: Any) -> Any:
        """Create a LightningModule with a new network, to be trained by a Trainer of the user.

        After training, `predict` works as after `fit`. The learning rate schedule spans the steps
        of the Trainer. The module logs `loss` and, with `validation_size`, `validation`, and passes
        the parameters of the model to loggers. `Trainer.predict` returns point forecasts, of shape
        (batch, horizon). `type(module).load_from_checkpoint(path,
        network=deepcopy(module.network), options=module.options)` reads a checkpoint of the Trainer; without
        the copy its weights replace those of the model. Prediction intervals are those
        that the network learned, without calibration.

        Parameters
        ----------
        frame : DataFrame
            Training data, as in `fit`.
        **fit
            Further arguments of `fit`.

        Returns
        -------
        LightningModule

        See Also
        --------
        datamodule : The batches to train it on.
        """
        _lightning.refuse_fit_parameters(self)
        return _lightning.lightning_module(self, self._fit_untrained(Panel.from_frame(frame, **fit)))

    def datamodule(self, frame: Frame, *, static: Frame | None = None) -> Any:
        """Create a LightningDataModule with the batches of a frame.

        Parameters
        ----------
        frame : DataFrame
            Series with the columns that `fit` or `lightning_module` received.
        static : DataFrame, optional
            Static covariates, one row per series.

        Returns
        -------
        LightningDataModule

        Raises
        ------
        NotFittedError
            If neither `fit` nor `lightning_module` was called before.
        """
        return _lightning.datamodule(self, frame, static)

    def predictor(self, quantiles: Sequence[float] = ()) -> Predictor:
        """Create a function from arrays to arrays that forecasts with the current fit.

        It has less overhead per call than `predict` and is not changed by later calls of `fit` or
        `update`. Point forecasts equal those of `predict(frame=...)`. Quantiles are calibrated by
        the factors of the fit, those of `predict(frame=...)` also by recent values.

        Parameters
        ----------
        quantiles : sequence of float, default ()
            Probabilities of the quantiles to forecast in addition to the point forecast.

        Returns
        -------
        Predictor
            Callable with arrays, see `Predictor`.
        """
        _series_state.refuse_pretrained(self)
        return Predictor.from_model(self, quantiles)

    def beam_search(
        self, width: int = 10, horizon: int | None = None, *, frame: Frame | None = None, future: Frame | None = None,
        static: Frame | None = None,
    ) -> Frame:
        """Find the most probable paths of each series by beam search (head="bins" only).

        A path is a sequence of bins, with their centres as values; its probability is the product
        of the conditional probabilities of the bins. The search keeps `width` paths per step. The
        probabilities are exact, but a more probable path can be missed if steps depend on previous
        values.

        Parameters
        ----------
        width : int, default 10
            Number of paths kept per step and returned per series.
        horizon : int, optional
            Number of steps. Defaults to the `horizon` of the constructor.
        frame, future, static : DataFrame, optional
            As in `predict`.

        Returns
        -------
        DataFrame
            One row per series, `path` (0 is the most probable) and step, with `value` and the
            `log_probability` of the path.

        Raises
        ------
        CapabilityError
            If the head is not "bins".
        """
        from deepforecast.models.neural import _decoding  # imports torch

        return _decoding.beam_frame(self, width, horizon, frame, future, static)

    def export_onnx(self, path: Any) -> None:
        """Export the network to an ONNX file, for inference without Python.

        Inputs and outputs are in the units of the data; the metadata entry "deepforecast" of the
        file describes them as JSON. Quantiles are calibrated by the factors of the fit. Requires the
        extra onnx.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing file is replaced.

        Raises
        ------
        CapabilityError
            If ONNX operators cannot represent the network.
        """
        from deepforecast.models.neural import _onnx  # imports torch

        _series_state.refuse_pretrained(self)
        _onnx.export_network(self, path)

    def device_step(self, device: str) -> None:
        """Check on generated data that the network can be trained and forecast with on a device.

        Run the loss and its gradient, `predict`, `fitted_values`, `simulate`, `explain`,
        `beam_search`, `predictor` and the residual correlation of a new network, as far as the model
        has them. The forecasts must equal those on the CPU.

        A device that this machine does not have is simulated: its tensors compute on the CPU, and
        refuse what a real device would refuse, see `deepforecast.models.neural._device_check`. "mps" is
        simulated without float64.

        Parameters
        ----------
        device : str
            Device in the notation of torch, e.g. "cuda".

        Raises
        ------
        DeviceMismatchError
            If an operation combines tensors of two devices, or the device lacks their dtype.
        """
        with quiet_import():
            from deepforecast.models.neural import _device_check  # imports Lightning

        _device_check.check_device(self, device)

    # -- hooks of Forecaster -----------------------------------------------------------------------

    def _narrow(self, declared: Capabilities) -> Capabilities:
        """The declared capabilities without those that head, loss, scaler or bounds exclude."""
        if isinstance(self.head, Head):
            facts, any_probability = self.head.facts, self.head.probability_range == (0.0, 1.0)
        else:
            facts, any_probability = HEAD_FACTS[self.head], self.head != "quantiles"
        uses_level = isinstance(self.loss, str) and LOSS_FACTS[self.loss].uses_level
        return _fit.narrow_capabilities(declared, facts, any_probability, uses_level, self.scaler)

    def _resolve_horizon(self, horizon: int | None) -> int:
        _series_state.refuse_pretrained(self)
        return super()._resolve_horizon(horizon)

    def _check_future(self, state: State, future: Mapping[str, Covariate]) -> None:
        _series_state.warn_constant_covariates(self.name, state, future)

    def _warn_about_intervals(self, state: State) -> None:
        """Warn if intervals could not be calibrated, or covered far too few values of the tail.

        Not if all series have recent values, which calibrate them in place of the tail.
        """
        from deepforecast.models.neural import _calibration, _predict  # imports torch

        if _calibration.calibrates(self) and not _predict.has_recent_factors(state.learned):
            _calibration.warn_of_poor_calibration(self, state.learned)

    def _search_choices(self, seasons: tuple[int, ...], rows: int) -> dict[str, list[Any]]:
        """Values of `input_size` to search: 'auto', and 2 and 4 horizons if a series of `rows` time
        steps (0: unknown) has room for them and a horizon.
        """
        if not self.horizon:
            return {}
        multiples = [k for k in (2, 4) if not rows or (k + 1) * self.horizon <= rows]
        return {"input_size": ["auto", *(k * self.horizon for k in multiples)]}

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        """Check the parameters and train the network; sample paths need the residual correlation."""
        if self.horizon is None:
            raise ParameterError(
                f"{type(self).__name__} requires a `horizon` before `fit`, as the network is trained for it.",
                hint=f"Set {type(self).__name__}(horizon=...).",
                parameter="horizon",
            )
        if self.head == "quantiles" and self.quantiles is not None and not self.quantiles:
            raise ParameterError(
                "`quantiles` must be a non-empty list of probabilities, or None for 15 levels, got an empty list.",
                hint="Pass e.g. quantiles=[0.1, 0.5, 0.9], or leave it out.",
                parameter="quantiles",
            )
        self._decoding_options()  # raises for invalid parameters, before the training
        if not (isinstance(self.head, str) and isinstance(self.loss, str)):
            _fit.check_objects(self)
        if SCALER_FACTS[self.scaler].of_window and self.scaler_scope != "window":
            raise ParameterError(
                f"{self.name}: scaler={self.scaler!r} requires scaler_scope='window', got scaler_scope={self.scaler_scope!r}.",
                hint="Set scaler='standard', 'robust', 'min_max' or 'mean_abs', or omit `scaler_scope`.",
                parameter="scaler_scope", value=self.scaler_scope,
            )  # fmt: skip
        if self.intervals == "uncalibrated" and not head_facts(self.head).has_distribution:
            raise ParameterError(
                f"{self.name}: intervals='uncalibrated' requires a head with a distribution, got head={self.head!r}.",
                hint="Omit `intervals`, or set intervals='conformal' or head='quantiles'.",
                parameter="intervals", value=self.intervals,
            )  # fmt: skip
        # The history is for `fitted_values`, and for recent values in `predict(frame=...)`.
        learned = replace(_fit.fit_network(self, panel, monitor), history=panel)
        # Models of an inner cross-validation draw no sample paths, but those of an autoregressive network are its forecast.
        needs_paths = monitor.is_outermost or getattr(learned.shared["network"].body, "block_length", 1) > 1
        if isinstance(monitor, _fit.UserTraining) or not needs_paths:
            return learned
        from deepforecast.models.neural import _residual_correlation  # imports torch

        return _residual_correlation.fit_residual_correlation(self, learned, panel)

    def _fine_tune(
        self, learned: LearnedState, panel: Panel, freeze: Sequence[str] | Mapping[str, int] | None = None,
        max_steps: int | None = None, learning_rate: float | None = None,
    ) -> LearnedState:
        """Train the network further, and estimate the residual correlation again."""
        with quiet_import():
            from deepforecast.models.neural import _training  # imports Lightning

        return _training.fine_tune(self, learned, panel, freeze, max_steps, learning_rate)

    def _fit_untrained(self, panel: Panel) -> Panel:
        """Fit with a network that is not trained; return the panel that its batches come from."""
        state = self._fit_panel(panel, _fit.UserTraining())
        self.__dict__["state_"] = state
        return cast(Panel, state.learned.history)

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        """The state after the observations of `panel`; the network does not change."""
        if not from_start:
            return replace(learned, by_series=_series_state.advance(learned, panel))
        by_series, shared = _series_state.from_history(self, learned, panel), learned.shared
        if "calibration" in shared and learned.series is not None and learned.series.calendar.frequency != panel.calendar.frequency:
            # Times of the training data cannot be compared with these; none of these series was in it.
            shared = {**shared, "calibration": {**shared["calibration"], "end": int(panel.start.min()) - 1}}
        return replace(learned, by_series=by_series, shared=shared, history=panel)

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        from deepforecast.models.neural import _predict  # imports torch

        return _predict.forecast_horizon(self, learned, steps, future)

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        from deepforecast.models.neural import _predict  # imports torch

        return _predict.simulate_paths(self, learned, steps, samples, seed, future)

    def _decoding_options(self) -> DecodingOptions:
        return DEFAULT_DECODING

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """Components of an additive network, else integrated gradients."""
        from deepforecast.models.neural import _explain  # imports torch

        # Components add up to the location of the forecast before differences and RevIN are inverted.
        if self.has_components and self.head in LOCATION_HEADS and SCALER_FACTS[self.scaler].keeps_sum:
            return _explain.components(self, learned, steps, future)
        return _explain.integrated_gradients(self, learned, steps, future)

    @property
    def has_attention(self) -> bool:
        """Whether the model has attention weights, for `explain`."""
        return False

    def _attention_maps(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Sequence[AttentionMap]:
        """Attention weights of the next `steps`, empty without attention, see `_explain`."""
        if not self.has_attention:
            return ()
        from deepforecast.models.neural import _explain  # imports torch

        return _explain.attention_maps(self, learned, steps, future)

    def _drop_histories(self, learned: LearnedState) -> LearnedState:
        if self.keeps_series_scale:
            raise histories_required_error(self, "series seen in fit keep the scale they had there")
        return replace(learned, history=None).take(np.empty(0, dtype=np.int64))

    def _serialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        _serialization.check_restorable(self)
        return _serialization.serialize(learned)

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        return _serialization.deserialize(self, learned)

    # -- hooks of a model --------------------------------------------------------------------------

    def _add_series_columns(self, panel: Panel, learned: LearnedState | None) -> Panel:
        """The panel with additional static columns; `learned` is the state of an earlier fit."""
        return panel

    def _select_columns(self, columns: WindowColumns, panel: Panel) -> WindowColumns:
        """The columns of the panel that the network uses."""
        return columns

    def _time_features(self, panel: Panel | None) -> TimeFeatures | None:
        """Features that depend on time alone, fitted on the panel; without a panel, an example."""
        return None

    def _check_time_features(self, record: Any, future_names: list[str]) -> None:
        """Raise `InvalidManifest` unless `record`, the time features in a file, is valid; by default there are none."""
        if record is not None:
            raise InvalidManifest(
                f"'time_features' of the network's columns must be null for this model, got {format_value(record)}"
            )

    def _initialize(self, network: ForecastNetwork, panel: Panel, columns: WindowColumns, scale: tuple[Floats, Floats]) -> None:
        """Set initial weights of the body, for models that have better ones than random weights."""

    @abstractmethod
    def _body(self, sizes: InputSizes) -> DirectBody | AutoregressiveBody:
        """The torch module between inputs and head."""
