"""What the recurrent networks share: their layers, and how the steps ahead come out of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.params import param
from deepforecast.models.neural._autoregressive import AutoregressiveForecaster

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.body import AutoregressiveBody, DirectBody


class RecurrentForecaster(AutoregressiveForecaster):
    """Recurrent layers over the window. With output="direct" all steps are read off their states at once, and a perceptron
    that sees the window itself and the last state is added (states alone forget its values: `skip_hidden_sizes`); with "autoregressive"
    a second stack goes on from there, told the value before at each step: the true one in training (teacher forcing, less and
    less of it by `teacher_forcing`), its own draws in forecasts."""

    cell: ClassVar[str]

    hidden_size: int = param(
        default=64, at_least=1, low=16, high=256, log=True, expensive=True, help="width of a layer",
    )
    n_layers: int = param(
        default=1, at_least=1, low=1, high=3, expensive=True, help="layers on top of each other",
    )
    bidirectional: bool = param(default=False, help="whether the window is read backwards too")
    dropout: float = param(
        default=0.0, at_least=0, below=1, low=0.0, high=0.5,
        help="share of the numbers hidden while training",
    )
    residual: bool = param(
        default=False, help="whether a layer adds to what goes into it, from the second on",
    )
    normalization: Literal["layer", "batch", "rms"] | None = param(
        default=None, help="of what comes out of each layer",
    )
    output: Literal["direct", "autoregressive"] = param(
        default="direct", search=("direct", "autoregressive"), help="steps at once or in turn"
    )
    teacher_forcing: Literal["constant", "linear", "inverse_sigmoid", "free"] = param(
        default="constant", help="how long true values are fed in training"
    )
    decoder_layers: int = param(default=1, at_least=0, help="hidden layers of the direct output")
    decoder_size: int = param(default=64, at_least=1, help="their width")
    skip_hidden_sizes: Sequence[int] | None = param(
        default=(256, 256), at_least=1, search=(None, (128,), (256, 256)),
        when=lambda drawn: drawn["output"] == "direct",
        help="widths of a perceptron over the window and the last state, added to the direct output; None: none",
    )

    learning_example: ClassVar[dict[str, Any]] = {
        **AutoregressiveForecaster.learning_example, "max_steps": 400, "hidden_size": 16, "weight_decay": 0.01, "head": "quantiles",
        "batch_size": 64, "decoder_size": 64,
    }  # fmt: skip

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Small networks for the contract checks."""
        small: dict[str, Any] = {
            "input_size": 14, "max_steps": 10, "batch_size": 32, "hidden_size": 8, "decoder_size": 16, "skip_hidden_sizes": [16]
        }  # fmt: skip
        autoregressive = {**small, "output": "autoregressive", "head": "student_t"}
        del autoregressive["decoder_size"], autoregressive["skip_hidden_sizes"]
        return {"lstm": [small, autoregressive], "gru": [small], "rnn": [autoregressive]}[cls.cell]

    @property
    def autoregressive(self) -> bool:
        """Whether steps are taken in turn."""
        return self.output == "autoregressive"

    def _idle(self) -> Iterator[tuple[str, str]]:
        if self.output == "direct":
            yield "teacher_forcing", "where all steps come at once: leave it out, or say output='autoregressive'"
        else:
            for name in ("decoder_layers", "decoder_size", "skip_hidden_sizes"):
                yield name, "where steps are taken in turn: leave it out, or say output='direct'"
        if self.n_layers == 1:
            yield "residual", "on a single layer: leave it out, or say n_layers=2"

    def _body(self, sizes: InputSizes) -> DirectBody | AutoregressiveBody:
        from deepforecast.nn.recurrent import RecurrentOptions
        from deepforecast.nn.recurrent_autoregressive import RecurrentAutoregressive
        from deepforecast.nn.recurrent_direct import RecurrentDirect

        options = RecurrentOptions(
            self.cell, self.hidden_size, self.n_layers, self.bidirectional, self.dropout, self.residual, self.normalization,
            getattr(self, "nonlinearity", "tanh"),
        )  # fmt: skip
        if self.output == "autoregressive":
            return RecurrentAutoregressive(sizes, options)
        return RecurrentDirect(sizes, options, sizes.season, self.decoder_layers, self.decoder_size, self.skip_hidden_sizes)
