"""The Transformer on windows: an encoder over their rows, and a decoder over the steps ahead, taken in turn or all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.nn.batch import Inputs, Sizes
from deepforecast.nn.body import Attended, Attending, Direct, State, Stepwise
from deepforecast.nn.dropout import Dropout
from deepforecast.nn.multihead import Memory, hidden
from deepforecast.nn.patches import Patches
from deepforecast.nn.positions import Places, Positions
from deepforecast.nn.recurrent_direct import lagged, reading_lag
from deepforecast.nn.transformer import At, Decoder, Encoder, LayerOptions


@dataclass(frozen=True)
class TransformerOptions:
    """What the network is: its layers and their number, how places are told, and how long and how far apart patches are."""

    layer: LayerOptions = field(default_factory=LayerOptions)
    encoder_layers: int = 2
    decoder_layers: int = 2
    positions: str | None = "sinusoidal"
    patch_length: int = 1
    stride: int = 1


class Reader(nn.Module):
    """The window read: its rows as tokens, encoded, and keys and values of them for every layer of the decoder.

    `places`: the rows of the steps ahead that the decoder's tokens stand for. Padding before a series begins is not looked at;
    rows that are merely missing are, for what is known of them besides the value.
    """

    def __init__(self, sizes: Sizes, options: TransformerOptions, ahead: Sequence[int]) -> None:
        super().__init__()
        width, heads = options.layer.width, options.layer.n_heads
        self.patches = Patches(sizes.input_size, options.patch_length, options.stride)
        self.behind = tuple(end - sizes.input_size + 1 for end in self.patches.ends)
        self.embedded = nn.Linear(options.patch_length * (2 + sizes.past), width)
        self.fixed = nn.Linear(sizes.static, width, bias=False) if sizes.static else None
        self.positions = Positions(options.positions, Places(self.behind, tuple(ahead)), width, heads, sizes.circles)
        self.drop = Dropout(options.layer.dropout)
        self.encoder = Encoder(options.layer, options.encoder_layers)
        self.memory = Memory(width, heads, options.decoder_layers)

    def forward(self, inputs: Inputs, kept: list[Tensor] | None = None) -> tuple[list[Tensor], Tensor]:
        """Keys and values for each layer, (B, heads, K, w), and what hides the keys that are none, (B, 1, 1, K)."""
        added = hidden(self.patches.last(inputs.seen.cumsum(1).clamp(max=1.0)))
        encoded = self.encoder(self.tokens(inputs), self.positions.behind_look(added), kept)
        return self.memory(encoded, self.positions.turned(ahead=False)), added

    def tokens(self, inputs: Inputs) -> Tensor:
        """(B, K, D)."""
        rows = torch.cat([inputs.y.unsqueeze(-1), inputs.seen.unsqueeze(-1), inputs.past], dim=-1)
        tokens = self.embedded(self.patches.cut(rows))
        if self.fixed is not None:
            tokens = tokens + self.fixed(inputs.static).unsqueeze(1)
        return cast(Tensor, self.drop(self.positions.onto(tokens, self.patches.last(inputs.past), ahead=False)))


class TransformerStepwise(Stepwise, Attending):
    """One step after the other: each is told the value before it, sees the steps before it and the window, and no later one.

    In training all steps are taught in one pass. In forecasts the encoder runs once, and of the steps taken keys and values are
    kept: a step costs the same whichever it is. The first is told the whole row before it, not its value alone. The state:
    memory, what hides it and that row, which paths share, then a cache a layer.
    """

    shared = 3

    def __init__(self, sizes: Sizes, options: TransformerOptions) -> None:
        super().__init__()
        self.horizon = sizes.horizon
        self.reader = Reader(sizes, options, range(1, sizes.horizon + 1))
        self.embedded = nn.Linear(1 + sizes.ahead, options.layer.width)
        self.opening = nn.Linear(sizes.past, options.layer.width, bias=False) if sizes.past else None
        self.decoder = Decoder(options.layer, options.decoder_layers)
        self.over_time = self.reader.patches.count
        self.out = nn.Linear(options.layer.width, sizes.width)

    def start(self, inputs: Inputs) -> State:
        """What was read, and caches with nothing in them."""
        memory, added = self.reader(inputs)
        windows, heads, _, width = memory[0].shape
        caches = [added.new_empty(windows, 2, heads, 0, width) for _ in self.decoder.layers]
        return (torch.stack(memory, 1), added, self._before(inputs), *caches)

    def step(self, state: State, previous: Tensor, ahead: Tensor, number: int) -> tuple[Tensor, State]:
        """What the head reads of the next step, (B * N, width), and the state after it. Without gradients, caches are written
        into: of a state that has been gone on from, only what comes of it is to be gone on with."""
        memory, added, opening, *caches = state
        room = number + 1 if torch.is_grad_enabled() else self.horizon
        token = self._tokens(previous.unsqueeze(1), ahead.unsqueeze(1), number).squeeze(1)
        if number == 0:
            token = (token.view(len(opening), -1, token.shape[-1]) + opening).flatten(0, 1)
        looks = self.reader.positions.step_looks(number, added)
        found, after = self.decoder.step(token, caches, memory.unbind(1), At(number, room), looks)
        return self.out(found), (memory, added, opening, *after)

    def teach(self, inputs: Inputs, previous: Tensor) -> Tensor:
        """All steps with the values before them given, (B, horizon), in one pass: (B, horizon, width)."""
        return cast(Tensor, self.out(self._decoded(inputs, previous)))

    def attended(self, inputs: Inputs, previous: Tensor) -> list[Attended]:
        """The weights of every layer: the window at itself, the steps at themselves, the steps at the window."""
        kept: list[Tensor] = []
        self._decoded(inputs, previous, kept)
        steps = torch.arange(1, previous.shape[1] + 1)
        return named(kept, len(self.reader.encoder.layers), torch.tensor(self.reader.behind), (steps, steps))

    def _decoded(self, inputs: Inputs, previous: Tensor, kept: list[Tensor] | None = None) -> Tensor:
        memory, added = self.reader(inputs, kept)
        count, positions = previous.shape[1], self.reader.positions
        looks = positions.ahead_look(True, count), positions.between_look(added, count)
        tokens = self._tokens(previous, inputs.ahead[:, :count])
        tokens = torch.cat([tokens[:, :1] + self._before(inputs), tokens[:, 1:]], dim=1)
        return cast(Tensor, self.decoder(tokens, memory, looks, kept))

    def _before(self, inputs: Inputs) -> Tensor:
        """What the first step is told of the row before it besides the value: (B, 1, D)."""
        if self.opening is None:
            return inputs.y.new_zeros(len(inputs.y), 1, self.out.in_features)
        return cast(Tensor, self.opening(inputs.past[:, -1:]))

    def _tokens(self, previous: Tensor, ahead: Tensor, begin: int = 0) -> Tensor:
        """(B, n), (B, n, ahead) -> (B, n, D)."""
        tokens = self.embedded(torch.cat([previous.unsqueeze(-1), ahead], dim=-1))
        return cast(Tensor, self.reader.drop(self.reader.positions.onto(tokens, ahead, True, begin)))


class TransformerDirect(Direct, Attending):
    """All steps at once: a token for each patch of steps is told what is known ahead of them and the values a season before
    (or `horizon` rows before, without a season that fits), sees all other steps and the window, and says all its steps.

    Patches ahead do not overlap; the last one is cut where the horizon ends.
    """

    def __init__(self, sizes: Sizes, options: TransformerOptions) -> None:
        super().__init__()
        self.horizon, self.lag = sizes.horizon, reading_lag(sizes, sizes.season)
        self.length = min(options.patch_length, sizes.horizon)
        self.count = -(-sizes.horizon // self.length)
        self.last = [min((place + 1) * self.length, sizes.horizon) for place in range(self.count)]
        self.reader = Reader(sizes, options, self.last)
        self.embedded = nn.Linear(self.length * (2 + sizes.ahead), options.layer.width)
        self.decoder = Decoder(options.layer, options.decoder_layers)
        self.over_time = self.reader.patches.count
        self.out = nn.Linear(options.layer.width, self.length * sizes.width)

    def features(self, inputs: Inputs) -> Tensor:
        """What the head reads: (B, horizon, width)."""
        found = self.out(self._decoded(inputs))
        return cast(Tensor, found.reshape(found.shape[0], self.count * self.length, -1)[:, : self.horizon])

    def attended(self, inputs: Inputs, previous: Tensor) -> list[Attended]:
        """The weights of every layer: the window at itself, the steps at themselves, the steps at the window. All steps of a
        patch look where it looks."""
        kept: list[Tensor] = []
        self._decoded(inputs, kept)
        of = torch.arange(self.horizon, device=inputs.y.device) // self.length
        layers = len(self.reader.encoder.layers)
        kept[layers:] = [one[:, :, of] for one in kept[layers:]]
        steps = torch.arange(1, self.horizon + 1)
        return named(kept, layers, torch.tensor(self.reader.behind), (steps, torch.tensor(self.last)))

    def _decoded(self, inputs: Inputs, kept: list[Tensor] | None = None) -> Tensor:
        memory, added = self.reader(inputs, kept)
        positions = self.reader.positions
        looks = positions.ahead_look(False, self.count), positions.between_look(added, self.count)
        return cast(Tensor, self.decoder(self._tokens(inputs), memory, looks, kept))

    def _tokens(self, inputs: Inputs) -> Tensor:
        """(B, count, D)."""
        before = lagged(torch.stack([inputs.y, inputs.seen], dim=-1), self.lag, self.horizon)
        steps = F.pad(torch.cat([before, inputs.ahead], dim=-1), (0, 0, 0, self.count * self.length - self.horizon))
        tokens = self.embedded(steps.reshape(steps.shape[0], self.count, -1))
        columns = torch.cat([inputs.future[:, self.length - 1 : self.horizon - 1 : self.length], inputs.future[:, -1:]], dim=1)
        return cast(Tensor, self.reader.drop(self.reader.positions.onto(tokens, columns, ahead=True)))


def named(kept: list[Tensor], layers: int, behind: Tensor, ahead: tuple[Tensor, Tensor]) -> list[Attended]:
    """Weights as they were kept, those of the encoder's layers first, then of each of the decoder's both.

    `behind`: the window's rows; `ahead`: the steps as queries and as keys.
    """
    found = [Attended("self", layer, one, behind, behind) for layer, one in enumerate(kept[:layers])]
    for layer, (own, across) in enumerate(zip(kept[layers::2], kept[layers + 1 :: 2], strict=True)):
        found += [Attended("self", layer, own, *ahead), Attended("cross", layer, across, ahead[0], behind)]
    return found
