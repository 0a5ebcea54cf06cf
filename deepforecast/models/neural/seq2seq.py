"""The Seq2Seq forecaster: encoder and recurrent decoder with attention."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from deepforecast.core.params import Param, param
from deepforecast.core.registry import register
from deepforecast.errors import ParameterError, ParameterTypeError
from deepforecast.models.neural._autoregressive import AutoregressiveForecaster
from deepforecast.models.neural._base import Scaler

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.seq2seq import Seq2SeqBody

Score = Literal["additive", "dot", "scaled_dot", "general", "location", "cosine", "gaussian"]
SCORES: tuple[str, ...] = get_args(Score)


class _ScoreParam(Param):
    """Parameter whose choices are the names of all registered attention scores, or None.

    Users can register scores in addition to `SCORES`, see `deepforecast.nn.scores`.
    """

    def check(self, value: Any) -> None:
        """Raise `ParameterError` unless the value is None or a registered score."""
        registered = getattr(sys.modules.get("deepforecast.nn.scores"), "SCORES", ())
        options = {field.name: getattr(self, field.name) for field in fields(Param)}
        choices = (None, *SCORES, *(name for name in registered if name not in SCORES))
        try:
            Param(**{**options, "choices": choices}).check(value)
        except ParameterTypeError:
            raise
        except ParameterError as error:
            raise ParameterError(
                f"{error} Import the module that registers your own score first."
            ) from None


def _score(*, default: str, **options: Any) -> Any:
    return _ScoreParam(default, **options, declared=tuple(options))


@register
class Seq2Seq(AutoregressiveForecaster):
    """Encoder and recurrent decoder with attention.

    The encoder maps the window to one vector per time step. The decoder predicts one step at a time
    from the previous value and from an average of the encoder outputs, weighted by the softmax of
    an attention score between its state and each of them. With `attention=None` the decoder only
    receives the final encoder state.

    Measured coverage of 80 % intervals at defaults: M1 monthly 81 %, NN5 daily 76 %, EPF Nord Pool
    hourly 75 % (benchmarks/bench_coverage.py).

    References
    ----------
    Bahdanau, Cho, Bengio (2015), "Neural machine translation by jointly learning to align and
    translate", ICLR, arXiv:1409.0473.

    Luong, Pham, Manning (2015), "Effective approaches to attention-based neural machine
    translation", EMNLP, arXiv:1508.04025.

    See Also
    --------
    Transformer : Encoder and decoder of attention layers.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> Seq2Seq(horizon=7, hidden_size=8, max_steps=20, attention="additive").fit(generate(2, 100)).predict(level=80).shape
    (14, 5)
    """

    coverage_slow: ClassVar[bool] = True

    attention: Score | str | None = _score(
        default="general", search=SCORES[:4],
        help="attention score between decoder state and encoder outputs; None: no attention",
    )
    cell: Literal["lstm", "gru", "rnn"] = param(
        default="lstm", help="recurrent cell of the decoder and of a recurrent encoder",
    )
    encoder: Literal["recurrent", "convolutional"] = param(
        default="recurrent", help="kind of encoder",
    )
    hidden_size: int = param(
        default=64, at_least=1, low=16, high=256, log=True, expensive=True,
        help="number of units per layer",
    )
    n_layers: int = param(
        default=1, at_least=1, low=1, high=3, expensive=True, help="number of stacked layers",
    )
    bidirectional: bool = param(
        default=False, help="whether the encoder also reads the window backwards"
    )
    kernel_size: int = param(
        default=3, at_least=1, help="kernel size of a convolutional encoder, in time steps"
    )
    dropout: float = param(
        default=0.0, at_least=0, below=1, low=0.0, high=0.5,
        help="dropout probability",
    )
    decoder: Literal["bahdanau", "luong"] = param(
        default="luong", help="attention before ('bahdanau') or after ('luong') the recurrent step"
    )
    input_feeding: bool = param(
        default=False,
        help="whether the attention output enters the next step; decoder='luong' only",
    )
    start_value: Literal["last", "learned"] = param(
        default="last", help="input of the first decoder step: last observation or a learned value",
    )
    teacher_forcing: Literal["constant", "linear", "inverse_sigmoid", "free"] = param(
        default="constant",
        help="teacher forcing in training; 'constant': always, 'free': never, else decaying"
    )
    positional_encoding: bool = param(
        default=False,
        help="whether to add positional encodings to time steps of window and horizon"
    )
    separate_values: bool = param(
        default=False,
        help="whether keys and values are separate linear maps of the encoder outputs",
    )
    self_attention: bool = param(
        default=False,
        help="whether to apply self-attention softmax(x x^T) x to the encoder outputs",
    )
    learned_scale: bool = param(
        default=False, help="whether to multiply the attention score by a learned factor",
    )
    attention_window: int | None = param(
        default=None, at_least=1,
        help="half-width of local attention around a predicted position; None: global attention",
    )
    hard_attention: bool = param(
        default=False, help="whether each step attends to a single time step (hard attention)"
    )
    scaler: Scaler = param(default="last")

    learning_example: ClassVar[dict[str, Any]] = {
        **AutoregressiveForecaster.learning_example, "max_steps": 600, "hidden_size": 32, "head": "quantiles"
    }  # fmt: skip

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Small networks for the contract checks."""
        small: dict[str, Any] = {"input_size": 14, "max_steps": 10, "batch_size": 32, "hidden_size": 8}
        return [small, {**small, "attention": "additive", "decoder": "bahdanau", "cell": "gru", "head": "student_t"}]

    @property
    def has_attention(self) -> bool:
        """Whether the model has attention weights, for `explain`."""
        return self.attention is not None

    def _body(self, sizes: InputSizes) -> Seq2SeqBody:
        from deepforecast.nn.attention import AttentionOptions
        from deepforecast.nn.recurrent import RecurrentOptions
        from deepforecast.nn.seq2seq import Seq2SeqBody, Seq2SeqOptions

        layers = RecurrentOptions(self.cell, self.hidden_size, self.n_layers, self.bidirectional, self.dropout)
        attention = self.attention and AttentionOptions(
            self.attention, self.separate_values, self.learned_scale, self.attention_window, self.hard_attention
        )
        return Seq2SeqBody(sizes, Seq2SeqOptions(
            layers, attention or None, self.kernel_size if self.encoder == "convolutional" else None, self.decoder,
            self.input_feeding, self.start_value, self.positional_encoding, self.self_attention,
        ))  # fmt: skip

    def _idle(self) -> Iterator[tuple[str, str]]:
        if self.attention is None:
            for name in ("decoder", "input_feeding", "separate_values", "self_attention", "learned_scale", "attention_window", "hard_attention"):
                yield name, "with attention=None. Leave it out, or set attention='general'"
        if self.decoder == "bahdanau":
            reason = "with decoder='bahdanau', where the attention output always enters the step."
            yield "input_feeding", f"{reason} Leave it out, or set decoder='luong'"
        if self.encoder == "convolutional":
            reason = "with encoder='convolutional'. Leave it out, or set encoder='recurrent'"
            yield "bidirectional", reason
        else:
            reason = "with encoder='recurrent'. Leave it out, or set encoder='convolutional'"
            yield "kernel_size", reason
