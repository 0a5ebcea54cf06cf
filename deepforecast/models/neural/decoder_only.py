"""The decoder-only Transformer forecaster (GPT)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from deepforecast.core.params import Not, param
from deepforecast.core.registry import register
from deepforecast.models.neural._autoregressive import AutoregressiveForecaster

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.decoder_only import DecoderOnlyBody, DecoderOnlyOptions


class Size(NamedTuple):
    """Size of a preset."""

    d_model: int
    n_heads: int
    n_layers: int


PRESETS = {"tiny": Size(64, 4, 2), "small": Size(128, 8, 4), "base": Size(256, 8, 8)}


@register
class DecoderOnly(AutoregressiveForecaster):
    """Decoder-only Transformer on patches of the series, as GPT.

    A stack of causal self-attention layers reads the patches of the window and predicts the patch
    after each of them:

        p(y_1 .. y_n) = prod_i p(patch_i | patches before i, covariates)

    Training maximises this over all patches of the window and the horizon in one pass. In forecasts
    the sampled patch is the next input, and keys and values of earlier patches are cached. The steps
    of a patch are predicted at once; sample paths join them by their residual correlation. A patch
    token has the values, a mask of the observed ones, the covariates of the patch and the future
    covariates of the next one.

    `preset` sets `d_model`, `n_heads` and `n_layers`; each can be given in its place. The layers have
    n_layers * (12 d_model^2 + 13 d_model) + 2 d_model parameters, as those of GPT-2: 100,096 in
    "tiny" (2 layers, d_model 64), 793,344 in "small" (4 layers, 128) and 6,318,592 in "base" (8
    layers, 256), and few more in the projections of inputs and outputs.

    With `segment_length` the layers have the segment memory of Transformer-XL: a patch attends to
    those before it in its segment and, without gradient, to those of the `memory_segments` before,
    so that the receptive field grows with every layer.

    What differs from GPT-2: patches of values in place of words, rotary positions and no dropout by
    default. As in other networks, the scaler sees the whole window, so that a patch of the window is
    predicted given its scale; forecasts are not affected. Beyond `horizon` the window moves on.

    Measured coverage of 80 % intervals at defaults: M1 monthly 80 %, NN5 daily 76 %, EPF Nord Pool
    hourly 81 % (benchmarks/bench_coverage.py).

    See Also
    --------
    Transformer : Encoder and decoder; with output="direct" all steps at once.

    References
    ----------
    Radford, Wu, Child, Luan, Amodei, Sutskever (2019), "Language models are unsupervised multitask
    learners", OpenAI.

    Dai, Yang, Yang, Carbonell, Le, Salakhutdinov (2019), "Transformer-XL: Attentive language models
    beyond a fixed-length context", ACL, arXiv:1901.02860.

    Das, Kong, Sen, Zhou (2024), "A decoder-only foundation model for time-series forecasting", ICML,
    arXiv:2310.10688.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> DecoderOnly(horizon=7, d_model=16, max_steps=20).fit(generate(2, 100)).predict(level=80).shape
    (14, 5)
    """

    coverage_slow: ClassVar[bool] = True

    preset: Literal["tiny", "small", "base"] = param(
        default="tiny", search=("tiny", "small"), expensive=True,
        help="size of the network: d_model, n_heads and n_layers, unless they are given",
    )
    d_model: int | None = param(default=None, at_least=1, help="dimension of the embeddings of patches; None: that of the preset")
    n_heads: int | None = param(default=None, at_least=1, help="number of attention heads; None: that of the preset")
    n_layers: int | None = param(default=None, at_least=1, help="number of layers; None: that of the preset")
    dim_feedforward: int | None = param(
        default=None, at_least=1, help="hidden size of the feed-forward networks; None: 4 * d_model",
    )
    activation: Literal["relu", "gelu", "swiglu"] = param(
        default="gelu", search=("relu", "gelu", "swiglu"),
        help="activation function of the feed-forward networks",
    )
    norm_first: bool = param(default=True, help="whether to normalize before each sublayer rather than after it")
    normalization: Literal["layer", "rms"] = param(
        default="layer", help="type of normalization: layer or root mean square ('rms')"
    )
    positional_encoding: Literal["sinusoidal", "learned", "rotary", "alibi", "calendar"] | None = param(
        default="rotary", search=("sinusoidal", "learned", "rotary", "alibi"),
        help="positional encoding of patches; None: no positional encoding",
    )
    patch_length: int | Literal["auto"] = param(
        default="auto", at_least=1,
        help="length of a patch in time steps; 'auto': a quarter of the window, at most 16, in whole seasons if it is at least "
        "one",
    )
    dropout: float = param(
        default=0.0, at_least=0, below=1, low=0.0, high=0.5,
        help="dropout probability of embeddings and sublayer outputs",
    )
    segment_length: int | None = param(
        default=None, at_least=1,
        help="length of a segment in patches, beyond which attention passes no gradient; None: one segment",
    )
    memory_segments: int = param(
        default=1, at_least=1, needs={"segment_length": Not(None)},
        help="number of previous segments that each segment attends to",
    )

    learning_example: ClassVar[dict[str, Any]] = {
        **AutoregressiveForecaster.learning_example,
        "max_steps": 200,
        "d_model": 32,
        "n_heads": 2,
        "n_layers": 1,
        "batch_size": 32,
        "head": "quantiles",
    }

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Small networks for the contract checks."""
        small: dict[str, Any] = {"input_size": 14, "max_steps": 10, "batch_size": 32, "d_model": 8, "n_heads": 2, "n_layers": 1}
        return [small, {**small, "head": "student_t", "patch_length": 2, "segment_length": 3, "positional_encoding": "alibi"}]

    @property
    def has_attention(self) -> bool:
        """Whether the model has attention weights, for `explain`."""
        return True

    def _body(self, sizes: InputSizes) -> DecoderOnlyBody:
        from deepforecast.nn.decoder_only import DecoderOnlyBody

        return DecoderOnlyBody(sizes, self._options(sizes.input_size, sizes.season))

    def _options(self, input_size: int, season: int = 1) -> DecoderOnlyOptions:
        """The options of the body; raise `ParameterError` if a patch is longer than the window."""
        from deepforecast.nn.decoder_only import DecoderOnlyOptions
        from deepforecast.nn.encoder_decoder import LayerOptions
        from deepforecast.nn.transformer import resolve_patch_length

        size = PRESETS[self.preset]
        d_model = self.d_model or size.d_model
        layer = LayerOptions(
            d_model=d_model,
            n_heads=self.n_heads or size.n_heads,
            dim_feedforward=self.dim_feedforward or 4 * d_model,
            activation=self.activation,
            norm_first=self.norm_first,
            normalization=self.normalization,
            dropout=self.dropout,
        )
        return DecoderOnlyOptions(
            layer,
            n_layers=self.n_layers or size.n_layers,
            positional_encoding=self.positional_encoding,
            patch_length=resolve_patch_length(self.patch_length, input_size, season),
            segment_length=self.segment_length,
            memory_segments=self.memory_segments,
        )
