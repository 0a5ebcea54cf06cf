"""What every head keeps to, whatever its distribution, and how one is named."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from deepforecast.errors import CapabilityError, ParameterError, ParameterTypeError
from deepforecast.nn.heads.base import Head
from deepforecast.nn.heads.registry import HEADS, make_head
from deepforecast.nn.names import LOSS_FACTS
from tests.nn.scales import scale

EXTREME = torch.tensor([1e-12, 1e-6, 0.01, 0.25, 0.5, 0.75, 0.99, 1 - 1e-6, 1 - 1e-12], dtype=torch.float64)
SAYING = [name for name, one in HEADS.items() if one.has_distribution]  # more than a point
MOVED = ["quantiles", "point", "normal", "student_t", "laplace", "mixture", "implicit_quantile"]
WHOLE = [name for name, one in HEADS.items() if one.has_distribution and name != "quantiles"]  # any probability


def made(name: str, seed: int = 0) -> Head:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make_head(name)


def normals(*shape: int, seed: int = 0, size: float = 1.0) -> Tensor:
    return size * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(params=list(HEADS))
def one(request: pytest.FixtureRequest) -> Head:
    return made(request.param)


def test_shapes_and_types(one: Head) -> None:
    raw = normals(5, 3, one.out_features)
    p = torch.full((2,), 0.5)
    assert one.loss(raw, torch.zeros(5, 3), scale(5)).shape == (5, 3)
    assert one.loss(raw, torch.zeros(5, 3), scale(5)).dtype == torch.float32
    assert one.mean(raw).shape == (5, 3)
    assert one.mean(raw).dtype == one.quantiles(raw, p).dtype == torch.float64
    assert one.quantiles(raw, p).shape == (5, 3, 2)
    assert one.median(raw).shape == (5, 3)
    assert one.median(raw).dtype == torch.float32


@pytest.mark.parametrize("name", SAYING)
def test_probabilities_may_have_axes_of_their_own(name: str) -> None:
    one = made(name)
    raw, spread = normals(2, 3, one.out_features), torch.tensor([[7.0], [0.5]])
    draws = torch.rand(4, 2, 3, 1, generator=torch.Generator().manual_seed(1)) * 0.8 + 0.1
    found = one.quantiles(raw, draws, spread)
    assert found.shape == (4, 2, 3, 1)
    for sample in range(4):
        for row in range(2):
            alone = one.quantiles(raw[row], draws[sample, row], spread[row].expand(3))
            assert torch.allclose(found[sample, row], alone, rtol=1e-12)
    steps = one.quantiles(raw, draws[0, 0], spread)  # (H, 1) beside (B, H, width)
    assert torch.allclose(steps[0], found[0, 0], rtol=1e-12)


@pytest.mark.parametrize("name", WHOLE)
@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 5.0]), st.sampled_from([1e-3, 1.0, 1e4]))
def test_quantiles_rise_with_the_probability(name: str, seed: int, size: float, spread: float) -> None:
    one = made(name)
    raw = normals(4, one.out_features, seed=seed, size=size)
    drawn = torch.rand(40, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    p = torch.cat([EXTREME, drawn]).sort().values
    found = one.quantiles(raw, p, torch.full((4,), spread))
    assert found.isfinite().all()
    assert (found.diff(dim=-1) >= 0).all()
    if one.support != "real":
        assert (found >= 0).all()


@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e6])
def test_losses_and_gradients_are_finite(one: Head, spread: float) -> None:
    target = torch.tensor([[0.0, 1e-4, 1.0, 1e4]])
    target = torch.cat([target, -target]) if one.support == "real" else target
    for low in (-60.0, -1.0, 0.0, 60.0):
        raw = torch.full((*target.shape, one.out_features), low, requires_grad=True)
        found = one.loss(raw, target, scale(len(target), spread=spread))
        found.sum().backward()
        assert found.isfinite().all()
        assert raw.grad is not None
        assert raw.grad.isfinite().all()


def test_a_window_without_spread_gives_finite_losses_and_forecasts(one: Head) -> None:
    raw = normals(1, 4, one.out_features).requires_grad_()
    one.loss(raw, torch.zeros(1, 4), scale(1, spread=0.0, naive=0.0)).sum().backward()
    assert raw.grad is not None
    assert raw.grad.isfinite().all()
    assert one.quantiles(raw, torch.tensor([0.5]), torch.zeros(1, 1)).isfinite().all()


@pytest.mark.parametrize("name", SAYING)
def test_the_mean_is_the_average_of_evenly_spaced_quantiles(name: str) -> None:
    one = made(name)
    low, high = one.probability_range
    p = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000
    raw = normals(3, one.out_features, size=0.5)
    found = one.quantiles(raw, p.clamp(low, high), torch.full((3,), 1e3)).mean(-1)
    assert torch.allclose(found, one.mean(raw), rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("name", MOVED)
def test_adding_to_the_location_moves_the_distribution(name: str) -> None:
    one = made(name)
    assert one.location_slice is not None
    raw = normals(3, one.out_features)
    moved = raw.clone()
    moved[:, one.location_slice] += 2
    p = torch.tensor([0.5]) if not one.has_distribution else torch.tensor([0.1, 0.5, 0.8])
    assert torch.allclose(one.quantiles(moved, p), one.quantiles(raw, p) + 2, atol=1e-6)


def test_the_median_is_that_of_the_quantiles_unless_zeros_are_likely(one: Head) -> None:
    raw = normals(6, one.out_features)
    expected = one.mean(raw) if one.support == "nonnegative" else one.quantiles(raw, torch.tensor([0.5])).squeeze(-1)
    assert torch.allclose(one.median(raw).double(), expected, atol=1e-6)


def test_learning_needs_no_values_to_be_known(one: Head) -> None:
    """Loss, gradient and what is fed back run where tensors have shapes but no values, so they compile and export."""
    with FakeTensorMode(allow_non_fake_inputs=False):
        fake = HEADS[one.name](**one.settings).train()
        raw = torch.zeros(4, 3, fake.out_features, requires_grad=True)
        fake.loss(raw, torch.zeros(4, 3), scale(4)).sum().backward()
        assert raw.grad is not None
        assert fake.median(raw).shape == (4, 3)


def test_the_generator_is_touched_by_the_implicit_head_in_training_alone(one: Head) -> None:
    with torch.random.fork_rng():
        before = torch.get_rng_state()
        raw, target = torch.zeros(2, 3, one.out_features), torch.zeros(2, 3)
        one.eval().loss(raw, target, scale(2))
        if one.has_distribution:
            one.quantiles(raw, torch.tensor([0.3]))
        assert torch.equal(before, torch.get_rng_state())
        one.train().loss(raw, target, scale(2))
        assert torch.equal(before, torch.get_rng_state()) == (one.name != "implicit_quantile")


def test_heads_without_places_are_known_as_such() -> None:
    assert [name for name in HEADS if made(name).location_slice is not None] == MOVED


def test_settings_give_a_head_like_it(one: Head) -> None:
    held = json.loads(json.dumps(one.settings))
    again = HEADS[one.name](**held)
    assert repr(again) == repr(one)
    assert again.out_features == one.out_features
    assert again.settings == one.settings


def test_heads_by_name() -> None:
    for name, kind in HEADS.items():
        assert isinstance(make_head(name), kind)
        assert isinstance(one := make_head(name), Head)
        assert make_head(one) is one
    assert make_head("point", loss="mse").settings == {"loss": "mse"}
    assert make_head("quantiles", quantiles=[0.9, 0.1]).settings == {"probabilities": [0.1, 0.5, 0.9]}


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("gauss", {}, ["`head` must be one of quantiles, point", "zero_inflated", "gauss"]),
        ("normal", {"loss": "mse"}, ["`loss` cannot be used with head='normal', got loss=mse", "Use head='point'"]),
        ("point", {"quantiles": [0.1]}, ["`quantiles` cannot be used with head='point'", "Use head='quantiles'"]),
        ("quantiles", {"loss": "mse"}, ["`loss` cannot be used with head='quantiles'"]),
        ("point", {"loss": "rmse"}, ["`loss` must be one of mae, mse", "got rmse"]),
        ("quantiles", {"quantiles": [0.0]}, ["`quantiles` must be between 0 and 1"]),
    ],
)
def test_what_is_refused(name: str, options: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ParameterError) as caught:
        make_head(name, **options)  # type: ignore[arg-type]
    assert all(word in str(caught.value) for word in words), caught.value


def test_what_is_no_head_is_refused_by_its_type() -> None:
    with pytest.raises(ParameterTypeError, match=r"`head` must be one of .* got 3 \(int\)"):
        make_head(3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="cannot be used with head"):
        make_head(HEADS["normal"](), loss="mse")


@pytest.mark.parametrize("loss", list(LOSS_FACTS))
def test_points_have_no_levels(loss: str) -> None:
    one, raw = make_head("point", loss=loss), torch.ones(2, 3, 1)
    assert torch.equal(one.quantiles(raw, torch.tensor([0.5])), torch.ones(2, 3, 1, dtype=torch.float64))
    with pytest.raises(CapabilityError, match="no predictive distribution"):
        one.quantiles(raw, torch.tensor([0.5, 0.9]))
