"""Parameters that several networks share: mixins before the base class of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.params import param
from deepforecast.nn.names import Scaler

if TYPE_CHECKING:
    from deepforecast.nn.encoder_decoder import LayerOptions


class TransformerLayers:
    """Parameters of Transformer layers on patches."""

    d_model: int = param(
        default=64, at_least=1, search=(32, 64, 128), help="dimension of the embeddings of patches and time steps",
    )
    n_heads: int = param(default=4, at_least=1, search=(2, 4, 8), help="number of attention heads")
    dim_feedforward: int | None = param(
        default=None, at_least=1, help="hidden size of the feed-forward networks; None: 4 * d_model",
    )
    activation: Literal["relu", "gelu", "swiglu"] = param(
        default="relu", search=("relu", "gelu", "swiglu"),
        help="activation function of the feed-forward networks",
    )
    norm_first: bool = param(default=True, help="whether to normalize before each sublayer rather than after it")
    normalization: Literal["layer", "batch", "rms"] = param(
        default="layer", help="type of normalization: layer, batch or root mean square ('rms')"
    )
    patch_length: int | Literal["auto"] = param(
        default="auto", at_least=1,
        help="length of a patch in time steps; 'auto': a quarter of the window, at most 16",
    )
    dropout: float = param(
        default=0.0, at_least=0, below=1, low=0.0, high=0.5,
        help="dropout probability of embeddings and sublayer outputs",
    )

    feedforward_factor: ClassVar[int] = 4  # dim_feedforward=None: this multiple of d_model

    def _layer_options(self) -> LayerOptions:
        from deepforecast.nn.encoder_decoder import LayerOptions  # imports torch

        return LayerOptions(
            d_model=self.d_model,
            n_heads=self.n_heads,
            dim_feedforward=self.dim_feedforward or self.feedforward_factor * self.d_model,
            activation=self.activation,
            norm_first=self.norm_first,
            normalization=self.normalization,
            dropout=self.dropout,
        )


class StatesDecoder:
    """Parameters of `nn.recurrent.StatesDirect`, which computes all steps from the states of the window."""

    decoder_layers: int = param(default=1, at_least=0, help="number of hidden layers of the decoder")
    decoder_size: int = param(default=64, at_least=1, help="number of units per hidden layer of the decoder")
    skip_hidden_sizes: Sequence[int] | None = param(
        default=None, at_least=1, search=(None, (128,), (256, 256)),
        help="number of units of each hidden layer of a perceptron of the window whose output is added, e.g. (256, 256); "
        "None: no perceptron",
    )

    def _decoder_options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("decoder_layers", "decoder_size", "skip_hidden_sizes")}


class ResidualStackDefaults:
    """Scaling, sampling and length of the training that suit residual stacks, and their dropout."""

    has_components: ClassVar[bool] = True
    max_auto_steps: ClassVar[int] = 1200
    max_auto_batch: ClassVar[int] = 1024
    shortens_windows: ClassVar[bool] = True

    scaler: Scaler = param(default="level")
    sample_by: Literal["auto", "windows", "series"] = param(default="auto")
    dropout: float = param(
        default=0.0, at_least=0, below=1, low=0.0, high=0.3,
        help="dropout probability",
    )
