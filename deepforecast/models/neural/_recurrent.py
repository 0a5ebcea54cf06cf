"""The base class of LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.params import Not, param
from deepforecast.models.neural._autoregressive import AutoregressiveForecaster

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.network import AutoregressiveBody, DirectBody


class RecurrentForecaster(AutoregressiveForecaster):
    """Recurrent encoder of the window with a direct or an autoregressive decoder.

    With output="direct" a multilayer perceptron maps the states to all steps at once, and a second
    one, on the window and the last state, is added (`skip_hidden_sizes`), as the states alone lose
    the values of the window. With output="autoregressive" a second recurrent stack continues from
    the last state and receives the previous value at each step: the true one in training (teacher
    forcing), a sampled one in forecasts.
    """

    cell: ClassVar[str]

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

    def _cell_options(self) -> dict[str, str]:
        """Options of this type of cell, by their names in `RecurrentOptions`."""
        return {}

    def _body(self, sizes: InputSizes) -> DirectBody | AutoregressiveBody:
        """The recurrent body, direct or autoregressive."""
        from deepforecast.nn.recurrent import RecurrentAutoregressive, RecurrentDirect, RecurrentOptions

        options = RecurrentOptions(
            cell=self.cell,
            hidden_size=self.hidden_size,
            n_layers=self.n_layers,
            bidirectional=self.bidirectional,
            dropout=self.dropout,
            residual=self.residual,
            normalization=self.normalization,
            **self._cell_options(),
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
