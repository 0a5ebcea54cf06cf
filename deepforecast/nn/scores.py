"""How a query is compared with keys: each score a function, a module for its weights where it has any, and the list of all.

Shapes: queries (B, N, D), keys (B, L, K), scores (B, N, L). What depends on the keys alone is computed once a window, in
`Score.prepare_keys`, however many steps and paths ask.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.errors import ParameterError, ParameterTypeError, format_value
from deepforecast.nn.additive_score import additive

__all__ = ["SCORES", "Score", "additive", "cosine", "dot", "gaussian", "general", "location", "scaled_dot", "score"]


def dot(queries: Tensor, keys: Tensor) -> Tensor:
    """q . k: (B, N, D), (B, L, D) -> (B, N, L). Luong et al. 2015."""
    return torch.bmm(queries, keys.transpose(1, 2))


def scaled_dot(queries: Tensor, keys: Tensor) -> Tensor:
    """q . k / sqrt(D), whose deviation does not grow with D. Vaswani et al. 2017."""
    return dot(queries / math.sqrt(queries.shape[-1]), keys)


def general(queries: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    """q . (W k) with W (D, K), also called multiplicative: (B, N, D), (B, L, K) -> (B, N, L). Luong et al. 2015."""
    return dot(queries, functional.linear(keys, weight))


def location(queries: Tensor, weight: Tensor) -> Tensor:
    """W q with a row of W (L, D) for each row of the window: where to look, whatever stands there. Luong et al. 2015."""
    return functional.linear(queries, weight)


def cosine(queries: Tensor, keys: Tensor) -> Tensor:
    """The cosine of the angle between q and k: their content, not their size. Graves, Wayne, Danihelka 2014."""
    return dot(functional.normalize(queries, dim=-1), functional.normalize(keys, dim=-1))


def gaussian(queries: Tensor, keys: Tensor) -> Tensor:
    """-|q - k|^2 / 2: the softmax of it is kernel regression (Nadaraya, Watson 1964) with a bell of deviation 1."""
    return _gaussian_scores(queries, _append_half_square(keys))


class Score(nn.Module):
    """A score with its weights. To add one is to say how it compares:

    >>> @score("nearest")
    ... class Nearest(Score):
    ...     def forward(self, queries, keys):
    ...         return -torch.cdist(queries, keys, p=1)
    >>> Nearest(2, 2, 3)(torch.zeros(1, 1, 2), torch.ones(1, 3, 2)).tolist()
    [[[-2.0, -2.0, -2.0]]]
    >>> from deepforecast import Seq2Seq
    >>> Seq2Seq(horizon=7, attention="nearest")
    Seq2Seq(horizon=7, attention='nearest')
    >>> del SCORES["nearest"]

    `same_width`: queries and keys have to be of one width; `uses_keys`: the keys matter at all; `initial_scale`: by what a learned
    temperature begins to multiply. `prepare_keys` makes keys ready once a window, where something can be.
    """

    same_width: ClassVar[bool] = True
    uses_keys: ClassVar[bool] = True
    initial_scale: ClassVar[float] = 1.0

    def __init__(self, query_width: int, key_width: int, window_length: int) -> None:
        """Widths D and K, and the rows of a window, L."""
        super().__init__()

    def prepare_keys(self, keys: Tensor) -> Tensor:
        """Keys (B, L, K) as `forward` takes them."""
        return keys

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Scores (B, N, L) of queries (B, N, D) and keys made ready."""
        raise NotImplementedError(f"{type(self).__name__} says in forward(queries, keys) how it compares them")


SCORES: dict[str, type[Score]] = {}
"""The scores there are, by name."""

ScoreClass = TypeVar("ScoreClass", bound=type[Score])


def score(name: str) -> Callable[[ScoreClass], ScoreClass]:
    """Class decorator: the score goes by this name, to `Seq2Seq(attention=...)` too. See `Score`."""

    def registered(score_class: ScoreClass) -> ScoreClass:
        if not (isinstance(score_class, type) and issubclass(score_class, Score)):
            raise ParameterTypeError(f"score takes a class derived from Score; got {format_value(score_class)}.")
        if SCORES.get(name, score_class).__qualname__ != score_class.__qualname__:
            raise ParameterError(f"A score's name is unique, and {name!r} is taken. Choose another.")
        SCORES[name] = score_class
        return score_class

    return registered


