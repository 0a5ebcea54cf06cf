"""Transformer: an encoder of rows that look at each other, and a decoder whose steps look at them and at each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.errors import ParameterError
from deepforecast.models.neural._autoregressive import AutoregressiveForecaster

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.body import AutoregressiveBody, DirectBody
    from deepforecast.nn.transformer_body import TransformerOptions


@register
class Transformer(AutoregressiveForecaster):
    """Encoder and decoder of attention alone: the rows of the window, in patches, look at each other; the steps ahead look at
    them and at each other. With output="direct" all steps come at once; with "autoregressive" each is told the value before it
    and sees no later one, in training all in one pass, in forecasts one by one with what was computed before them kept.

    Vaswani et al. 2017, "Attention Is All You Need"; patches: Nie et al. 2023, "A Time Series is Worth 64 Words".

    Measured coverage of 80 % intervals at defaults: M1 monthly 78 %, NN5 daily 78 %, EPF Nord Pool
    hourly 66 % (benchmarks/bench_coverage.py).

    >>> from deepforecast.datasets import generate
    >>> Transformer(horizon=7, d_model=16, max_steps=20).fit(generate(2, 100)).predict(level=80).shape
    (14, 5)
    """

    coverage_slow: ClassVar[bool] = True

    d_model: int = param(
        default=64, at_least=1, search=(32, 64, 128),
        help="numbers that stand for a patch of rows or a step",
    )
    n_heads: int = param(
        default=4, at_least=1, search=(2, 4, 8),
        help="heads that share them out and look by themselves",
    )
    n_layers: int = param(
        default=2, at_least=1, low=1, high=3, help="layers of the encoder, and of the decoder",
    )
    encoder_layers: int | None = param(
        default=None, at_least=1, help="layers of the encoder; None: n_layers",
    )
    decoder_layers: int | None = param(
        default=None, at_least=1, help="layers of the decoder; None: n_layers",
    )
    dim_feedforward: int | None = param(
        default=None, at_least=1, help="width of each layer's hidden layer; None: 4 d_model",
    )
    activation: Literal["relu", "gelu", "swiglu"] = param(
        default="relu", search=("relu", "gelu", "swiglu"), help="what bends it",
    )
    norm_order: Literal["pre", "post"] = param(
        default="pre", help="what is normalised: what enters a part, or the sum after it",
    )
    normalization: Literal["layer", "batch", "rms"] = param(default="layer", help="how")
    positional_encoding: Literal["sinusoidal", "learned", "rotary", "alibi", "calendar"] | None = param(
        default="sinusoidal", search=("sinusoidal", "learned", "rotary", "alibi"),
        help="how rows and steps are told where they stand",
    )
    patch_length: int | Literal["auto"] = param(
        default="auto", at_least=1,
        help="rows of a patch; 1: single rows; auto: 16, a quarter of short windows",
    )
    stride: int | None = param(
        default=None, at_least=1,
        help="rows from one patch to the next; None: half of patch_length",
    )
    dropout: float = param(
        default=0.0, at_least=0, below=1, low=0.0, high=0.5,
        help="share of the numbers hidden while training",
    )
    output: Literal["direct", "autoregressive"] = param(
        default="direct", search=("direct", "autoregressive"), help="steps at once or in turn"
    )
    teacher_forcing: Literal["constant", "linear", "inverse_sigmoid", "free"] = param(
        default="constant", help="how long true values are fed in training"
    )

    learning_example: ClassVar[dict[str, Any]] = {
        **AutoregressiveForecaster.learning_example, "max_steps": 250, "d_model": 32, "n_heads": 2, "n_layers": 1, "batch_size": 64,
        "patch_length": 6, "positional_encoding": "learned", "head": "quantiles",
    }  # fmt: skip

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Small networks for the contract checks."""
        small: dict[str, Any] = {"input_size": 14, "max_steps": 10, "batch_size": 32, "d_model": 8, "n_heads": 2, "n_layers": 1}
        autoregressive = {**small, "output": "autoregressive", "head": "student_t", "patch_length": 1, "positional_encoding": "rotary"}
        return [small, autoregressive]

    @property
    def autoregressive(self) -> bool:
        """Whether steps are taken in turn."""
        return self.output == "autoregressive"

    @property
    def has_attention(self) -> bool:
        """Always."""
        return True

    def _body(self, sizes: InputSizes) -> DirectBody | AutoregressiveBody:
        from deepforecast.nn.transformer_body import TransformerAutoregressive, TransformerDirect

        body_class = TransformerAutoregressive if self.autoregressive else TransformerDirect
        return body_class(sizes, self._options(sizes.input_size))

    def _options(self, rows: int) -> TransformerOptions:
        from deepforecast.nn.patches import default_patch_length
        from deepforecast.nn.transformer import LayerOptions
        from deepforecast.nn.transformer_body import TransformerOptions

        length = default_patch_length(rows) if isinstance(self.patch_length, str) else self.patch_length
        if length > rows:
            raise ParameterError(
                f"A patch is a part of the window; patch_length={length} and input_size={rows}. Say "
                f"patch_length={default_patch_length(rows)}, or a larger input_size."
            )
        layer = LayerOptions(
            self.d_model, self.n_heads, self.dim_feedforward or 4 * self.d_model, self.activation, self.norm_order,
            self.normalization, self.dropout,
        )  # fmt: skip
        return TransformerOptions(
            layer, self.encoder_layers or self.n_layers, self.decoder_layers or self.n_layers, self.positional_encoding, length,
            self.stride or max(length // 2, 1),
        )  # fmt: skip

    def _idle(self) -> Iterator[tuple[str, str]]:
        """Parameters that have no effect beside the others as they are: names, and why, with the way out."""
        if self.encoder_layers is not None and self.decoder_layers is not None:
            yield "n_layers", "where encoder_layers and decoder_layers are both said: leave it out, or one of them"
        if self.patch_length == 1:
            yield "stride", "on patches of one row: leave it out, or say patch_length=16"
        if not self.autoregressive:
            yield "teacher_forcing", "where no step is told the value before it: leave it out, or say output='autoregressive'"
