"""Attention: every step looks at the rows of the window and takes from each as much as its score says.

Queries (B, N, D) are compared with keys (B, L, K) by a score (B, N, L); a masked softmax makes weights of it, and the context
(B, N, V) is the sum of the values (B, L, V) so weighted. B windows, N of whoever asks of a window (steps, or paths), L rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from deepforecast.errors import ParameterError, format_value
from deepforecast.nn.scores import SCORES, dot


@dataclass(frozen=True)
class AttentionOptions:
    """How to look back.

    `separate_values`: keys and values are each a linear map of what was encoded. `learned_scale`: scores are multiplied by a learned
    number. `window`: only so many rows on either side of one that the query chooses are looked at. `hard_attention`: at one row alone.
    """

    score: str = "general"
    separate_values: bool = False
    learned_scale: bool = False
    window: int | None = None
    hard_attention: bool = False


def masked_softmax(scores: Tensor, valid: Tensor | None = None) -> Tensor:
    """Weights (B, N, L) of scores (B, N, L) over the rows that are `valid`, (B, 1, L) or (B, N, L); exactly 0 elsewhere.

    Where no row is valid all weights are 0, and so are their gradients.

    >>> valid = torch.tensor([[[False, True, True]], [[False, False, False]]])
    >>> masked_softmax(torch.zeros(2, 1, 3), valid).flatten().tolist()
    [0.0, 0.5, 0.5, 0.0, 0.0, 0.0]
    """
    if valid is None:
        return scores.softmax(-1)
    # The least number instead of minus infinity: a row of nothing else has a softmax, which is then set to 0.
    return scores.masked_fill(~valid, torch.finfo(scores.dtype).min).softmax(-1) * valid


def harden_weights(weights: Tensor) -> Tensor:
    """All weight on the largest, (..., L) -> (..., L); the gradient is that of the soft weights (straight-through).

    >>> harden_weights(torch.tensor([[0.2, 0.5, 0.3], [0.0, 0.0, 0.0]])).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    index = torch.arange(weights.shape[-1], device=weights.device)
    is_largest = (index == weights.argmax(-1, keepdim=True)) & (weights > 0)
    return is_largest.to(weights.dtype) + (weights - weights.detach())


def local_scores(scores: Tensor, centre: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """Scores (B, N, L) that fall off like a bell around a row, and which rows are inside the window, (B, N, L).

    `centre` (B, N): a row, counted from 0, between two of them as a fraction. The bell's deviation is half the window.
    """
    distance = torch.arange(scores.shape[-1], device=scores.device) - centre.unsqueeze(-1)
    return scores - 2 * (distance / window) ** 2, distance.abs() <= window


def attend(scores: Tensor, values: Tensor, valid: Tensor | None = None, hard: bool = False) -> tuple[Tensor, Tensor]:
    """The context (B, N, V) of values (B, L, V), and the weights (B, N, L) it is made with.

    >>> context, weights = attend(torch.tensor([[[0.0, 5.0]]]), torch.tensor([[[1.0], [3.0]]]), hard=True)
    >>> context.tolist(), weights.tolist()
    ([[[3.0]]], [[[0.0, 1.0]]])
    """
    weights = masked_softmax(scores, valid)
    weights = harden_weights(weights) if hard else weights
    return torch.bmm(weights, values), weights


def self_attention(encoded: Tensor, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Rows (B, L, D) that look at each other, softmax(x xT) x, without a weight to learn; and how they looked, (B, L, L).

    >>> rows = torch.tensor([[[100.0, 0.0], [0.0, 100.0]]])
    >>> bool((self_attention(rows)[0] == rows).all())  # of what is unlike everything else nothing changes
    True
    """
    return attend(dot(encoded, encoded), encoded, valid)


class Attention(nn.Module):
    """A score with its weights, and what stands around it. `keys_and_values` is made once a window, `forward` runs for every step."""

    def __init__(self, options: AttentionOptions, query_width: int, width: int, window_length: int) -> None:
        super().__init__()
        if options.score not in SCORES:
            raise ParameterError(f"attention is one of {', '.join(map(repr, SCORES))}; got {format_value(options.score)}.")
        self.options = options
        score_class = SCORES[options.score]
        # Two widths that are compared number by number have to be one.
        key_width = query_width if options.separate_values or (score_class.same_width and width != query_width) else width
        self.score = score_class(query_width, key_width, window_length)
        projects_keys = score_class.uses_keys and (options.separate_values or key_width != width)
        self.to_keys: nn.Module = nn.Linear(width, key_width) if projects_keys else nn.Identity()
        self.to_values: nn.Module = nn.Linear(width, width) if options.separate_values else nn.Identity()
        self.log_scale = nn.Parameter(torch.tensor(math.log(score_class.initial_scale))) if options.learned_scale else None
        self.centre = None
        if options.window is not None:
            self.centre = nn.Sequential(nn.Linear(query_width, query_width), nn.Tanh(), nn.Linear(query_width, 1))

    def keys_and_values(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Keys (B, L, K) and values (B, L, width) of what was encoded, (B, L, width): all of the window's own arithmetic."""
        return self.score.prepare_keys(self.to_keys(encoded)), self.to_values(encoded)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """Context (B, N, width) and weights (B, N, L) of queries (B, N, D); `valid` (B, 1, L)."""
        scores = cast(Tensor, self.score(queries, keys))
        if scores.shape != (*queries.shape[:2], values.shape[1]):
            raise ParameterError(
                f"A score says a number for each query and each row, here {(*queries.shape[:2], values.shape[1])}; "
                f"{type(self.score).__name__} (attention={self.options.score!r}) says {tuple(scores.shape)}. Mend its forward."
            )
        if self.log_scale is not None:
            scores = scores * self.log_scale.exp()
        if self.centre is not None:
            scores, inside = local_scores(scores, self._centres(queries, valid), cast(int, self.options.window))
            valid = valid & inside
        return attend(scores, values, valid, self.options.hard_attention)

    def _centres(self, queries: Tensor, valid: Tensor) -> Tensor:
        """The row each query chooses among those that are valid, which are the last ones: (B, N)."""
        fraction = cast(nn.Module, self.centre)(queries).squeeze(-1).sigmoid()
        offset: Tensor = fraction * (valid.sum(-1) - 1).clamp(min=0)
        return valid.shape[-1] - 1 - offset


def valid_steps(observed: Tensor) -> Tensor:
    """Which rows of windows (B, L) there are at all, (B, 1, L): from the first value seen on, whatever is missing after it."""
    return observed.cummax(1).values.unsqueeze(1) > 0