@score("additive")
class Additive(Score):
    """v . tanh(W_q q + W_k k), the same as v . tanh(W [q; k]) with W = [W_q, W_k]. Bahdanau, Cho, Bengio 2015."""

    same_width = False

    def __init__(self, query_width: int, key_width: int, window_length: int) -> None:
        super().__init__(query_width, key_width, window_length)
        self.query, self.key = nn.Linear(query_width, query_width), nn.Linear(key_width, query_width, bias=False)
        self.direction = nn.Parameter(torch.empty(query_width))
        self._initialize()

    @torch.no_grad()
    def _initialize(self) -> None:
        """It begins as a bell: the sum of tanh(w(q - k) + c) - tanh(w(q - k) - c) over orthonormal rows w, c where tanh bends
        the most, which near 0 is the Gaussian kernel. With weights drawn at random tanh is all but straight, a straight sum of
        what q and k say does not compare them, and a network may go thousands of steps before it begins to look."""
        width = len(self.direction)
        directions = nn.init.orthogonal_(torch.empty(-(-width // 2), width)).repeat(2, 1)[:width]
        sign = torch.where(torch.arange(width) < -(-width // 2), 1.0, -1.0)
        self.query.weight.copy_(directions)
        self.key.weight.copy_(-directions @ torch.eye(width, self.key.in_features))
        self.query.bias.copy_(math.atanh(3**-0.5) * sign)
        self.direction.copy_(0.75 * 3**0.5 * sign)

    def prepare_keys(self, keys: Tensor) -> Tensor:
        """W_k k."""
        return torch.as_tensor(self.key(keys))

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """v . tanh(W_q q + keys)."""
        return additive(self.query(queries), keys, self.direction)


@score("dot")
class Dot(Score):
    """q . k."""

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See `dot`."""
        return dot(queries, keys)


@score("scaled_dot")
class ScaledDot(Score):
    """q . k / sqrt(D)."""

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See `scaled_dot`."""
        return scaled_dot(queries, keys)


@score("general")
class General(Score):
    """q . (W k)."""

    same_width = False

    def __init__(self, query_width: int, key_width: int, window_length: int) -> None:
        super().__init__(query_width, key_width, window_length)
        # It begins as the plain product: from there the rows that tell something are found in half the steps.
        self.weight = nn.Parameter(torch.eye(query_width, key_width))

    def prepare_keys(self, keys: Tensor) -> Tensor:
        """W k."""
        return functional.linear(keys, self.weight)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """q . keys."""
        return dot(queries, keys)


@score("location")
class Location(Score):
    """W q, a row of W for each row of the window."""

    same_width = False
    uses_keys = False

    def __init__(self, query_width: int, key_width: int, window_length: int) -> None:
        super().__init__(query_width, key_width, window_length)
        self.weight = nn.Parameter(torch.empty(window_length, query_width).uniform_(-1, 1) / math.sqrt(query_width))

    def prepare_keys(self, keys: Tensor) -> Tensor:
        """None are needed."""
        return keys[..., :0]

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See `location`."""
        return location(queries, self.weight)


@score("cosine")
class Cosine(Score):
    """q . k / |q| |k|. It lies between -1 and 1: to look at few of many rows it needs a temperature."""

    initial_scale = 10.0

    def prepare_keys(self, keys: Tensor) -> Tensor:
        """Brought to length 1."""
        return functional.normalize(keys, dim=-1)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See `cosine`."""
        return dot(functional.normalize(queries, dim=-1), keys)


@score("gaussian")
class Gaussian(Score):
    """-|q - k|^2 / 2."""

    def prepare_keys(self, keys: Tensor) -> Tensor:
        """Beside each key half its square, so that a product with the query is all there is to do."""
        return _append_half_square(keys)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See `gaussian`."""
        return _gaussian_scores(queries, keys)


def _append_half_square(keys: Tensor) -> Tensor:
    return torch.cat([keys, -0.5 * keys.square().sum(-1, keepdim=True)], dim=-1)


def _gaussian_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """q . k - |k|^2 / 2 - |q|^2 / 2, the first two terms in one product."""
    extended_queries = functional.pad(queries, (0, 1), value=1.0)
    return torch.baddbmm(-0.5 * queries.square().sum(-1, keepdim=True), extended_queries, keys.transpose(1, 2))
