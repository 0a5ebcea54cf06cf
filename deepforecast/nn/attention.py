"""Attention of a recurrent decoder over the time steps of the window.

Queries (batch, queries, dim) are compared with keys (batch, keys, key_dim) by a score; a masked
softmax turns the scores (batch, queries, keys) into weights, and the context (batch, queries,
value_dim) is the weighted sum of the values (batch, keys, value_dim). Queries are decoder steps or
sample paths, keys are time steps of the window.

References: Bahdanau, Cho, Bengio (2015), arXiv:1409.0473; Luong, Pham, Manning (2015),
arXiv:1508.04025.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from deepforecast.errors import ParameterError, format_value
from deepforecast.nn.scores import SCORES, dot

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


@dataclass(frozen=True)
class AttentionOptions:
    """Options of `Attention`.

    Parameters
    ----------
    score : str, default "general"
        Name of the score, see `SCORES`.
    separate_values : bool, default False
        Whether keys and values are separate linear maps of the encoder outputs.
    learned_scale : bool, default False
        Whether the scores are multiplied by a learned scale (inverse temperature).
    window : int, optional
        Half-width of local attention in time steps; None: attention over the whole window.
    hard_attention : bool, default False
        Whether all weight goes to the best-scoring time step (straight-through gradient).
    """

    score: str = "general"
    separate_values: bool = False
    learned_scale: bool = False
    window: int | None = None
    hard_attention: bool = False


def masked_softmax(
    scores: Float[Tensor, "batch queries keys"],
    valid: Bool[Tensor, "batch #queries keys"] | None = None,
) -> Float[Tensor, "batch queries keys"]:
    """Compute the softmax over the valid keys; masked keys get weight 0.

    If no key is valid, all weights are 0, and so are their gradients.

    Parameters
    ----------
    scores : Tensor
    valid : Tensor, optional
        None: all keys are valid.

    Examples
    --------
    >>> valid = torch.tensor([[[False, True, True]], [[False, False, False]]])
    >>> masked_softmax(torch.zeros(2, 1, 3), valid).flatten().tolist()
    [0.0, 0.5, 0.5, 0.0, 0.0, 0.0]
    """
    if valid is None:
        return scores.softmax(-1)
    # The smallest float instead of -inf: a fully masked row has a finite softmax, which is then set to 0.
    return scores.masked_fill(~valid, torch.finfo(scores.dtype).min).softmax(-1) * valid


def harden_weights(weights: Float[Tensor, "*shape keys"]) -> Float[Tensor, "*shape keys"]:
    """Put all weight on the largest one.

    The gradient is that of the soft weights (straight-through estimator, Bengio et al. 2013,
    arXiv:1308.3432).

    Examples
    --------
    >>> harden_weights(torch.tensor([[0.2, 0.5, 0.3], [0.0, 0.0, 0.0]])).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    index = torch.arange(weights.shape[-1], device=weights.device)
    is_largest = (index == weights.argmax(-1, keepdim=True)) & (weights > 0)
    return is_largest.to(weights.dtype) + (weights - weights.detach())


def local_scores(
    scores: Float[Tensor, "batch queries keys"], centre: Float[Tensor, "batch queries"], window: int
) -> tuple[Float[Tensor, "batch queries keys"], Bool[Tensor, "batch queries keys"]]:
    """Subtract a Gaussian penalty around a centre from the scores (Luong et al. 2015, eq. 10).

    The standard deviation is half the window: scores - (distance / (window / 2))^2 / 2.

    Parameters
    ----------
    scores : Tensor
    centre : Tensor
        Position of the centre in time steps from 0, may be fractional.
    window : int
        Largest distance from the centre, in time steps.

    Returns
    -------
    scores : Tensor
    inside : Tensor
        Whether a key lies within the window.
    """
    distance = torch.arange(scores.shape[-1], device=scores.device) - centre.unsqueeze(-1)
    return scores - 2 * (distance / window) ** 2, distance.abs() <= window


def attend(
    scores: Float[Tensor, "batch queries keys"],
    values: Float[Tensor, "batch keys value_dim"],
    valid: Bool[Tensor, "batch #queries keys"] | None = None,
    hard: bool = False,
) -> tuple[Float[Tensor, "batch queries value_dim"], Float[Tensor, "batch queries keys"]]:
    """Return the context and the attention weights for given scores.

    Parameters
    ----------
    scores : Tensor
    values : Tensor
    valid : Tensor, optional
    hard : bool, default False
        Whether all weight goes to the best-scoring key.

    Returns
    -------
    context : Tensor
    weights : Tensor

    Examples
    --------
    >>> context, weights = attend(torch.tensor([[[0.0, 5.0]]]), torch.tensor([[[1.0], [3.0]]]), hard=True)
    >>> context.tolist(), weights.tolist()
    ([[[3.0]]], [[[0.0, 1.0]]])
    """
    weights = masked_softmax(scores, valid)
    weights = harden_weights(weights) if hard else weights
    return torch.bmm(weights, values), weights


