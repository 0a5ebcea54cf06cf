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
from deepforecast.core.foreign import Foreign
from deepforecast.core.manifest import Unfit
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.state import Learned, State
from deepforecast.data import frames
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import TrainingWarning, say, shown
from deepforecast.models.neural import _idle, _keeping, _making, _own, _standing
from deepforecast.models.neural._forecast import PLAIN, Decoding, limits

if TYPE_CHECKING:
    from deepforecast.core.explaining import Weights
    from deepforecast.data.moments import Moments
    from deepforecast.data.windows import Channels
    from deepforecast.models.neural._predictor import Predictor
    from deepforecast.nn.batch import Sizes
    from deepforecast.nn.body import Direct, Stepwise
    from deepforecast.nn.network import ForecastNetwork

Scaler = Literal["standard", "robust", "min_max", "mean_abs", "last", "level", "revin", "difference", "none"]
HeadName = Literal[
    "quantiles", "point", "normal", "student_t", "laplace", "lognormal", "negative_binomial", "poisson", "zero_inflated",
         "tweedie", "mixture", "implicit_quantile", "bins"
]  # fmt: skip
Loss = Literal["mae", "mse", "huber", "mase", "smape", "owa"]
GRID = (0.005, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.995)

BY_HEART = 30  # passes from which bands were seen to hold half of what they say, and less: benchmarks/results/small_panels.md

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

    most_steps: ClassVar[int] = 500  # of max_steps="auto"
    largest_batch: ClassVar[int] = 256  # of batch_size="auto"
    by_heart: ClassVar[bool] = True  # whether many passes over few windows are told: not of what is linear
    adds_parts: ClassVar[bool] = False  # whether its forecast is a sum of parts that say something
    looks_up: ClassVar[bool] = False  # whether its body looks fixed categories up by itself
    keeps_scale: ClassVar[bool] = False  # whether the scale of a series is learned of it and stays, whatever its values become

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
        network: ForecastNetwork = self.fitted().learned["network"]
        return network

    @property
    def training_report_(self) -> Frame:
        """A row a step: `step`, `loss`, `rate`, `gradient_norm`, `seconds` (not of a loaded model), `validation_size`, and
        whether its weights were `kept`."""
        state = self.fitted()
        return frames.build(state.series.library, _making.report(state.learned["record"]))

    @property
    def stopped_(self) -> str:
        """Why training ended."""
        return str(self.fitted().learned["record"]["why"])

    def lightning_module(self, frame: Frame, **fit: Any) -> Any:
        """The LightningModule around a new network for this frame, for a Trainer of your own: what it learns, this model knows.
        `fit`: what `fit` takes. Its schedule spans the steps of the Trainer.

        It logs `loss` and, for the observations held out by `validation_size`, `validation_size`, and hands the
        model's parameters to loggers. `data = model.datamodule(frame)` has the batches; afterwards
        `model.predict()` works as after `fit`.
        """
        panel = Panel.from_frame(frame, **fit)
        held = self.__dict__["_untrained"] = list[Panel]()
        try:
            self.__dict__["state_"] = self._learn(panel)
        finally:
            del self.__dict__["_untrained"]
        return _own.module(self, held[0])

    def datamodule(self, frame: Frame, *, static: Frame | None = None) -> Any:
        """The batches of a frame as a LightningDataModule, with the columns of the fit or of `lightning_module`."""
        return _own.datamodule(self, frame, static)

    def predictor(self, quantiles: Sequence[float] = ()) -> Predictor:
        """Forecasts from arrays to arrays, by this fit, whatever becomes of the model: for programs that ask often."""
        from deepforecast.models.neural._predictor import Predictor

        return Predictor.of(self, quantiles)

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
        metadata and `models.neural._export`. Needs the extra onnx."""
        from deepforecast.models.neural import _export

        _export.write(self, path)

    def device_step(self, device: str) -> None:
        """A forward and a backward step with network and batch on a device, by tensors that only pretend to be there."""
        from deepforecast.models.neural import _pretending

        _pretending.step(self, device)

    # -- hooks of the contract -------------------------------------------------------------------------------------------------

    def _narrow(self, declared: Capabilities) -> Capabilities:
        shows = self.adds_parts, self.attends
        return _making.narrowed(declared, self.head, self.loss, self.scaler, shows, self.bounds is not None)

    def _ahead(self, state: State, steps: int, future: Frame | None) -> Mapping[str, Covariate]:
        found = super()._ahead(state, steps, future)
        _standing.say_still(self.name, state, found)
        return found

    def _say_of_bands(self, state: State) -> None:
        """Bands are learned by windows that were not known: by windows known by heart, they are far too narrow."""
        passes = state.learned["record"].get("passes", 0.0)
        if passes >= BY_HEART and self.by_heart:
            usual = isinstance(self.max_steps, str) and isinstance(self.batch_size, str)
            fewer = "more series or longer ones" if usual else "max_steps='auto' and batch_size='auto'"
            said = (
                f"{self.name}: training passed {passes:,.0f} times over the windows of the fit; seen so often, they are known "
                "by heart, and the bands learned of them hold fewer values than they say. intervals='conformal' has bands from "
                f"errors on rows held out; with {fewer} it would pass less often."
            )
            say(said, TrainingWarning)

    def _search_by(self, seasons: tuple[int, ...], rows: int) -> dict[str, list[Any]]:
        """Windows of a few horizons, as far as the data reach."""
        steps = self.horizon or 0
        return {"input_size": ["auto", *(k * steps for k in (2, 4) if not rows or (k + 1) * steps <= rows)]} if steps else {}

    def _fit(self, panel: Panel, monitor: Monitor) -> Learned:
        limits(self)
        self._decoder()
        _idle.refuse(self)
        found = _making.learned(self, panel, monitor)
        return self._tied(found, panel) if monitor.whole else found  # no paths are made of a fold

    def _refine(
        self, learned: Learned, panel: Panel, freeze: Sequence[str] | None = None, max_steps: int | None = None,
        learning_rate: float | None = None,
    ) -> Learned:
        from deepforecast.models.neural import _tuning

        return self._tied(_tuning.refined(self, learned, panel, freeze, max_steps, learning_rate), panel)

    def _tied(self, learned: Learned, panel: Panel) -> Learned:
        from deepforecast.models.neural import _ties

        if "_untrained" in self.__dict__:  # a Trainer of the user's is to come
            self.__dict__["_untrained"].append(panel)
            return learned
        return _ties.tied(self, learned, panel)

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        held = _standing.begun(self, learned, panel) if fresh else _standing.moved(learned, panel)
        return replace(learned, by_series=held)

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        from deepforecast.models.neural import _ahead

        return _ahead.forecast(self, learned, steps, future)

    def _simulate(self, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        from deepforecast.models.neural import _ahead

        return _ahead.paths(self, learned, steps, samples, seed, future)

    def _decoder(self) -> Decoding:
        """How paths are made of what the network says of a step."""
        return PLAIN

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        from deepforecast.models.neural import _explaining

        return _explaining.components(self, learned, steps, future)

    @property
    def attends(self) -> bool:
        """Whether its body can say where it looked."""
        return False

    def _attended(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Sequence[Weights]:
        if not self.attends:
            return ()
        from deepforecast.models.neural import _attending

        return _attending.attended(self, learned, steps, future)

    def _kept(self, learned: Learned, foreign: Foreign) -> Learned:
        return _keeping.kept(learned)

    def _revive(self, learned: Learned, foreign: Foreign) -> Learned:
        return _keeping.revived(self, learned)

    # -- hooks of a model ------------------------------------------------------------------------------------------------------

    def _idle(self) -> Iterable[tuple[str, str]]:
        """Parameters of its own that have no effect beside the others as they are: names, and why, with the way out."""
        return ()

    def _beside(self, panel: Panel, known: Learned | None) -> Panel:
        """A panel with what the network is told beside it; `known`: what was learned before, of these series or of others."""
        return panel

    def _columns_read(self, channels: Channels, panel: Panel) -> Channels:
        """The columns it looks at, from those there are in the panel of the fit."""
        return channels

    def _moments(self, panel: Panel | None) -> Moments | None:
        """Columns that follow from time, learned of a panel; of none: of any kind, to try a network with."""
        return None

    def _checked_moments(self, said: Any, numbers: list[str]) -> None:
        """`Unfit` where what a file says of them is not what a fit says; `numbers`: columns known ahead."""
        if said is not None:
            raise Unfit(f"a network of its kind has no columns of time; found {shown(said)}")

    def _start(self, network: ForecastNetwork, panel: Panel, channels: Channels, scale: tuple[Floats, Floats]) -> None:
        """Weights to begin with, where something better than chance is known."""

    @abstractmethod
    def _body(self, sizes: Sizes) -> Direct | Stepwise:
        """The body of the network."""
