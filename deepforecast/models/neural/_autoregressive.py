"""The base classes of networks that can predict autoregressively, and of LSTM, GRU and RNN among them.

Parameters, bodies and decoding only: they are trained like all networks, see `_base` and `_fit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.params import Not, param, refuse_unused_parameters
from deepforecast.errors import ParameterError
from deepforecast.models.neural._base import NeuralForecaster
from deepforecast.models.neural._forecast import DecodingOptions

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.network import AutoregressiveBody, DirectBody

DEFAULT_BEAM_WIDTH = 10


class AutoregressiveForecaster(NeuralForecaster):
    """Base class of networks that can predict one step after the other.

    Each step receives the previous value. With decoding="sample" the point forecast is the median
    (or mean) of sample paths; with "greedy" the path on which each step receives the median (or
    mean) of the previous one, at the cost of a single path; with "beam" the most probable path,
    found by beam search. Prediction intervals and sample paths are always drawn, so they are
    marginal over the previous values.
    """

    decoding: Literal["sample", "greedy", "beam"] = param(
        default="sample",
        help="decoding of the point forecast; 'sample': median or mean of sample paths, 'greedy': one path, "
        "'beam': most probable path",
    )
    temperature: float = param(
        default=1.0, above=0, needs={"head": "bins"},
        help="softmax temperature of sampling; below 1: less variation between samples",
    )
    top_p: float = param(
        default=1.0, above=0, at_most=1, needs={"head": "bins"},
        help="probability of the most probable bins to sample from (nucleus sampling); 1: all bins",
    )
    beam_width: int | None = param(
        default=None, at_least=1, needs={"decoding": "beam"},
        help="number of paths kept per step; None: 10",
    )

    @property
    def family(self) -> str:
        """Family of models that `deepforecast.testing` checks together."""
        return "networks step by step" if self.autoregressive else super().family

    @property
    def autoregressive(self) -> bool:
        """Whether the horizon is predicted one step after the other."""
        return True

    @property
    def predict_params(self) -> tuple[str, ...]:
        """Parameters that affect predictions only; a calibration depends on the decoding, too."""
        decoding_parameters = () if self.calibrates else ("decoding", "temperature", "top_p", "beam_width")
        return (*super().predict_params, *decoding_parameters)

    def _decoding_options(self) -> DecodingOptions:
        """The options of decoding; raise `ParameterError` for parameters without effect or values that exclude each other."""
        if self.beam_width is not None or (self.temperature, self.top_p) != (1.0, 1.0):  # may have changed since the fit
            refuse_unused_parameters(self)
        if self.decoding == "beam" and self.head != "bins":
            raise ParameterError(
                f"decoding='beam' cannot be used with head={self.head!r}, whose values are not discrete.",
                hint="Set head='bins', or decoding='greedy'.",
                parameter="decoding",
            )
        if self.decoding == "greedy" and not self.autoregressive:
            raise ParameterError(
                "decoding='greedy' cannot be used with output='direct', which predicts all "
                "steps at once.",
                hint="Set output='autoregressive', or leave out `decoding`.",
                parameter="decoding",
            )
        return DecodingOptions(self.decoding, (self.temperature, self.top_p), self.beam_width or DEFAULT_BEAM_WIDTH)


class RecurrentForecaster(AutoregressiveForecaster):
    """Recurrent encoder of the window with a direct or an autoregressive decoder.

    With output="direct" a multilayer perceptron maps the states to all steps at once, and a second
    one, on the window and the last state, is added (`skip_hidden_sizes`), as the states alone lose
    the values of the window. With output="autoregressive" a second recurrent stack continues from
    the last state and receives the previous value at each step: the true one in training (teacher
    forcing), a sampled one in forecasts.
    """

    cell: ClassVar[str]
    cell_params: ClassVar[dict[str, str]] = {}  # options of the cell in `RecurrentOptions`, and the parameters that set them

    hidden_size: int = param(
        default=64, at_least=1, low=16, high=256, log=True, expensive=True,
        help="number of units per recurrent layer",
    )
    n_layers: int = param(
        default=1, at_least=1, low=1, high=3, expensive=True, help="number of stacked recurrent layers",
    )
    bidirectional: bool = param(default=False, help="whether the encoder also reads the window backwards")
    dropout: float = param(
        default=0.0, at_least=0, below=1, low=0.0, high=0.5,
        help="dropout probability of the outputs of the layers",
    )
    residual: bool = param(
        default=False, needs={"n_layers": Not(1)}, help="whether to add residual connections from the second layer on",
    )
    normalization: Literal["layer", "batch", "rms"] | None = param(
        default=None, help="normalization of the output of each layer; None: no normalization",
    )
    output: Literal["direct", "autoregressive"] = param(
        default="direct", search=("direct", "autoregressive"),
        help="'direct': prediction of all steps at once; 'autoregressive': one step after the other"
    )
    teacher_forcing: Literal["constant", "linear", "inverse_sigmoid", "free"] = param(
        default="constant", needs={"output": "autoregressive"},
        help="schedule of teacher forcing in training; 'constant': always, 'free': never, 'linear' and "
        "'inverse_sigmoid': decaying probability"
    )
    decoder_layers: int = param(
        default=1, at_least=0, needs={"output": "direct"}, help="number of hidden layers of the direct decoder"
    )
    decoder_size: int = param(
        default=64, at_least=1, needs={"output": "direct"}, help="number of units per hidden layer of the direct decoder"
    )
    skip_hidden_sizes: Sequence[int] | None = param(
        default=None, at_least=1, search=(None, (128,), (256, 256)),
        needs={"output": "direct"},
        help="number of units of each hidden layer of a perceptron of the window whose output is added to the direct output, "
        "which makes prices and sales more accurate, e.g. (256, 256); None: no perceptron",
    )

    learning_example: ClassVar[dict[str, Any]] = {
        **AutoregressiveForecaster.learning_example,
        "max_steps": 400,
        "hidden_size": 16,
        "weight_decay": 0.01,
        "head": "quantiles",
        "batch_size": 64,
        "decoder_size": 64,
    }

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Small networks for the contract checks, autoregressive ones for LSTM and RNN."""
        small: dict[str, Any] = {
            "input_size": 14, "max_steps": 10, "batch_size": 32, "hidden_size": 8, "decoder_size": 16, "skip_hidden_sizes": [16]
        }  # fmt: skip
        autoregressive = {**small, "output": "autoregressive", "head": "student_t"}
        del autoregressive["decoder_size"], autoregressive["skip_hidden_sizes"]
        return {"lstm": [small, autoregressive], "gru": [small], "rnn": [autoregressive]}[cls.cell]

    @property
    def autoregressive(self) -> bool:
        """Whether the horizon is predicted one step after the other."""
        return self.output == "autoregressive"

    def _body(self, sizes: InputSizes) -> DirectBody | AutoregressiveBody:
        """The recurrent body, direct or autoregressive."""
        from deepforecast.nn.recurrent import RecurrentAutoregressive, RecurrentDirect, RecurrentOptions  # imports torch

        options = RecurrentOptions(
            cell=self.cell,
            hidden_size=self.hidden_size,
            n_layers=self.n_layers,
            bidirectional=self.bidirectional,
            dropout=self.dropout,
            residual=self.residual,
            normalization=self.normalization,
            **{option: getattr(self, name) for option, name in self.cell_params.items()},
        )
        if self.output == "autoregressive":
            return RecurrentAutoregressive(sizes, options)
        return RecurrentDirect(
            sizes,
            options,
            season=sizes.season,
            decoder_layers=self.decoder_layers,
            decoder_size=self.decoder_size,
            skip_hidden_sizes=self.skip_hidden_sizes,
        )
