"""The base class of networks that can predict autoregressively."""

from __future__ import annotations

from typing import Literal

from deepforecast.core.params import param, refuse_unused_parameters
from deepforecast.errors import ParameterError
from deepforecast.models.neural._base import NeuralForecaster
from deepforecast.models.neural._forecast import DecodingOptions

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
