"""Names of heads, losses, scalers and scores, and what must be known of them without torch.

The `Literal` types are the choices of the parameters of networks, the tables their facts; the torch code reads
the same tables.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

HeadName = Literal[
    "quantiles",
    "point",
    "normal",
    "student_t",
    "laplace",
    "lognormal",
    "negative_binomial",
    "poisson",
    "zero_inflated",
    "tweedie",
    "mixture",
    "implicit_quantile",
    "bins",
]
LocationHeadName = Literal["point", "quantiles", "normal", "student_t", "laplace"]  # whose point forecast is loc + scale z
Loss = Literal["mae", "mse", "huber", "mase", "smape", "owa"]
Scaler = Literal["standard", "robust", "min_max", "mean_abs", "last", "level", "revin", "difference", "none"]
Support = Literal["real", "nonnegative", "positive"]
Score = Literal["additive", "dot", "scaled_dot", "general", "location", "cosine", "gaussian"]

LOCATION_HEADS: tuple[str, ...] = get_args(LocationHeadName)
LEVEL_LOSSES = ("smape", "owa")  # depend on the level of the series


class HeadFacts(NamedTuple):
    """What is known of a head.

    support: values of the distribution. is_count: whether they are integers. has_distribution: whether there is one, or
    points only.
    """

    support: Support = "real"
    is_count: bool = False
    has_distribution: bool = True


HEAD_FACTS: dict[str, HeadFacts] = {
    "quantiles": HeadFacts(),
    "point": HeadFacts(has_distribution=False),
    "normal": HeadFacts(),
    "student_t": HeadFacts(),
    "laplace": HeadFacts(),
    "lognormal": HeadFacts("positive"),
    "negative_binomial": HeadFacts("nonnegative", is_count=True),
    "poisson": HeadFacts("nonnegative", is_count=True),
    "zero_inflated": HeadFacts("nonnegative", is_count=True),
    "tweedie": HeadFacts("nonnegative"),
    "mixture": HeadFacts(),
    "implicit_quantile": HeadFacts(),
    "bins": HeadFacts(),
}


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