def self_attention(
    encoded: Float[Tensor, "batch time dim"], valid: Bool[Tensor, "batch 1 time"] | None = None
) -> tuple[Float[Tensor, "batch time dim"], Float[Tensor, "batch time time"]]:
    """Compute softmax(x x^T) x, self-attention without parameters.

    Parameters
    ----------
    encoded : Tensor
    valid : Tensor, optional

    Returns
    -------
    context : Tensor
    weights : Tensor

    Examples
    --------
    >>> rows = torch.tensor([[[100.0, 0.0], [0.0, 100.0]]])
    >>> bool((self_attention(rows)[0] == rows).all())  # orthogonal rows attend only to themselves
    True
    """
    return attend(dot(encoded, encoded), encoded, valid)


class Attention(nn.Module):
    """Attention over the encoder outputs of a window with a score from `SCORES`.

    `keys_and_values` runs once per window, `forward` at every decoder step.

    Parameters
    ----------
    options : AttentionOptions
    query_width : int
        Width of the queries (the decoder state).
    width : int
        Width of the encoder outputs.
    window_length : int
        Time steps per window.

    Attributes
    ----------
    log_scale : Parameter or None
        Logarithm of the learned scale of the scores.
    centre : Module or None
        Network that predicts the centre of local attention from the query.
    """

    def __init__(
        self, options: AttentionOptions, query_width: int, width: int, window_length: int
    ) -> None:
        super().__init__()
        if options.score not in SCORES:
            raise ParameterError(
                f"`attention` must be one of {', '.join(map(repr, SCORES))}, got {format_value(options.score)}.",
                hint="Import the module that registers a score of your own first.",
                parameter="attention",
                value=options.score,
            )
        self.options = options
        score_class = SCORES[options.score]
        # Scores such as the dot product need keys as wide as the queries.
        needs_projection = options.separate_values or (score_class.same_width and width != query_width)
        key_width = query_width if needs_projection else width
        self.score = score_class(query_width, key_width, window_length)
        projects_keys = score_class.uses_keys and (options.separate_values or key_width != width)
        self.to_keys: nn.Module = nn.Linear(width, key_width) if projects_keys else nn.Identity()
        self.to_values: nn.Module = (
            nn.Linear(width, width) if options.separate_values else nn.Identity()
        )
        self.log_scale = (
            nn.Parameter(torch.tensor(math.log(score_class.initial_scale)))
            if options.learned_scale
            else None
        )
        self.centre = None
        if options.window is not None:
            self.centre = nn.Sequential(
                nn.Linear(query_width, query_width), nn.Tanh(), nn.Linear(query_width, 1)
            )

    def keys_and_values(
        self, encoded: Float[Tensor, "batch keys dim"]
    ) -> tuple[Float[Tensor, "batch keys key_dim"], Float[Tensor, "batch keys dim"]]:
        """Project encoder outputs to keys and values."""
        return self.score.prepare_keys(self.to_keys(encoded)), self.to_values(encoded)

    def forward(
        self,
        queries: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
        values: Float[Tensor, "batch keys value_dim"],
        valid: Bool[Tensor, "batch 1 keys"],
    ) -> tuple[Float[Tensor, "batch queries value_dim"], Float[Tensor, "batch queries keys"]]:
        """Attend from the decoder steps to the window.

        Parameters
        ----------
        queries : Tensor
        keys : Tensor
        values : Tensor
        valid : Tensor

        Returns
        -------
        context : Tensor
        weights : Tensor
        """
        scores = cast(Tensor, self.score(queries, keys))
        if scores.shape != (*queries.shape[:2], values.shape[1]):
            raise ParameterError(
                f"`forward` of a score must return shape (batch, queries, keys), here "
                f"{(*queries.shape[:2], values.shape[1])}; that of {type(self.score).__name__} "
                f"(attention={self.options.score!r}) returned {tuple(scores.shape)}.",
                hint="Use another score, or fix it.",
            )
        if self.log_scale is not None:
            scores = scores * self.log_scale.exp()
        if self.centre is not None:
            scores, inside = local_scores(
                scores, self._centres(queries, valid), cast(int, self.options.window)
            )
            valid = valid & inside
        return attend(scores, values, valid, self.options.hard_attention)

    def _centres(
        self, queries: Float[Tensor, "batch queries query_dim"], valid: Bool[Tensor, "batch 1 keys"]
    ) -> Float[Tensor, "batch queries"]:
        """Predict the centre of local attention (Luong et al. 2015, eq. 9).

        It is a fractional index of a time step, between the first valid one and the end of the
        window; all steps from the first valid one on are valid.
        """
        fraction = cast(nn.Module, self.centre)(queries).squeeze(-1).sigmoid()
        offset: Tensor = fraction * (valid.sum(-1) - 1).clamp(min=0)
        return valid.shape[-1] - 1 - offset


def valid_steps(observed: Float[Tensor, "batch time"]) -> Bool[Tensor, "batch 1 time"]:
    """Return a mask that is False for the padding before the first observed value.

    `observed` is 1 or 0. Later missing values are valid.
    """
    return observed.cummax(1).values.unsqueeze(1) > 0
