"""Temporal Fusion Transformer: gated residual networks, variable selection, an LSTM encoder and decoder, and interpretable
attention.

Lim, Arık, Loeff, Pfister (2021), arXiv:1912.09363; equations are those of this paper. V is the number
of variables; all of them pass through their networks at once, in tensors (V, batch, ..., d_model).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.core.forecast import unused_name
from deepforecast.nn.batch import Inputs, InputSizes, input_variables
from deepforecast.nn.layers import Dropout
from deepforecast.nn.multihead import AttentionMask, attention, check_heads, padding_bias, split_heads
from deepforecast.nn.network import AttentionBody, AttentionWeights, DirectBody
from deepforecast.nn.recurrent import Recurrent, RecurrentOptions, lagged_states, readout_lag

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class TFTOptions:
    """Options of the Temporal Fusion Transformer.

    Parameters
    ----------
    d_model : int, default 32
        Width of all layers.
    n_heads : int, default 4
        Heads of the attention, a divisor of `d_model`.
    lstm_layers : int, default 1
        Layers of the LSTM encoder and of the LSTM decoder.
    dropout : float, default 0.1
    seasonal_lag : bool, default False
        Whether the value one season before a step of the horizon is a future variable.
    """

    d_model: int = 32
    n_heads: int = 4
    lstm_layers: int = 1
    dropout: float = 0.1
    seasonal_lag: bool = False


class ParallelLinear(nn.Module):
    """A linear map per variable, in one batched matrix product."""

    def __init__(self, n_variables: int, width_in: int, width_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_variables, width_in, width_out))
        self.bias = nn.Parameter(torch.zeros(n_variables, 1, width_out))

    def forward(
        self, hidden: Float[Tensor, "variables *shape width_in"]
    ) -> Float[Tensor, "variables *shape width_out"]:
        """Map the vectors of each variable by its own weights."""
        product = torch.baddbmm(self.bias, hidden.flatten(1, -2), self.weight)
        return product.view(*hidden.shape[:-1], -1)


class ParallelNorm(nn.Module):
    """Layer normalisation with weights per variable."""

    def __init__(self, n_variables: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_variables, 1, width))
        self.bias = nn.Parameter(torch.zeros(n_variables, 1, width))

    def forward(
        self, hidden: Float[Tensor, "variables *shape width"]
    ) -> Float[Tensor, "variables *shape width"]:
        """Normalise the last axis."""
        normalized = F.layer_norm(hidden, hidden.shape[-1:]).flatten(1, -2)
        return torch.addcmul(self.bias, normalized, self.weight).view(hidden.shape)


class GatedResidual(nn.Module):
    """LayerNorm(skip + GLU(hidden)), GLU(h) = sigmoid(W_4 h + b_4) * (W_5 h + b_5) (eq. 5), with dropout on h.

    Parameters
    ----------
    width_in, width_out : int
        Widths of `hidden` and of `skip`.
    dropout : float, default 0.0
    n_variables : int, optional
        Number of variables with weights of their own; None: one set of weights.
    """

    def __init__(self, width_in: int, width_out: int, dropout: float = 0.0, n_variables: int | None = None) -> None:
        super().__init__()
        self.drop = Dropout(dropout)
        self.gate = make_linear(width_in, 2 * width_out, n_variables)  # W_5, then W_4
        self.norm: nn.Module = (
            nn.LayerNorm(width_out) if n_variables is None else ParallelNorm(n_variables, width_out)
        )

    def forward(
        self, hidden: Float[Tensor, "*shape width_in"], skip: Float[Tensor, "*shape width_out"]
    ) -> Float[Tensor, "*shape width_out"]:
        """Add the gated `hidden` to `skip`, and normalise."""
        return cast(Tensor, self.norm(skip + F.glu(self.gate(self.drop(hidden)), dim=-1)))


class GatedResidualNetwork(nn.Module):
    """Gated residual network (GRN), eq. 2 to 4.

    GRN(a, c) = LayerNorm(a + GLU(W_1 ELU(W_2 a + b_2 + W_3 c) + b_1)); `a` is mapped linearly where the
    output has another width.

    Parameters
    ----------
    width_in, width, width_out : int
        Widths of the input, of the hidden layers and of the output.
    dropout : float, default 0.0
    has_context : bool, default False
        Whether there is a context c, of width `width`.
    n_variables : int, optional
        Number of variables with weights of their own.
    """

    def __init__(
        self, width_in: int, width: int, width_out: int, dropout: float = 0.0, has_context: bool = False,
        n_variables: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.linear2 = make_linear(width_in, width, n_variables)
        self.context = nn.Linear(width, width, bias=False) if has_context else None
        self.linear1 = make_linear(width, width, n_variables)
        self.skip = make_linear(width_in, width_out, n_variables) if width_in != width_out else None
        self.residual = GatedResidual(width, width_out, dropout, n_variables)

    def forward(
        self,
        inputs: Float[Tensor, "*shape width_in"],
        context: Float[Tensor, "*#shape width"] | None = None,
    ) -> Float[Tensor, "*shape width_out"]:
        """Map the inputs, given the context."""
        hidden = self.linear2(inputs)
        if self.context is not None:
            hidden = hidden + self.context(context)
        skip = inputs if self.skip is None else self.skip(inputs)
        return cast(Tensor, self.residual(self.linear1(F.elu(hidden)), skip))


class VariableSelection(nn.Module):
    """Weighted sum of the variables, each after a GRN of its own (eq. 6 to 8).

    The weights are softmax(GRN([xi_1, .., xi_V], c_s)), the sum is of v_j GRN_j(xi_j). The xi_j are linear
    maps of the columns of the variables to width d_model.

    Parameters
    ----------
    widths : sequence of int
        Number of columns of each variable.
    d_model : int
    dropout : float
    has_context : bool
        Whether the weights depend on the static context c_s.
    """

    def __init__(self, widths: Sequence[int], d_model: int, dropout: float, has_context: bool = False) -> None:
        super().__init__()
        self.widths = list(widths)
        self.embeddings = nn.ModuleList([nn.Linear(width, d_model) for width in widths])
        n_variables = len(self.widths)
        # The weight of a single variable is 1.
        self.weights = (
            GatedResidualNetwork(n_variables * d_model, d_model, n_variables, dropout, has_context)
            if n_variables > 1
            else None
        )
        self.variables = GatedResidualNetwork(d_model, d_model, d_model, dropout, n_variables=n_variables)

    def forward(
        self,
        columns: Float[Tensor, "*shape columns"],
        context: Float[Tensor, "*#shape width"] | None = None,
    ) -> tuple[Float[Tensor, "*shape width"], Float[Tensor, "*shape variables"]]:
        """Return the weighted sum of the variables, and the weights."""
        embedded = torch.stack([
            embedding(part) for embedding, part in zip(self.embeddings, torch.split(columns, self.widths, -1), strict=True)
        ])  # fmt: skip
        transformed = self.variables(embedded)  # (V, batch, ..., d_model)
        if self.weights is None:
            return transformed[0], torch.ones_like(columns[..., :1])
        weights = self.weights(embedded.movedim(0, -2).flatten(-2), context).softmax(-1)
        return (transformed * weights.movedim(-1, 0).unsqueeze(-1)).sum(0), weights


class InterpretableAttention(nn.Module):
    """Multi-head attention whose heads share the values, so that one matrix of weights explains the output (eq. 13 to 16).

    (1 / m) sum_h A(Q W_Q^h, K W_K^h) V W_V W_H: the mean of the heads' weights A, times one projection
    of the values of width d_model / m, mapped back to d_model.

    Parameters
    ----------
    d_model : int
    n_heads : int
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = check_heads(d_model, n_heads)
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model // n_heads, bias=False)
        self.out = nn.Linear(d_model // n_heads, d_model, bias=False)

    def forward(
        self,
        queries: Float[Tensor, "batch queries width"],
        tokens: Float[Tensor, "batch keys width"],
        mask: AttentionMask,
        attention_maps: list[Float[Tensor, "batch heads queries keys"]] | None = None,
    ) -> Float[Tensor, "batch queries width"]:
        """Attend from queries to tokens; the weights of all heads are appended to `attention_maps`."""
        (query,) = split_heads(self.query(queries), 1, self.n_heads)
        (key,) = split_heads(self.key(tokens), 1, self.n_heads)
        value = self.value(tokens).unsqueeze(1).expand(-1, self.n_heads, -1, -1)
        heads = attention(query, key, value, mask, attention_maps)  # (batch, heads, queries, dim)
        return cast(Tensor, self.out(heads.mean(1)))


class StaticEncoder(nn.Module):
    """Selection of the static variables, and the four contexts of the other layers, one GRN each (section 4.3)."""

    def __init__(self, widths: Sequence[int], options: TFTOptions) -> None:
        super().__init__()
        width = options.d_model
        self.selection = VariableSelection(widths, width, options.dropout)
        self.contexts = nn.ModuleList([GatedResidualNetwork(width, width, width, options.dropout) for _ in range(4)])

    def forward(
        self, static: Float[Tensor, "batch columns"]
    ) -> tuple[list[Float[Tensor, "batch width"]], Float[Tensor, "batch variables"]]:
        """Return [c_s, c_e, c_h, c_c], and the weights of the variables."""
        selected, weights = self.selection(static)
        return [context(selected) for context in self.contexts], weights


class TFTBody(DirectBody, AttentionBody):
    """Temporal Fusion Transformer with the variables of the network's columns.

    Parameters
    ----------
    sizes : InputSizes
    options : TFTOptions
    """

    position: Float[Tensor, "steps 1"]  # of the window and the horizon, 0 at the cutoff
    causal_bias: Float[Tensor, "horizon steps"]

    def __init__(self, sizes: InputSizes, options: TFTOptions) -> None:
        super().__init__()
        width, dropout = options.d_model, options.dropout
        self.input_size, self.lstm_layers, self.over_time = sizes.input_size, options.lstm_layers, True
        past, future, static = input_variables(sizes)
        # The target has two columns: its values and the mask of observed ones. With the position there
        # is always a variable that is known in the future.
        target_name, position_name = (unused_name(name, dict(past)) for name in ("target", "position"))
        self.past_names = (target_name, position_name, *(name for name, _ in past))
        self.future_names = (position_name, *(name for name, _ in future))
        future_widths = [1, *(width for _, width in future)]
        self.lag = readout_lag(sizes, sizes.season) if options.seasonal_lag else 0
        if self.lag:
            self.future_names += (unused_name("lag", dict(future)),)
            future_widths.append(2)  # value and mask
        self.static_names = tuple(name for name, _ in static)
        has_static = bool(static)
        self.static_encoder = StaticEncoder([width for _, width in static], options) if has_static else None
        self.past_selection = VariableSelection([2, 1, *(width for _, width in past)], width, dropout, has_static)
        self.future_selection = VariableSelection(future_widths, width, dropout, has_static)
        layers = RecurrentOptions("lstm", width, options.lstm_layers, dropout=dropout)
        self.encoder, self.decoder = Recurrent(width, layers), Recurrent(width, layers)
        self.encoder_residual = GatedResidual(width, width, dropout)
        self.enrichment = GatedResidualNetwork(width, width, width, dropout, has_static)
        self.attention = InterpretableAttention(width, options.n_heads)
        self.attention_residual = GatedResidual(width, width, dropout)
        self.feedforward = GatedResidualNetwork(width, width, width, dropout)
        self.output_residual = GatedResidual(width, width)
        self.out = nn.Linear(width, sizes.out_features)
        initialize(self)
        steps = torch.arange(1 - sizes.input_size, sizes.horizon + 1)
        self.register_buffer("position", (steps / sizes.input_size).unsqueeze(1), persistent=False)
        # A step attends to the window and to the steps up to itself.
        ahead = steps.unsqueeze(0) > steps[sizes.input_size :].unsqueeze(1)  # (horizon, input_size + horizon)
        self.register_buffer("causal_bias", torch.zeros(ahead.shape).masked_fill(ahead, -torch.inf), persistent=False)

    def features(self, inputs: Inputs) -> Float[Tensor, "batch horizon out_features"]:
        """Return the raw output of all steps."""
        return self._decode(inputs)[0]

    def attention_maps(
        self, inputs: Inputs, previous: Float[Tensor, "batch horizon"]
    ) -> list[AttentionWeights]:
        """Return the attention weights, the mean over the heads, and the weights of the variable selection."""
        attention_maps: list[Tensor] = []
        _, selections = self._decode(inputs, attention_maps)
        n_steps = self.position.shape[0]
        steps = torch.arange(1, n_steps + 1) - self.input_size
        past_steps, future_steps = steps[: self.input_size], steps[self.input_size :]
        maps = [AttentionWeights("self", 0, attention_maps[0].mean(1, keepdim=True), future_steps, steps)]
        kinds = (
            ("past variables", past_steps, self.past_names),
            ("future variables", future_steps, self.future_names),
            ("static variables", past_steps[-1:], self.static_names),
        )
        for (kind, queries, names), weights in zip(kinds, selections, strict=False):
            heads = weights.view(len(weights), 1, len(queries), len(names))
            keys = torch.arange(len(names))
            maps.append(AttentionWeights(kind, 0, heads, queries, keys, names))
        return maps

    def _decode(self, inputs: Inputs, attention_maps: list[Tensor] | None = None) -> tuple[Tensor, list[Tensor]]:
        """Return the raw output (batch, horizon, out_features), and the weights of the past, future and static
        variables.
        """
        contexts: list[Tensor] | None = None
        static_weights: list[Tensor] = []
        if self.static_encoder is not None:
            contexts, weights = self.static_encoder(inputs.static)
            static_weights = [weights]
        temporal, selections = self._encode(inputs, contexts)
        enriched = self.enrichment(temporal, None if contexts is None else contexts[1].unsqueeze(1))  # eq. 18
        ahead = slice(self.input_size, None)
        mask = AttentionMask(self.causal_bias + self._padding(inputs))
        attended = self.attention(enriched[:, ahead], enriched, mask, attention_maps)
        hidden = self.attention_residual(attended, enriched[:, ahead])  # eq. 20
        hidden = self.output_residual(self.feedforward(hidden), temporal[:, ahead])  # eq. 21, 22
        return self.out(hidden), [*selections, *static_weights]

    def _encode(self, inputs: Inputs, contexts: list[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        """Select the variables of every time step and run the LSTM over them.

        Returns its gated outputs (batch, input_size + horizon, d_model) (eq. 17), and the weights of the past
        and of the future variables.
        """
        position = self.position.expand(inputs.y.shape[0], -1, -1)
        target = torch.stack([inputs.y, inputs.observed], dim=-1)
        past = torch.cat([target, position[:, : self.input_size], inputs.past], dim=-1)
        known = [position[:, self.input_size :], inputs.future]
        if self.lag:
            known.append(lagged_states(target, self.lag, inputs.future.shape[1]))
        future = torch.cat(known, dim=-1)
        selection_context = None if contexts is None else contexts[0].unsqueeze(1)
        past_tokens, past_weights = self.past_selection(past, selection_context)
        future_tokens, future_weights = self.future_selection(future, selection_context)
        # All layers start from c_h and c_c.
        state = None if contexts is None else (contexts[2],) * self.lstm_layers + (contexts[3],) * self.lstm_layers
        encoded, state = self.encoder(past_tokens, state)
        decoded, _ = self.decoder(future_tokens, state)
        tokens = torch.cat([past_tokens, future_tokens], dim=1)
        temporal = self.encoder_residual(torch.cat([encoded, decoded], dim=1), tokens)
        return temporal, [past_weights, future_weights]

    def _padding(self, inputs: Inputs) -> Tensor:
        """Return the bias (batch, 1, 1, input_size + horizon) that masks time steps before the first observation."""
        valid = inputs.observed.cumsum(1).clamp(max=1.0)
        return padding_bias(F.pad(valid, (0, self.position.shape[0] - self.input_size), value=1.0))


def initialize(body: nn.Module) -> None:
    """Set the weights of linear maps as Glorot and Bengio (2010) and their biases to 0, in place, as the paper's code does.

    The forget gates of the LSTM start open (bias 1): the path from the window to the horizon through gates,
    residual connections and normalisations is long, and with torch's weights hardly anything arrives.
    """
    for module in body.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, ParallelLinear):
            bound = math.sqrt(6 / sum(module.weight.shape[1:]))
            nn.init.uniform_(module.weight, -bound, bound)
        elif isinstance(module, nn.LSTM):
            for name, values in module.named_parameters():
                if name.startswith("weight_ih"):
                    nn.init.xavier_uniform_(values)
                elif name.startswith("weight_hh"):
                    nn.init.orthogonal_(values)
                else:
                    nn.init.zeros_(values)
                    if name.startswith("bias_ih"):  # gates: input, forget, cell, output
                        with torch.no_grad():
                            values[module.hidden_size : 2 * module.hidden_size] = 1.0


def make_linear(width_in: int, width_out: int, n_variables: int | None) -> nn.Module:
    """Return a linear map, or one per variable."""
    if n_variables is None:
        return nn.Linear(width_in, width_out)
    return ParallelLinear(n_variables, width_in, width_out)
