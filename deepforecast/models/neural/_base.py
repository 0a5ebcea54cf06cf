"""What the neural forecasters share: options, windows, training, and forecasts of all series in large batches.

A model adds its own hyperparameters and `_body(sizes)`: the torch module that turns inputs into what the head reads.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.manifest import InvalidManifest
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.skops_objects import SkopsSerializer
from deepforecast.core.state import LearnedState, State
from deepforecast.data import frames
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import TrainingWarning, format_value, warn
from deepforecast.models.neural import _fit, _lightning, _serialization, _series_state, _unused_parameters
from deepforecast.models.neural._forecast import DEFAULT_DECODING, DecodingOptions, clip_bounds

if TYPE_CHECKING:
    from deepforecast.core.explanations import AttentionMap
    from deepforecast.data.time_features import TimeFeatures
    from deepforecast.data.windows import WindowColumns
    from deepforecast.models.neural._array_predictor import Predictor
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.body import AutoregressiveBody, DirectBody
    from deepforecast.nn.network import ForecastNetwork

Scaler = Literal["standard", "robust", "min_max", "mean_abs", "last", "level", "revin", "difference", "none"]
HeadName = Literal[
    "quantiles", "point", "normal", "student_t", "laplace", "lognormal", "negative_binomial", "poisson", "zero_inflated",
         "tweedie", "mixture", "implicit_quantile", "bins"
]  # fmt: skip
Loss = Literal["mae", "mse", "huber", "mase", "smape", "owa"]
DEFAULT_QUANTILES = (0.005, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.995)

OVERFIT_PASSES = 30  # passes from which bands were seen to hold half of what they say, and less: benchmarks/results/small_panels.md

NEURAL = Capabilities(
    future=True, past=True, static=True, categorical=True, missing=True, distribution="quantiles", learns_distribution=True,
    local=False, scale_equivariant=True, shift_equivariant=True, sign_equivariant=False, precision=5e-3, simulates=True,
)  # fmt: skip


class NeuralForecaster(Forecaster):
    """One network for all series: windows of the past in, a distribution of every step of the horizon out."""


    capabilities = NEURAL

    input_size: int | Literal["auto"] = param(
        default="auto", at_least=1, help="rows up to the cutoff that are looked at",
    )
    head: HeadName = param(
        default="quantiles", search=("quantiles", "normal", "student_t"),
        help="what the network says of a step: quantiles, a point or a distribution",
    )  # fmt: skip
    quantiles: list[float] | None = param(
        default=None, above=0, below=1, help="those learned with head='quantiles'; None: 15",
    )
    loss: Loss = param(default="mae", help="by what errors of a point are weighed")
    scaler: Scaler = param(
        default="standard", help="how each window is brought to a common scale",
    )
    scaler_scope: Literal["window", "series", "panel"] = param(
        default="window", help="of what a scale is",
    )
    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, help="steps after which the season repeats",
    )
    calendar: list[str] | Literal["auto"] | None = param(
        default="auto", help="features of the date",
    )
    bounds: tuple[float | None, float | None] | None = param(
        default=None, help="least and largest value of a forecast; (0, None)",
    )
    max_steps: int | Literal["auto"] = param(
        default="auto", group="training", at_least=1,
        help="steps of training; auto: a few passes, 50 to 500",
    )
    max_epochs: int | None = param(
        default=None, group="training", at_least=1,
        help="passes over all windows, instead of max_steps",
    )
    batch_size: int | Literal["auto"] = param(
        default="auto", group="training", at_least=1, help="windows of a step; auto: 32 to 256",
    )
    sample_by: Literal["windows", "series"] = param(
        default="windows", group="training",
        help="whether windows or series are drawn with equal chances",
    )
    recent_windows: int | None = param(
        default=None, group="training", at_least=1,
        help="only so many of the last windows of each series are learned from",
    )
    learning_rate: float | Literal["find"] = param(
        default=3e-3, group="training", above=0, low=1e-4, high=1e-2, log=True,
        help="largest rate; find: by a range test",
    )
    lr_schedule: Literal["one_cycle", "cosine", "constant"] = param(
        default="one_cycle", group="training", help="how the rate changes",
    )
    warmup: float = param(
        default=0.1, group="training", at_least=0, below=1,
        help="share of the steps in which the rate rises",
    )
    weight_decay: float = param(
        default=1e-4, group="training", at_least=0, help="decay of the weights, decoupled (AdamW)",
    )
    gradient_clip_val: float | None = param(
        default=1.0, group="training", above=0, help="largest norm of a gradient; None: any",
    )
    clip_value: float | None = param(
        default=None, group="training", above=0, help="largest value in a gradient",
    )
    accumulate_grad_batches: int = param(
        default=1, group="training", at_least=1, help="batches whose gradients make one step",
    )
    ema_decay: float = param(
        default=0.0, group="training", at_least=0, below=1,
        help="decay of an average of the weights that is kept instead of the last",
    )
    validation_size: int | None = param(
        default=None, group="training", at_least=1,
        help="last rows of each series that the best weights are chosen by",
    )
    validate_every: int = param(
        default=50, group="training", at_least=1,
        help="steps between two looks at the validation rows",
    )
    patience: int | None = param(
        default=None, group="training", at_least=1,
        help="looks without a better one after which training ends",
    )
    time_limit: float | None = param(
        default=None, group="training", above=0, help="seconds after which training ends",
    )
    seed: int = param(
        default=0, group="training", at_least=0, at_most=2**63 - 1, help="of weights and batches",
    )
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = param(
        default="32-true", group="training", help="of the arithmetic",
    )
    accelerator: Literal["auto", "cpu", "gpu", "mps", "tpu"] = param(
        default="auto", group="training", help="where to train",
    )
    devices: int | Literal["auto"] | list[int] = param(
        default=1, group="training", help="how many of them, or which",
    )
    strategy: str = param(
        default="auto", group="training", help="how several share the work, as Lightning calls it",
    )
    compile: bool = param(
        default=False, group="training", help="whether torch compiles the network first",
    )
    progress: bool = param(default=False, group="training", help="whether a bar shows the steps")
    checkpoint_dir: str | None = param(
        default=None, group="training", help="folder that an interrupted training goes on from",
    )
    checkpoint_every: int = param(
        default=100, group="training", at_least=1, help="steps between two checkpoints",
    )
    trainer: dict[str, Any] | None = param(
        default=None, group="training", help="anything else that Lightning's Trainer takes",
    )

    max_auto_steps: ClassVar[int] = 500  # of max_steps="auto"
    max_auto_batch: ClassVar[int] = 256  # of batch_size="auto"
    warns_overfitting: ClassVar[bool] = True  # whether many passes over few windows are told: not of what is linear
    has_components: ClassVar[bool] = False  # whether its forecast is a sum of parts that say something
    uses_series_id: ClassVar[bool] = False  # whether its body looks fixed categories up by itself
    keeps_series_scale: ClassVar[bool] = False  # whether the scale of a series is learned of it and stays, whatever its values become

    warm_up_params: ClassVar[dict[str, Any]] = {
        "max_steps": 1, "max_epochs": None, "validation_size": None, "validate_every": 50, "patience": None, "time_limit": None,
        "learning_rate": 1e-3, "devices": 1, "strategy": "auto", "compile": False, "progress": False,
        "checkpoint_dir": None, "checkpoint_every": 100, "trainer": None,
    }  # fmt: skip  # see evaluation.warm_up
    learning_example: ClassVar[dict[str, Any]] = {
        "max_steps": 300, "learning_rate": 1e-2, "scaler": "standard", "scaler_scope": "panel", "input_size": 6
    }  # fmt: skip
    coverage_process: ClassVar[str] = "seasonal_noise"
    coverage_example: ClassVar[dict[str, Any]] = {"max_steps": 200, "learning_rate": 1e-2, "batch_size": 64}

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Small networks for the contract checks."""
        return [{"input_size": 14, "max_steps": 12, "batch_size": 32}]

    @property
    def family(self) -> str:
        """Of models that share the code around their bodies: see `deepforecast.testing`."""
        return "networks"

    # -- for who wants to look inside ------------------------------------------------------------------------------------------

    @property
    def network_(self) -> ForecastNetwork:
        """The network as it is after training, a torch module."""
        network: ForecastNetwork = self.fitted_state().learned["network"]
        return network

    @property
    def training_report_(self) -> Frame:
        """A row a step: `step`, `loss`, `rate`, `gradient_norm`, `seconds` (not of a loaded model), `validation_size`, and
        whether its weights were `kept`."""
        state = self.fitted_state()
        return frames.build(state.series.library, _fit.training_report(state.learned["record"]))

    @property
    def stopped_(self) -> str:
        """Why training ended."""
        return str(self.fitted_state().learned["record"]["why"])

    def lightning_module(self, frame: Frame, **fit: Any) -> Any:
        """The LightningModule around a new network for this frame, for a Trainer of your own: what it learns, this model knows.
        `fit`: what `fit` takes. Its schedule spans the steps of the Trainer.

        It logs `loss` and, for the observations held out by `validation_size`, `validation_size`, and hands the
        model's parameters to loggers. `data = model.datamodule(frame)` has the batches; afterwards
        `model.predict()` works as after `fit`.
        """
        panel = Panel.from_frame(frame, **fit)
        panels = self.__dict__["_untrained"] = list[Panel]()
        try:
            self.__dict__["state_"] = self._fit_panel(panel)
        finally:
            del self.__dict__["_untrained"]
        return _lightning.lightning_module(self, panels[0])

    def datamodule(self, frame: Frame, *, static: Frame | None = None) -> Any:
        """The batches of a frame as a LightningDataModule, with the columns of the fit or of `lightning_module`."""
        return _lightning.datamodule(self, frame, static)

    def predictor(self, quantiles: Sequence[float] = ()) -> Predictor:
        """Forecasts from arrays to arrays, by this fit, whatever becomes of the model: for programs that ask often."""
        from deepforecast.models.neural._array_predictor import Predictor

        return Predictor.from_model(self, quantiles)

    def beam_search(
        self, width: int = 10, horizon: int | None = None, *, frame: Frame | None = None, future: Frame | None = None,
        static: Frame | None = None,
    ) -> Frame:
        """The `width` most probable paths of each series (head="bins"), long: a row for each series, `path` (from 0, the most
        probable first) and step, with its `value` and the path's `log_probability`.

        A path goes by the middles of its bins, and its probability is that of these bins, one after the other. Beam search
        holds `width` paths at each step: all that are found are true paths with their true probabilities; that none is more
        probable is sure where steps do not hang on the values before them, else for a width of all paths there are.
        """
        from deepforecast.models.neural import _decoding

        return _decoding.beam_frame(self, width, horizon, frame, future, static)

    def export_onnx(self, path: Any) -> None:
        """Write the network as an ONNX file, for programs without Python; its inputs and outputs: see `NAMES` of the file's
        metadata and `models.neural._onnx`. Needs the extra onnx."""
        from deepforecast.models.neural import _onnx

        _onnx.export_network(self, path)

    def device_step(self, device: str) -> None:
        """A forward and a backward step with network and batch on a device, by tensors that only pretend to be there."""
        from deepforecast.models.neural import _device_check

        _device_check.fake_device_step(self, device)

    # -- hooks of the contract -------------------------------------------------------------------------------------------------

    def _narrow(self, declared: Capabilities) -> Capabilities:
        explanations = self.has_components, self.has_attention
        return _fit.narrow_capabilities(declared, self.head, self.loss, self.scaler, explanations, self.bounds is not None)

    def _future_covariates(self, state: State, steps: int, future: Frame | None) -> Mapping[str, Covariate]:
        covariates = super()._future_covariates(state, steps, future)
        _series_state.warn_constant_covariate(self.name, state, covariates)
        return covariates

    def _warn_about_intervals(self, state: State) -> None:
        """Bands are learned by windows that were not known: by windows known by heart, they are far too narrow."""
        passes = state.learned["record"].get("passes", 0.0)
        if passes >= OVERFIT_PASSES and self.warns_overfitting:
            uses_defaults = isinstance(self.max_steps, str) and isinstance(self.batch_size, str)
            remedy = "more series or longer ones" if uses_defaults else "max_steps='auto' and batch_size='auto'"
            message = (
                f"{self.name}: training passed {passes:,.0f} times over the windows of the fit; seen so often, they are known "
                "by heart, and the bands learned of them hold fewer values than they say. intervals='conformal' has bands from "
                f"errors on rows held out; with {remedy} it would pass less often."
            )
            warn(message, TrainingWarning)

    def _search_choices(self, seasons: tuple[int, ...], rows: int) -> dict[str, list[Any]]:
        """Windows of a few horizons, as far as the data reach."""
        steps = self.horizon or 0
        return {"input_size": ["auto", *(k * steps for k in (2, 4) if not rows or (k + 1) * steps <= rows)]} if steps else {}

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        clip_bounds(self)
        self._decoding_options()
        _unused_parameters.refuse_unused(self)
        learned = _fit.fit_network(self, panel, monitor)
        return self._fit_residual_correlation(learned, panel) if monitor.is_outermost else learned  # no paths are made of a fold

    def _fine_tune(
        self, learned: LearnedState, panel: Panel, freeze: Sequence[str] | None = None, max_steps: int | None = None,
        learning_rate: float | None = None,
    ) -> LearnedState:
        from deepforecast.models.neural import _fine_tuning

        return self._fit_residual_correlation(_fine_tuning.fine_tune(self, learned, panel, freeze, max_steps, learning_rate), panel)

    def _fit_residual_correlation(self, learned: LearnedState, panel: Panel) -> LearnedState:
        from deepforecast.models.neural import _residual_correlation

        if "_untrained" in self.__dict__:  # a Trainer of the user's is to come
            self.__dict__["_untrained"].append(panel)
            return learned
        return _residual_correlation.fit_residual_correlation(self, learned, panel)

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        by_series = _series_state.from_history(self, learned, panel) if fresh else _series_state.advance(learned, panel)
        return replace(learned, by_series=by_series)

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        from deepforecast.models.neural import _predict

        return _predict.forecast_horizon(self, learned, steps, future)

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        from deepforecast.models.neural import _predict

        return _predict.simulate_paths(self, learned, steps, samples, seed, future)

    def _decoding_options(self) -> DecodingOptions:
        """How paths are made of what the network says of a step."""
        return DEFAULT_DECODING

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        from deepforecast.models.neural import _components

        return _components.components(self, learned, steps, future)

    @property
    def has_attention(self) -> bool:
        """Whether its body can say where it looked."""
        return False

    def _attention_maps(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Sequence[AttentionMap]:
        if not self.has_attention:
            return ()
        from deepforecast.models.neural import _attention

        return _attention.attention_maps(self, learned, steps, future)

    def _serialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        return _serialization.serialize(learned)

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        return _serialization.deserialize(self, learned)

    # -- hooks of a model ------------------------------------------------------------------------------------------------------

    def _idle(self) -> Iterable[tuple[str, str]]:
        """Parameters of its own that have no effect beside the others as they are: names, and why, with the way out."""
        return ()

    def _add_series_columns(self, panel: Panel, learned: LearnedState | None) -> Panel:
        """A panel with what the network is told beside it; `learned`: what was learned before, of these series or of others."""
        return panel

    def _select_columns(self, columns: WindowColumns, panel: Panel) -> WindowColumns:
        """The columns it looks at, from those there are in the panel of the fit."""
        return columns

    def _time_features(self, panel: Panel | None) -> TimeFeatures | None:
        """Columns that follow from time, learned of a panel; of none: of any kind, to try a network with."""
        return None

    def _check_time_features(self, record: Any, future_names: list[str]) -> None:
        """`InvalidManifest` where what a file says of them is not what a fit says; `future_names`: columns known ahead."""
        if record is not None:
            raise InvalidManifest(f"a network of its kind has no columns of time; found {format_value(record)}")

    def _initialize(self, network: ForecastNetwork, panel: Panel, columns: WindowColumns, scale: tuple[Floats, Floats]) -> None:
        """Weights to begin with, where something better than chance is known."""

    @abstractmethod
    def _body(self, sizes: InputSizes) -> DirectBody | AutoregressiveBody:
        """The body of the network."""
