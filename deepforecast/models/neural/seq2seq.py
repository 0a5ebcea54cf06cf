"""Seq2Seq: a recurrent decoder that looks back at the encoded window at every step."""

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
    """The name of a score, or None. `nn.scores.score` may have registered more of them than `SCORES`."""

    def check(self, value: Any) -> None:
        """As `Param`, with the scores registered by now as choices."""
        registered = getattr(sys.modules.get("deepforecast.nn.scores"), "SCORES", ())
        options = {field.name: getattr(self, field.name) for field in fields(Param)}
        choices = (None, *SCORES, *(name for name in registered if name not in SCORES))
        try:
            Param(**{**options, "choices": choices}).check(value)
        except ParameterTypeError:
            raise
        except ParameterError as error:
            raise ParameterError(f"{error} Import the module that registers a score of your own first.") from None


def _score(*, default: str, **options: Any) -> Any:
    return _ScoreParam(default, **options, declared=tuple(options))


@register
class Seq2Seq(AutoregressiveForecaster):
    """Encoder and decoder: the window is read to a vector a row, and each step ahead, told the value of the one before, takes
    from these rows as much as a score of it and them says. `attention=None` leaves it the state after the last row alone.

    Bahdanau, Cho, Bengio 2015, "Neural machine translation by jointly learning to align and translate"; Luong, Pham, Manning
    2015, "Effective approaches to attention-based neural machine translation".

    Measured coverage of 80 % intervals at defaults: M1 monthly 81 %, NN5 daily 76 %, EPF Nord Pool
    hourly 75 % (benchmarks/bench_coverage.py).

    >>> from deepforecast.datasets import generate
    >>> Seq2Seq(horizon=7, hidden_size=8, max_steps=20, attention="additive").fit(generate(2, 100)).predict(level=80).shape
    (14, 5)
    """

    coverage_slow: ClassVar[bool] = True

    attention: Score | str | None = _score(
        default="general", search=SCORES[:4],
        help="score by which a step looks back at the rows; None: not",
    )
    cell: Literal["lstm", "gru", "rnn"] = param(
        default="lstm", help="of the decoder and of a recurrent encoder",
    )
    encoder: Literal["recurrent", "convolutional"] = param(
        default="recurrent", help="what reads the window",
    )
    hidden_size: int = param(
        default=64, at_least=1, low=16, high=256, log=True, expensive=True, help="width of a layer",
    )
    n_layers: int = param(
        default=1, at_least=1, low=1, high=3, expensive=True, help="layers on top of each other",
    )
    bidirectional: bool = param(default=False, help="whether the window is read backwards too")
    kernel_size: int = param(default=3, at_least=1, help="rows that a convolution looks at")
    dropout: float = param(
        default=0.0, at_least=0, below=1, low=0.0, high=0.5,
        help="share of the numbers hidden while training",
    )
    decoder: Literal["bahdanau", "luong"] = param(
        default="luong", help="whether it looks back before it takes a step, or after it"
    )
    input_feeding: bool = param(
        default=False, help="with decoder='luong': whether what came of a look enters the next step",
    )
    start_value: Literal["last", "learned"] = param(
        default="last", help="value before the first step: the last one, or a learned one",
    )
    teacher_forcing: Literal["constant", "linear", "inverse_sigmoid", "free"] = param(
        default="constant", help="how long true values are fed in training"
    )
    positional_encoding: bool = param(default=False, help="whether rows and steps are told where they stand")
    separate_values: bool = param(
        default=False, help="whether keys and values are maps of their own of what was read",
    )
    self_attention: bool = param(
        default=False, help="whether the rows look at each other first: softmax(x xT) x",
    )
    learned_scale: bool = param(
        default=False, help="whether a learned number multiplies the score",
    )
    attention_window: int | None = param(
        default=None, at_least=1,
        help="rows on either side of one that a step chooses; None: all are looked at",
    )
    hard_attention: bool = param(default=False, help="whether a step looks at one row alone")
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
        """Whether it can say where it looked."""
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
                yield name, "where nothing is looked back at: leave it out, or say attention='general'"
        if self.decoder == "bahdanau":
            yield "input_feeding", "with decoder='bahdanau', where each look enters its step: leave it out, or say decoder='luong'"
        if self.encoder == "convolutional":
            yield "bidirectional", "on convolutions, which look both ways: leave it out, or say encoder='recurrent'"
        else:
            yield "kernel_size", "on recurrent layers: leave it out, or say encoder='convolutional'"
