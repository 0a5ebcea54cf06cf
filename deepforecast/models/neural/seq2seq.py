"""The Seq2Seq forecaster: encoder and recurrent decoder with attention."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from deepforecast.core.params import Not, Param, param
from deepforecast.core.registry import register
from deepforecast.errors import ParameterError, ParameterTypeError
from deepforecast.models.neural._autoregressive import AutoregressiveForecaster
from deepforecast.nn.names import Scaler, Score

if TYPE_CHECKING:
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.seq2seq import Seq2SeqBody

SCORES: tuple[str, ...] = get_args(Score)


class _ScoreParam(Param):
    """Parameter whose values are names of registered attention scores, or None.

    Users can register scores in addition to `SCORES`, see `deepforecast.nn.scores`.
    """

    def check(self, value: Any) -> None:
        """Raise `ParameterError` unless the value is None or a registered score."""
        # Scores of users exist only if the module is imported already; importing it would load torch.
        registered = getattr(sys.modules.get("deepforecast.nn.scores"), "SCORES", ())
        choices = (None, *SCORES, *(name for name in registered if name not in SCORES))
        try:
            Param(self.default, name=self.name, annotation=Literal[choices]).check(value)
        except ParameterTypeError:
            raise
        except ParameterError as error:
            raise ParameterError(
                f"{error} Import the module that registers your own score first.",
                parameter=self.name,
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

    Measured coverage of 80 % intervals at defaults: M1 monthly 82 %, NN5 daily 77 %, EPF Nord Pool
    hourly 80 % (benchmarks/bench_coverage.py).

    See Also
    --------
    Transformer : Encoder and decoder of attention layers.

    References
    ----------
    Bahdanau, Cho, Bengio (2015), "Neural machine translation by jointly learning to align and
    translate", ICLR, arXiv:1409.0473.

    Luong, Pham, Manning (2015), "Effective approaches to attention-based neural machine
    translation", EMNLP, arXiv:1508.04025.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> Seq2Seq(horizon=7, hidden_size=8, max_steps=20, attention="additive").fit(generate(2, 100)).predict(level=80).shape
    (14, 5)
    """

    coverage_slow: ClassVar[bool] = True

    attention: Score | str | None = _score(
        default="general", search=SCORES[:4],
        help="attention score between decoder state and encoder outputs: 'additive', 'dot', 'scaled_dot', 'general', "
        "'location', 'cosine', 'gaussian' or a registered one; None: no attention",
    )
    cell: Literal["lstm", "gru", "rnn"] = param(
        default="lstm", help="recurrent cell of the decoder and of a recurrent encoder",
    )
    encoder: Literal["recurrent", "convolutional"] = param(
        default="recurrent", help="type of encoder layers: recurrent, or gated convolutions",
    )
    hidden_size: int = param(
        default=64, at_least=1, low=16, high=256, log=True, expensive=True,
        help="number of units per layer of encoder and decoder",
    )
    n_layers: int = param(
        default=1, at_least=1, low=1, high=3, expensive=True, help="number of stacked layers of encoder and of decoder",
    )
    bidirectional: bool = param(
        default=False, needs={"encoder": "recurrent"}, help="whether the encoder also reads the window backwards"
    )
    kernel_size: int = param(
        default=3, at_least=1, needs={"encoder": "convolutional"}, help="kernel size of the encoder, in time steps"
    )
    dropout: float = param(
        default=0.0, at_least=0, below=1, low=0.0, high=0.5,
        help="dropout probability",
    )
    decoder: Literal["bahdanau", "luong"] = param(
        default="luong", needs={"attention": Not(None)},
        help="attention before ('bahdanau') or after ('luong') the recurrent step"
    )
    input_feeding: bool = param(
        default=False, needs={"attention": Not(None), "decoder": "luong"},
        help="whether the attention output is fed to the decoder at the next step",
    )
    start_value: Literal["last", "learned"] = param(
        default="last", help="input of the first decoder step: last observation ('last') or a learned number",
    )
    teacher_forcing: Literal["constant", "linear", "inverse_sigmoid", "free"] = param(
        default="constant",
        help="schedule of teacher forcing in training; 'constant': always, 'free': never, 'linear' and "
        "'inverse_sigmoid': decaying probability"
    )
    positional_encoding: bool = param(
        default=False,
        help="whether positional encodings of the time steps are inputs of the encoder and the decoder"
    )
    separate_values: bool = param(
        default=False, needs={"attention": Not(None)},
        help="whether attention has separate linear maps of the encoder outputs for keys and values; False: the outputs",
    )
    self_attention: bool = param(
        default=False, needs={"attention": Not(None)},
        help="whether to apply self-attention softmax(x x^T) x to the encoder outputs",
    )
    learned_scale: bool = param(
        default=False, needs={"attention": Not(None)}, help="whether to multiply the attention score by a learned factor",
    )
    attention_window: int | None = param(
        default=None, at_least=1, needs={"attention": Not(None)},
        help="half-width, in time steps, of local attention around a predicted position; None: global attention",
    )
    hard_attention: bool = param(
        default=False, needs={"attention": Not(None)},
        help="whether each step attends only to the time step with the largest score (hard attention)"
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
        """The encoder and the autoregressive decoder."""
        from deepforecast.nn.attention import AttentionOptions  # imports torch
        from deepforecast.nn.recurrent import RecurrentOptions
        from deepforecast.nn.seq2seq import Seq2SeqBody, Seq2SeqOptions  # imports torch

        layers = RecurrentOptions(self.cell, self.hidden_size, self.n_layers, self.bidirectional, self.dropout)
        attention = None
        if self.attention:
            attention = AttentionOptions(
                score=self.attention,
                separate_values=self.separate_values,
                learned_scale=self.learned_scale,
                window=self.attention_window,
                hard_attention=self.hard_attention,
            )
        options = Seq2SeqOptions(
            layers,
            attention,
            kernel_size=self.kernel_size if self.encoder == "convolutional" else None,
            decoder=self.decoder,
            input_feeding=self.input_feeding,
            start_value=self.start_value,
            positional_encoding=self.positional_encoding,
            self_attention=self.self_attention,
        )
        return Seq2SeqBody(sizes, options)
