"""Gated convolutions over the time steps of a window."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from deepforecast.nn.dropout import Dropout


@dataclass(frozen=True)
class ConvolutionalOptions:
    """Sizes of the layers; layer l has kernels of `kernel_size` time steps with dilation 2^l."""

    hidden_size: int = 64
    n_layers: int = 1
    kernel_size: int = 3
    dropout: float = 0.0


class Convolutional(nn.Module):
    """Residual gated convolutions (GLU), (batch, steps, width_in) -> (batch, steps, hidden_size).

    Layer l has dilation 2^l. As all steps lie in the past, kernels are centred on their step, with
    zero padding at both ends of the window.

    References
    ----------
    Gehring, Auli, Grangier, Yarats, Dauphin (2017), "Convolutional Sequence to Sequence Learning",
    arXiv:1705.03122.
    """

    def __init__(self, width_in: int, options: ConvolutionalOptions) -> None:
        super().__init__()
        self.options = options
        self.input_projection = nn.Linear(width_in, options.hidden_size)
        self.layers = nn.ModuleList([
            nn.Conv1d(options.hidden_size, 2 * options.hidden_size, options.kernel_size, dilation=2**layer)
            for layer in range(options.n_layers)
        ])  # fmt: skip
        self.drop = Dropout(options.dropout)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the output of the last layer, (batch, steps, hidden_size)."""
        hidden = self.input_projection(inputs).transpose(1, 2)
        for layer, convolution in enumerate(self.layers):
            padding = (self.options.kernel_size - 1) * 2**layer
            padded = functional.pad(self.drop(hidden), (padding // 2, padding - padding // 2))
            # sqrt(1/2) keeps the variance of the sum constant over the layers (Gehring et al., section 3.5).
            hidden = (hidden + functional.glu(convolution(padded), dim=1)) * 0.5**0.5
        encoded: Tensor = hidden.transpose(1, 2)
        return encoded
