"""Attention scores by name, each with a function that computes it and a module with its weights.

Shapes: queries (batch, queries, dim), keys (batch, keys, key_dim), scores (batch, queries, keys).
`Score.prepare_keys` computes what depends on the keys alone once per window, for all decoder steps
and sample paths.

The tanh of the additive score has one number per window, query, key and hidden unit: stored for the
gradient, 256 windows of 168 time steps, 24 queries and 64 units would take 260 MB. `additive`
computes it in chunks that fit into the cache, and again in the backward pass (activation
checkpointing).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError, ParameterTypeError, format_value

if TYPE_CHECKING:
    from jaxtyping import Float

SCORES: dict[str, type[Score]] = {}
"""Registered scores by name."""
CHUNK_SIZE = 1 << 18
"""Numbers per chunk (1 MB in float32)."""


def dot(
    queries: Float[Tensor, "batch queries dim"], keys: Float[Tensor, "batch keys dim"]
) -> Float[Tensor, "batch queries keys"]:
    """Compute q . k (Luong et al. 2015, arXiv:1508.04025)."""
    return torch.bmm(queries, keys.transpose(1, 2))


def scaled_dot(
    queries: Float[Tensor, "batch queries dim"], keys: Float[Tensor, "batch keys dim"]
) -> Float[Tensor, "batch queries keys"]:
    """Compute q . k / sqrt(dim), whose variance does not grow with dim (Vaswani et al. 2017,
    arXiv:1706.03762).
    """
    return dot(queries / math.sqrt(queries.shape[-1]), keys)


def general(
    queries: Float[Tensor, "batch queries dim"],
    keys: Float[Tensor, "batch keys key_dim"],
    weight: Float[Tensor, "dim key_dim"],
) -> Float[Tensor, "batch queries keys"]:
    """Compute q . (W k) with W of shape (dim, key_dim), also called multiplicative attention (Luong
    et al. 2015).
    """
    return dot(queries, F.linear(keys, weight))


def location(
    queries: Float[Tensor, "batch queries dim"], weight: Float[Tensor, "keys dim"]
) -> Float[Tensor, "batch queries keys"]:
    """Compute W q with one row of W per time step (Luong et al. 2015); the score does not depend on
    the keys.
    """
    return F.linear(queries, weight)


def cosine(
    queries: Float[Tensor, "batch queries dim"], keys: Float[Tensor, "batch keys dim"]
) -> Float[Tensor, "batch queries keys"]:
    """Compute the cosine similarity q . k / (|q| |k|) (Graves, Wayne, Danihelka 2014,
    arXiv:1410.5401).
    """
    return dot(F.normalize(queries, dim=-1), F.normalize(keys, dim=-1))


def gaussian(
    queries: Float[Tensor, "batch queries dim"], keys: Float[Tensor, "batch keys dim"]
) -> Float[Tensor, "batch queries keys"]:
    """Compute -|q - k|^2 / 2.

    The softmax of it is Nadaraya-Watson kernel regression (1964) with a Gaussian kernel of
    bandwidth 1.
    """
    return _gaussian_scores(queries, _append_half_square(keys))


class Score(nn.Module):
    """Base class of attention scores.

    A subclass implements `forward(queries, keys)` and is registered with `score(name)`. It may
    override `prepare_keys`, which runs once per window.

    Parameters
    ----------
    query_width : int
        Width of the queries.
    key_width : int
        Width of the keys.
    window_length : int
        Time steps per window.

    Attributes
    ----------
    same_width : bool
        Whether queries and keys must have the same width.
    uses_keys : bool
        Whether the scores depend on the keys.
    initial_scale : float
        Initial value of the learned scale of the scores (inverse temperature).

    Examples
    --------
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
    """

    same_width: ClassVar[bool] = True
    uses_keys: ClassVar[bool] = True
    initial_scale: ClassVar[float] = 1.0

    def __init__(self, query_width: int, key_width: int, window_length: int) -> None:
        super().__init__()

    def prepare_keys(
        self, keys: Float[Tensor, "batch keys key_dim"]
    ) -> Float[Tensor, "batch keys dim"]:
        """Prepare keys for `forward`, once per window."""
        return keys

    def forward(
        self,
        queries: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """Return the scores of queries and prepared keys."""
        raise NotImplementedError(f"{type(self).__name__} must implement forward(queries, keys)")


ScoreClass = TypeVar("ScoreClass", bound=type[Score])


def score(name: str) -> Callable[[ScoreClass], ScoreClass]:
    """Register a subclass of `Score` under a name (class decorator).

    Parameters
    ----------
    name : str
        Name for `Seq2Seq(attention=...)`.

    Raises
    ------
    ParameterError
        If another class has the name.
    ParameterTypeError
        If the decorated object is not a subclass of `Score`.

    See Also
    --------
    Score
    """

    def register(score_class: ScoreClass) -> ScoreClass:
        if not (isinstance(score_class, type) and issubclass(score_class, Score)):
            raise ParameterTypeError(
                f"`score` must decorate a subclass of Score, got {format_value(score_class)}.", parameter="score_class",
                value=score_class
            )
        if SCORES.get(name, score_class).__qualname__ != score_class.__qualname__:
            raise ParameterError(
                f"The name of a score must be unique, got {name!r}, the name of {SCORES[name].__qualname__}.",
                hint="Use another name.",
                parameter="name",
            )
        SCORES[name] = score_class
        return score_class

    return register


@score("additive")
class Additive(Score):
    """v . tanh(W_q q + W_k k), which equals v . tanh(W [q; k]) with W = [W_q, W_k].

    References
    ----------
    Bahdanau, Cho, Bengio (2015), "Neural Machine Translation by Jointly Learning to Align and
    Translate", arXiv:1409.0473.
    """

    same_width = False

    def __init__(self, query_width: int, key_width: int, window_length: int) -> None:
        super().__init__(query_width, key_width, window_length)
        self.query = nn.Linear(query_width, query_width)
        self.key = nn.Linear(key_width, query_width, bias=False)
        self.direction = nn.Parameter(torch.empty(query_width))
        self._initialize()

    @torch.no_grad()
    def _initialize(self) -> None:
        """Initialise as an approximate Gaussian kernel of q - k.

        The score starts as the sum of tanh(w(q - k) + c) - tanh(w(q - k) - c) over orthonormal rows
        w, with c where tanh has its largest curvature. With random weights tanh is nearly linear; a
        linear function of q and k does not compare them, and training may need thousands of steps
        before the attention has any effect.
        """
        width = len(self.direction)
        half_width = -(-width // 2)
        directions = nn.init.orthogonal_(torch.empty(half_width, width)).repeat(2, 1)[:width]
        sign = torch.where(torch.arange(width) < half_width, 1.0, -1.0)
        self.query.weight.copy_(directions)
        self.key.weight.copy_(-directions @ torch.eye(width, self.key.in_features))
        # tanh'' has its extremes at c = atanh(1 / sqrt(3)); the factor makes the second derivative -2 w w^T.
        self.query.bias.copy_(math.atanh(3**-0.5) * sign)
        self.direction.copy_(0.75 * 3**0.5 * sign)

    def prepare_keys(
        self, keys: Float[Tensor, "batch keys key_dim"]
    ) -> Float[Tensor, "batch keys dim"]:
        """Compute W_k k."""
        return torch.as_tensor(self.key(keys))

    def forward(
        self,
        queries: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """Compute v . tanh(W_q q + keys), with keys from `prepare_keys`."""
        return additive(self.query(queries), keys, self.direction)


@score("dot")
class Dot(Score):
    """The dot product q . k."""

    def forward(
        self,
        queries: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """See `dot`."""
        return dot(queries, keys)


@score("scaled_dot")
class ScaledDot(Score):
    """The scaled dot product q . k / sqrt(dim)."""

    def forward(
        self,
        queries: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """See `scaled_dot`."""
        return scaled_dot(queries, keys)


@score("general")
class General(Score):
    """The bilinear form q . (W k)."""

    same_width = False

    def __init__(self, query_width: int, key_width: int, window_length: int) -> None:
        super().__init__(query_width, key_width, window_length)
        # Starting from the plain dot product halves the steps needed to find the informative time steps.
        self.weight = nn.Parameter(torch.eye(query_width, key_width))

    def prepare_keys(
        self, keys: Float[Tensor, "batch keys key_dim"]
    ) -> Float[Tensor, "batch keys dim"]:
        """Compute W k."""
        return F.linear(keys, self.weight)

    def forward(
        self,
        queries: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """Compute q . keys, with keys from `prepare_keys`."""
        return dot(queries, keys)


@score("location")
class Location(Score):
    """W q, one row of W per time step of the window."""

    same_width = False
    uses_keys = False

    def __init__(self, query_width: int, key_width: int, window_length: int) -> None:
        super().__init__(query_width, key_width, window_length)
        self.weight = nn.Parameter(
            torch.empty(window_length, query_width).uniform_(-1, 1) / math.sqrt(query_width)
        )

    def prepare_keys(
        self, keys: Float[Tensor, "batch keys key_dim"]
    ) -> Float[Tensor, "batch keys dim"]:
        """Drop the keys, which are not used."""
        return keys[..., :0]

    def forward(
        self,
        queries: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """See `location`."""
        return location(queries, self.weight)


@score("cosine")
class Cosine(Score):
    """The cosine similarity of q and k.

    It is in [-1, 1], so that attention concentrated on few of many time steps requires a learned
    scale.
    """

    initial_scale = 10.0

    def prepare_keys(
        self, keys: Float[Tensor, "batch keys key_dim"]
    ) -> Float[Tensor, "batch keys dim"]:
        """Normalise the keys to length 1."""
        return F.normalize(keys, dim=-1)

    def forward(
        self,
        queries: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """See `cosine`."""
        return dot(F.normalize(queries, dim=-1), keys)


@score("gaussian")
class Gaussian(Score):
    """The negative squared distance -|q - k|^2 / 2."""

    def prepare_keys(
        self, keys: Float[Tensor, "batch keys key_dim"]
    ) -> Float[Tensor, "batch keys dim"]:
        """Append -|k|^2 / 2 to each key, so that one product gives the scores."""
        return _append_half_square(keys)

    def forward(
        self,
        queries: Float[Tensor, "batch queries query_dim"],
        keys: Float[Tensor, "batch keys key_dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """See `gaussian`."""
        return _gaussian_scores(queries, keys)


def _append_half_square(
    keys: Float[Tensor, "batch keys dim"]
) -> Float[Tensor, "batch keys extended_dim"]:
    """Append -|k|^2 / 2 to each key."""
    return torch.cat([keys, -0.5 * keys.square().sum(-1, keepdim=True)], dim=-1)


def _gaussian_scores(
    queries: Float[Tensor, "batch queries dim"], keys: Float[Tensor, "batch keys extended_dim"]
) -> Float[Tensor, "batch queries keys"]:
    """Compute q . k - |k|^2 / 2 - |q|^2 / 2 for keys [k, -|k|^2 / 2], see `_append_half_square`.

    The first two terms are one product with the queries [q, 1].
    """
    extended_queries = F.pad(queries, (0, 1), value=1.0)
    return torch.baddbmm(
        -0.5 * queries.square().sum(-1, keepdim=True), extended_queries, keys.transpose(1, 2)
    )


def additive(
    queries: Float[Tensor, "batch queries dim"],
    keys: Float[Tensor, "batch keys dim"],
    direction: Float[Tensor, "dim"],
) -> Float[Tensor, "batch queries keys"]:
    """Compute v . tanh(q + k) for all pairs of queries and keys (Bahdanau et al. 2015).

    Parameters
    ----------
    queries : Tensor
        Queries after their linear map, W_q q.
    keys : Tensor
        Keys after their linear map, W_k k.
    direction : Tensor
        The vector v.

    Examples
    --------
    >>> additive(torch.zeros(1, 1, 2), torch.tensor([[[0.0, 0.0], [9.0, 9.0]]]), torch.ones(2)).round().tolist()
    [[[0.0, 2.0]]]
    """
    if not torch.is_grad_enabled():
        return _forward(queries, keys, direction)
    # A single query needs little memory, and torch's autograd is twice as fast.
    if queries.shape[1] == 1:
        return torch.matmul(torch.tanh(queries + keys), direction).unsqueeze(1)
    return AdditiveScoreFunction.apply(queries, keys, direction)  # type: ignore[no-any-return, no-untyped-call]


class AdditiveScoreFunction(torch.autograd.Function):
    """The additive score with a gradient written by hand, which recomputes the tanh."""

    @staticmethod
    def forward(
        context: Any,
        queries: Float[Tensor, "batch queries dim"],
        keys: Float[Tensor, "batch keys dim"],
        direction: Float[Tensor, "dim"],
    ) -> Float[Tensor, "batch queries keys"]:
        """Compute the scores chunk by chunk."""
        context.save_for_backward(queries, keys, direction)
        return _forward(queries, keys, direction)

    @staticmethod
    def backward(
        context: Any, *upstream: Float[Tensor, "batch queries keys"]
    ) -> tuple[
        Float[Tensor, "batch queries dim"],
        Float[Tensor, "batch keys dim"],
        Float[Tensor, "dim"],
    ]:
        """Compute the gradients with respect to queries, keys and direction.

        With t = tanh(q + k) and the upstream gradient g: dL/dv = sum of g t; dL/dq and dL/dk are
        the sums of g v (1 - t^2) over keys and queries.
        """
        queries, keys, direction = context.saved_tensors
        gradient = upstream[0]
        query_gradients: list[Tensor] = []
        key_gradients: list[Tensor] = []
        direction_gradient = torch.zeros_like(direction)
        for chunk in _chunks(queries, keys):
            activations = (queries[chunk].unsqueeze(2) + keys[chunk].unsqueeze(1)).tanh_()
            weighted_gradient = gradient[chunk].unsqueeze(-1)
            direction_gradient += torch.mv(
                activations.flatten(0, 2).t(), gradient[chunk].reshape(-1)
            )
            derivative = activations.square_().neg_().add_(1).mul_(weighted_gradient)  # g (1 - t^2)
            query_gradients.append(derivative.sum(2) * direction)
            key_gradients.append(derivative.sum(1) * direction)
        return torch.cat(query_gradients), torch.cat(key_gradients), direction_gradient


def _forward(
    queries: Float[Tensor, "batch queries dim"],
    keys: Float[Tensor, "batch keys dim"],
    direction: Float[Tensor, "dim"],
) -> Float[Tensor, "batch queries keys"]:
    """Compute the scores chunk by chunk, without a graph for gradients."""
    scores = [
        torch.matmul((queries[chunk].unsqueeze(2) + keys[chunk].unsqueeze(1)).tanh_(), direction)
        for chunk in _chunks(queries, keys)
    ]
    return scores[0] if len(scores) == 1 else torch.cat(scores)


def _chunks(queries: Tensor, keys: Tensor) -> list[slice]:
    """Return slices of windows whose tanh has at most about `CHUNK_SIZE` numbers, at least one slice."""
    n_windows, n_queries, width = queries.shape
    chunk_length = max(CHUNK_SIZE // max(n_queries * keys.shape[1] * width, 1), 1)
    chunks = [slice(begin, begin + chunk_length) for begin in range(0, n_windows, chunk_length)]
    return chunks or [slice(0, 0)]
