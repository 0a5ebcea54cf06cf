"""The TimeXer forecaster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.neural._base import NeuralForecaster
from deepforecast.models.neural._shared_parameters import TransformerLayers

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.timexer import TimeXerBody


@register
class TimeXer(TransformerLayers, NeuralForecaster):
    """TimeXer: Transformer encoder on patches of the target that attends to whole covariates.

    Patches of the target, P, and a learned global token g pass through layers of self-attention among
    [P, g], attention from g alone to the covariate tokens V, and a feed-forward network, each with a
    residual connection and layer normalization after it:

        [P, g] <- LN([P, g] + SelfAttention([P, g]))
        g      <- LN(g + CrossAttention(g, V))
        [P, g] <- LN([P, g] + FeedForward([P, g])),    y = W flatten([P, g]) + b + U f

    A covariate is one token: a linear map of its values in the window, and of future covariates also
    over the horizon. Calendar features are covariates.

    Differences from the paper: future covariates, which also have a linear effect U f on their step;
    each covariate token has a learned vector; a mask of missing values is a second channel of the patches,
    static covariates are added to them; the first patch is padded with zeros, if necessary; without
    covariates there is no cross-attention. The instance normalization of the paper is
    scaler="standard".

    Measured coverage of 80 % intervals at defaults: M1 monthly 83 %, NN5 daily 76 %, EPF Nord Pool
    hourly 82 % (benchmarks/bench_coverage.py).

    See Also
    --------
    PatchTST : Encoder on patches of the target and of the covariates.
    Transformer : Encoder and decoder on patches.

    References
    ----------
    Wang, Wu, Dong, Qin, Zhang, Liu, Qiu, Wang, Long (2024), "TimeXer: Empowering transformers for time series
    forecasting with exogenous variables", NeurIPS, arXiv:2402.19072.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> TimeXer(horizon=7, d_model=16, max_steps=20).fit(generate(2, 100)).predict(level=80).shape
    (14, 5)
    """

    coverage_slow: ClassVar[bool] = True

    n_layers: int = param(
        default=2, at_least=1, low=1, high=3, expensive=True, help="number of encoder layers",
    )
    activation: Literal["relu", "gelu", "swiglu"] = param(default="gelu")
    norm_first: bool = param(default=False)
    dropout: float = param(default=0.1)
    positional_encoding: Literal["sinusoidal", "learned"] | None = param(
        default="sinusoidal", help="positional encoding of patches; None: no positional encoding",
    )
    head_dropout: float = param(
        default=0.0, at_least=0, below=1, help="dropout probability of the inputs of the output layer",
    )

    learning_example: ClassVar[dict[str, Any]] = {
        **NeuralForecaster.learning_example,
        "max_steps": 250,
        "d_model": 16,
        "n_heads": 2,
        "n_layers": 1,
        "batch_size": 64,
        "patch_length": 1,
        "dropout": 0.0,
    }

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Small networks for the contract checks."""
        return [
            {"input_size": 14, "max_steps": 10, "batch_size": 32, "d_model": 8, "n_heads": 2, "n_layers": 1, "patch_length": 4}
        ]

    def _body(self, sizes: InputSizes) -> TimeXerBody:
        from deepforecast.nn.timexer import TimeXerBody
        from deepforecast.nn.transformer import TransformerOptions, resolve_patch_length

        patch_length = resolve_patch_length(self.patch_length, sizes.input_size)
        options = TransformerOptions(
            self._layer_options(),
            encoder_layers=self.n_layers,
            positional_encoding=self.positional_encoding,
            patch_length=patch_length,
            stride=patch_length,
        )
        return TimeXerBody(sizes, options, self.head_dropout)
