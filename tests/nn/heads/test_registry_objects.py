"""What heads and losses of a user must fulfil, and that checking them leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from deepforecast import Head
from deepforecast.errors import CapabilityError, ParameterError
from deepforecast.nn.heads.registry import HEADS, check_head, check_loss, equal_outputs


def with_no_gradient(prediction: Tensor, target: Tensor) -> Tensor:
    return torch.tensor(1.0, requires_grad=True) * target.abs().mean()


def with_infinite_gradient(prediction: Tensor, target: Tensor) -> Tensor:
    return (0 * prediction).sqrt() + target


def root_of_sum(prediction: Tensor, target: Tensor) -> Tensor:
    return (prediction - target).square().sum().sqrt()


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (with_no_gradient, "must have a gradient to its first argument, got none. Use differentiable"),
        (with_infinite_gradient, r"must have a finite gradient, got \[nan"),
        (nn.MSELoss(reduction="sum"), "must be the mean over the values, or elementwise, got .* for each of them twice. Use the mean"),
        (lambda p, t: (p - t).sum(), "must be the mean over the values"),  # positive and negative errors
        (root_of_sum, "must be the mean over the values"),
    ],
)
def test_losses_that_cannot_train_are_refused(loss: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        check_loss(loss)


class RandomLoss(nn.Module):
    """A loss with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Mean loss."""
        return self.dropout((prediction - target).abs()).mean()


@pytest.mark.parametrize(
    "loss",
    [
        nn.L1Loss(),
        nn.L1Loss(reduction="none"),
        RandomLoss(),
        lambda p, t: (p - t).square().mean().sqrt(),
        lambda p, t: (p - t).std(),
    ],
)
def test_means_and_elementwise_losses_pass(loss: Any) -> None:
    for context in (torch.enable_grad(), torch.no_grad(), torch.inference_mode()):
        with context:
            check_loss(loss)


def test_checks_draw_no_random_numbers_of_the_caller() -> None:
    head = HEADS["implicit_quantile"]()
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    check_loss(RandomLoss())
    check_head(head)
    assert equal_outputs(RandomLoss(), RandomLoss())
    with pytest.raises(ParameterError):
        check_loss(lambda p, t: torch.rand(3))
    assert torch.equal(torch.rand(4), expected)


class Points(Head):
    """A head of points."""

    out_features = 1
    has_distribution = False

    def loss(self, raw: Tensor, target: Tensor, scaling: object) -> Tensor:
        """Absolute error."""
        return (raw[..., 0] - target).abs()

    def median(self, raw: Tensor) -> Tensor:
        """The point."""
        return raw[..., 0]

    def _mean(self, raw: Tensor) -> Tensor:
        return raw[..., 0]


class Normal(Points):
    """A distribution of any real number."""

    has_distribution = True

    def _quantiles(self, raw: Tensor, p: Tensor, scale: Tensor) -> Tensor:
        return raw[..., :1] + torch.special.ndtri(p)


def test_a_head_of_points_needs_no_quantiles() -> None:
    check_head(Points())
    raw = torch.tensor([[1.0], [2.0]])
    assert Points().quantiles(raw, torch.tensor([0.5])).tolist() == [[1.0], [2.0]]
    with pytest.raises(CapabilityError, match="no predictive distribution"):
        Points().quantiles(raw, torch.tensor([0.5, 0.9]))


def test_a_distribution_needs_quantiles() -> None:
    class Missing(Points):
        has_distribution = True

    with pytest.raises(ParameterError, match="Missing must implement `_quantiles`, or set has_distribution = False"):
        check_head(Missing())


@pytest.mark.parametrize("base", [Normal, Points])
@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"support": "weird"}, "`support` of a head must be one of real, nonnegative, positive, got weird. Set it in"),
        ({"has_distribution": "no"}, "`has_distribution` of a head must be True or False, got no"),
        ({"is_count": 1}, "`is_count` of a head must be True or False, got 1"),
        ({"out_features": 10**9}, "`out_features` of a head must be an integer of at least 1 and at most 100,000, got 1000000000"),
        ({"out_features": True}, "`out_features` of a head must be an integer"),
        ({"support": "positive"}, r"mean\(raw\) of `head` must be positive with support='positive', got -1.0. Set another"),
        ({"support": "nonnegative"}, r"mean\(raw\) of `head` must be at least 0 with support='nonnegative', got -1.0"),
        ({"__init__": lambda self: None}, r"The constructor of Other must call that of Head. Call super\(\).__init__\(\)"),
        ({"loss": lambda self, raw, target, scaling: 1 + 0 * target.requires_grad_()}, "must have a gradient to its first"),
    ],
)
def test_wrong_facts_of_a_head_are_refused(base: type[Head], attributes: dict[str, Any], message: str) -> None:
    head = type("Other", (base,), attributes)()
    with pytest.raises(ParameterError, match=message):
        check_head(head)


def test_quantiles_outside_the_support_are_refused() -> None:
    class Shifted(Normal):
        support = "positive"

        def median(self, raw: Tensor) -> Tensor:
            return raw[..., 0].exp()

        def _mean(self, raw: Tensor) -> Tensor:
            return raw[..., 0].exp()

    with pytest.raises(ParameterError, match=r"quantiles\(raw, p\) of `head` must be positive with support='positive', got -1.67"):
        check_head(Shifted())


@pytest.mark.parametrize("name", HEADS)
def test_every_registered_head_passes(name: str) -> None:
    check_head(HEADS[name]())


@pytest.mark.parametrize("name", HEADS)
def test_settings_construct_an_equal_head(name: str) -> None:
    head = HEADS[name]()
    other = type(head)(**head.settings)
    other.load_state_dict(head.state_dict())
    assert equal_outputs(head, other)
    assert repr(head) == repr(other)


def test_outputs_tell_objects_apart() -> None:
    assert not equal_outputs(nn.HuberLoss(delta=0.5), nn.HuberLoss(delta=0.1))
    assert not equal_outputs(nn.L1Loss(), nn.L1Loss(reduction="none"))
    assert not equal_outputs(HEADS["normal"](), HEADS["laplace"]())
