"""Convolutions over the rows of a window: every row sees those around it, further with every layer."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from deepforecast.nn.dropout import Dropout


@dataclass(frozen=True)
class ConvolutionalOptions:
    """What the layers are: layer l looks at `kernel_size` rows, 2 ** l apart."""

    hidden_size: int = 64
    n_layers: int = 1
    kernel_size: int = 3
    dropout: float = 0.0


class Convolutional(nn.Module):
    """Gated convolutions, each added to what went into it: rows (B, L, D) -> (B, L, hidden_size).

    Gehring, Auli, Grangier, Yarats, Dauphin 2017, "Convolutional sequence to sequence learning". All rows lie in the past, so
    each looks both ways; beyond both ends there are zeros.
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
        """What comes out of the last layer, a vector a row."""
        hidden = self.input_projection(inputs).transpose(1, 2)
        for layer, convolution in enumerate(self.layers):
            padding = (self.options.kernel_size - 1) * 2**layer
            padded = functional.pad(self.drop(hidden), (padding // 2, padding - padding // 2))
            # Halved in variance, or the sum would grow with every layer.
            hidden = (hidden + functional.glu(convolution(padded), dim=1)) * 0.5**0.5
        encoded: Tensor = hidden.transpose(1, 2)
        return encoded
