"""How paths are made of what a network says step by step: parameters of the networks that may take steps in turn."""

from __future__ import annotations

from typing import Any, Literal

from deepforecast.core.params import param
from deepforecast.errors import ParameterError, format_value
from deepforecast.models.neural._base import NeuralForecaster
from deepforecast.models.neural._forecast import DecodingOptions

DEFAULT_BEAM_WIDTH = 10


class AutoregressiveForecaster(NeuralForecaster):
    """A network that may take its steps in turn, each told the value of the one before.

    Its point is the median (or mean) of sample paths; of `decoding="greedy"` the path in which each step is told the median
    (or mean) of the one before, at the cost of a single path; of "beam" the most probable one, by beam search. Bands and sample
    paths always come from draws, so that they hold what comes at each step whatever came before it.
    """

    decoding: Literal["sample", "greedy", "beam"] = param(
        default="sample", help="by which path the point is told",
    )
    temperature: float = param(
        default=1.0, above=0,
        help="with head='bins': below 1 draws stay with what is likely, above they stray",
    )
    top_p: float = param(
        default=1.0, above=0, at_most=1,
        help="with head='bins': share of the probability that is drawn from",
    )
    beam_width: int | None = param(
        default=None, at_least=1, help="with decoding='beam': paths held at each step; None: 10",
    )

    @property
    def family(self) -> str:
        """Those that take steps in turn share the code that does, the others that of all networks."""
        return "networks step by step" if self.autoregressive else super().family

    @property
    def autoregressive(self) -> bool:
        """Whether steps are taken in turn."""
        return True

    @property
    def predict_params(self) -> tuple[str, ...]:
        """Parameters that change no fit: how paths are made is among them, where no bands are calibrated around points."""
        decoding_parameters = () if self.calibrates else ("decoding", "temperature", "top_p", "beam_width")
        return (*super().predict_params, *decoding_parameters)

    def _decoding_options(self) -> DecodingOptions:
        if self.head != "bins":
            for name in ("temperature", "top_p"):
                if getattr(self, name) != 1.0:
                    raise ParameterError(_unused_message(self, name, f"goes with head='bins', as only bins are drawn by their weights; "
                                               f"got it beside head={self.head!r}"))  # fmt: skip
            if self.decoding == "beam":
                raise ParameterError(
                    f"decoding='beam' counts paths, so it takes head='bins'; got it beside head={self.head!r}. Say "
                    "head='bins', or decoding='greedy'."
                )
        if self.decoding == "greedy" and not self.autoregressive:
            raise ParameterError(
                "decoding='greedy' feeds each step what came before; here all steps come at once, and nothing is fed. Leave it "
                "out, or take the steps in turn."
            )
        if self.beam_width is not None and self.decoding != "beam":
            raise ParameterError(_unused_message(self, "beam_width", f"goes with decoding='beam'; got it beside {self.decoding!r}"))
        return DecodingOptions(self.decoding, (self.temperature, self.top_p), self.beam_width or DEFAULT_BEAM_WIDTH)


def _unused_message(model: Any, name: str, reason: str) -> str:
    return f"{name}={format_value(getattr(model, name))} {reason}. Leave it out."
