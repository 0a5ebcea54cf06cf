"""Names of heads, losses, scalers and scores, and what must be known of them without torch.

The tables have one row per name: a head is its file and its row, a loss its function and its row. The
`Literal` types, the choices of the parameters of networks, follow from the tables, but for type checkers;
the torch code reads the same tables.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

Scaler = Literal["standard", "robust", "min_max", "mean_abs", "last", "level", "revin", "difference", "none"]
Support = Literal["real", "nonnegative", "positive"]
Score = Literal["additive", "dot", "scaled_dot", "general", "location", "cosine", "gaussian"]


class HeadFacts(NamedTuple):
    """What is known of a head.

    implementation: module and class in `deepforecast.nn`. support: values of the distribution. is_count: whether they are
    integers. has_distribution: whether there is one, or points only. is_location: whether the point forecast is loc + scale z.
    """

    implementation: str
    support: Support = "real"
    is_count: bool = False
    has_distribution: bool = True
    is_location: bool = False


HEAD_FACTS: dict[str, HeadFacts] = {
    "quantiles": HeadFacts("heads.quantiles.QuantileHead", is_location=True),
    "point": HeadFacts("heads.point.PointHead", has_distribution=False, is_location=True),
    "normal": HeadFacts("heads.distributions.NormalHead", is_location=True),
    "student_t": HeadFacts("heads.distributions.StudentTHead", is_location=True),
    "laplace": HeadFacts("heads.distributions.LaplaceHead", is_location=True),
    "lognormal": HeadFacts("heads.distributions.LogNormalHead", "positive"),
    "negative_binomial": HeadFacts("heads.counts.NegativeBinomialHead", "nonnegative", is_count=True),
    "poisson": HeadFacts("heads.counts.PoissonHead", "nonnegative", is_count=True),
    "zero_inflated": HeadFacts("heads.counts.ZeroInflatedNegativeBinomialHead", "nonnegative", is_count=True),
    "tweedie": HeadFacts("heads.counts.TweedieHead", "nonnegative"),
    "mixture": HeadFacts("heads.distributions.MixtureHead"),
    "implicit_quantile": HeadFacts("heads.quantiles.ImplicitQuantileHead"),
    "bins": HeadFacts("heads.bins.BinnedHead"),
}


class Head:
    """Base class of `nn.heads.base.Head`, by which a head passed as an object is recognized without torch."""

    support: ClassVar[Support] = "real"
    is_count: ClassVar[bool] = False
    has_distribution: ClassVar[bool] = True

    @property
    def probability_range(self) -> tuple[float, float]:
        """Smallest and largest probability that has a quantile."""
        return (0.0, 1.0)

    @property
    def facts(self) -> HeadFacts:
        """The facts that the head states."""
        return HeadFacts("", self.support, self.is_count, self.has_distribution)


def head_facts(head: str | Head) -> HeadFacts:
    """The facts of a head, given by name or as an object."""
    return HEAD_FACTS[head] if isinstance(head, str) else head.facts


class LossFacts(NamedTuple):
    """What is known of a loss of point forecasts.

    implementation: module and function in `deepforecast.nn`. needs_naive_error: whether it is relative to the error of a
    naive forecast. uses_level: whether it depends on the level of the series, not only on z.
    """

    implementation: str
    needs_naive_error: bool = False
    uses_level: bool = False


LOSS_FACTS: dict[str, LossFacts] = {
    "mae": LossFacts("heads.point.absolute"),
    "mse": LossFacts("heads.point.squared"),
    "huber": LossFacts("heads.point.huber"),
    "mase": LossFacts("heads.point.mase", needs_naive_error=True),
    "smape": LossFacts("heads.point.smape", uses_level=True),
    "owa": LossFacts("heads.point.owa", needs_naive_error=True, uses_level=True),
}

LOCATION_HEADS = tuple(name for name, facts in HEAD_FACTS.items() if facts.is_location)

if TYPE_CHECKING:  # type checkers do not evaluate the tables; a test compares them with these names
    HeadName = Literal[
        "quantiles", "point", "normal", "student_t", "laplace", "lognormal", "negative_binomial", "poisson", "zero_inflated",
        "tweedie", "mixture", "implicit_quantile", "bins",
    ]
    LocationHeadName = Literal["quantiles", "point", "normal", "student_t", "laplace"]
    LossName = Literal["mae", "mse", "huber", "mase", "smape", "owa"]
else:
    HeadName = Literal[tuple(HEAD_FACTS)]
    LocationHeadName = Literal[LOCATION_HEADS]
    LossName = Literal[tuple(LOSS_FACTS)]


def implementation(path: str) -> Any:
    """The class or function of a row; imports its module in `deepforecast.nn`, and with it torch."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"deepforecast.nn.{module}"), name)


class ScalerFacts(NamedTuple):
    """What is known of a scaler.

    of_window: whether it is only for single windows (fitted on a whole series, it would leak the last value).
    follows_shift: whether adding a constant to the series adds it to the forecast. keeps_sum: whether
    components add up after scaling back.
    """

    of_window: bool = False
    follows_shift: bool = False
    keeps_sum: bool = True


SCALER_FACTS: dict[str, ScalerFacts] = {
    "standard": ScalerFacts(follows_shift=True),
    "robust": ScalerFacts(follows_shift=True),
    "min_max": ScalerFacts(follows_shift=True),
    "mean_abs": ScalerFacts(),
    "last": ScalerFacts(of_window=True, follows_shift=True),
    "level": ScalerFacts(of_window=True),
    "revin": ScalerFacts(of_window=True, follows_shift=True, keeps_sum=False),
    "difference": ScalerFacts(of_window=True, follows_shift=True, keeps_sum=False),
    "none": ScalerFacts(),
}
