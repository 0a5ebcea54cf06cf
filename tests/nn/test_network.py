"""ForecastNetwork: what reaches its body, what it is taught, and that a hidden value and a later one do neither."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from deepforecast.nn.batch import Batch, Inputs, InputSizes
from deepforecast.nn.decoding import decode_samples
from deepforecast.nn.heads.base import Head
from deepforecast.nn.heads.registry import make_head
from deepforecast.nn.network import AutoregressiveBody, DirectBody, ForecastNetwork, State, decode_greedy, decode_teacher_forced

L, H = 6, 3


class Seen(DirectBody):
    """Gives the last value to every step, and keeps what it was given."""

    def __init__(self, width: int = 1) -> None:
        super().__init__()
        self.weight, self.width = nn.Parameter(torch.ones(())), width
        self.given: Inputs | None = None

    def features(self, inputs: Inputs) -> Tensor:
        self.given = inputs
        return (self.weight * inputs.y[:, -1:, None]).expand(-1, H, self.width)


class Counting(AutoregressiveBody):
    """The value before plus one, at each step; the state counts the steps."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def initial_state(self, inputs: Inputs) -> State:
        return (inputs.y.new_zeros(len(inputs.y)),)

    def step(self, state: State, previous: Tensor, ahead: Tensor, number: int) -> tuple[Tensor, State]:
        (count,) = state
        return (self.weight * (previous + 1)).unsqueeze(-1), (count + 1,)


def batch(windows: int = 4, seed: int = 0, **changed: Tensor) -> Batch:
    draw = torch.Generator().manual_seed(seed)
    codes = torch.randint(1, 3, (windows, L + H, 1), generator=draw)
    made = Batch(
        50 + torch.randn(windows, L, generator=draw, dtype=torch.float64),
        torch.randn(windows, L, 2, generator=draw), torch.randn(windows, H, 1, generator=draw), torch.zeros(windows, 0),
        codes[:, :L], codes[:, L:], torch.zeros(windows, 0, dtype=torch.int64), torch.zeros(windows, 1).double(),
        torch.ones(windows, 1).double(), 50 + torch.randn(windows, H, generator=draw, dtype=torch.float64),
    )  # fmt: skip
    return replace(made, **changed)


def network(body: DirectBody | AutoregressiveBody, *, scaler: str = "standard", ends_in: Head | None = None) -> ForecastNetwork:
    last = make_head("point") if ends_in is None else ends_in
    sizes = InputSizes(L, H, last.out_features, past=5, future=4, location_slice=last.location_slice)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return ForecastNetwork(sizes, body, last, scaler=scaler, temporal=[2], n_future_codes=1)


def test_a_hidden_value_never_reaches_the_body() -> None:
    body, whole = Seen(), batch()
    net = network(body)
    given = []
    for hidden in (whole.y[0, 2], torch.tensor(1e9).double()):  # whatever is hidden behind NaN
        y = whole.y.clone()
        y[0, 2] = hidden
        y[0, 2] = torch.nan
        net(replace(whole, y=y))
        assert body.given is not None
        given.append(body.given)
    assert (given[0].y[0, 2], given[0].observed[0, 2]) == (0, 0)
    assert torch.equal(given[0].y, given[1].y)


def test_the_target_never_reaches_the_body() -> None:
    body, whole = Seen(), batch()
    net = network(body)
    net.loss(whole)
    assert body.given is not None
    before = body.given
    net.loss(replace(whole, target=whole.target * 3 if whole.target is not None else None))
    for name in ("y", "observed", "past", "future", "static"):
        assert torch.equal(getattr(before, name), getattr(body.given, name))


def test_a_missing_target_has_no_part_in_the_loss() -> None:
    net, whole = network(Seen()), batch()
    assert whole.target is not None
    holes = whole.target.clone()
    holes[:, 1] = torch.nan
    kept = replace(whole, target=holes)
    raw, scale = net(whole)
    z = scale.standardize(whole.target).float()
    wanted = (raw.squeeze(-1) - z).abs()[:, [0, 2]].mean()
    torch.testing.assert_close(net.loss(kept), wanted)
    none = net.loss(replace(whole, target=torch.full_like(holes, torch.nan)))
    none.backward()
    assert none == 0


def test_the_loss_is_the_mean_weighted_by_the_observation_weights() -> None:
    net, unweighted = network(Seen()), batch()
    assert unweighted.target is not None
    weight = torch.tensor([[0.1, 0.0, 1.0], [1.0, 1.0, 0.5], [0.0, 0.0, 0.0], [0.2, 0.0, 0.0]])
    target = unweighted.target.clone()
    target[1, 1] = torch.nan
    weighted = replace(unweighted, target=target, weight=weight)
    raw, scale = net(weighted)
    losses = (raw.squeeze(-1) - scale.standardize(torch.nan_to_num(target)).float()).abs()
    observed = weight * (target == target)
    torch.testing.assert_close(net.loss(weighted), (losses * observed).sum() / observed.sum())
    torch.testing.assert_close(net.loss(replace(weighted, weight=2e-6 * weight)), net.loss(weighted))
    assert torch.equal(net.loss(replace(unweighted, weight=torch.ones(4, H))), net.loss(unweighted))
    missing = target.masked_fill(weight == 0, torch.nan)
    torch.testing.assert_close(
        net.loss(replace(weighted, weight=(weight > 0).float())), net.loss(replace(unweighted, target=missing))
    )
    none = net.loss(replace(weighted, weight=torch.zeros(4, H)))
    none.backward()
    assert none == 0
    assert torch.equal(net.body.weight.grad, torch.zeros(()))


@pytest.mark.parametrize("ratio", [1.0, 0.0])
def test_weights_of_an_autoregressive_body_are_those_of_the_steps(ratio: float) -> None:
    net, unweighted = network(Counting()), batch()
    assert unweighted.target is not None
    last = torch.tensor([1.0, 1.0, 0.0]).expand(4, H)
    missing = unweighted.target.masked_fill(last == 0, torch.nan)
    expected = net.loss(replace(unweighted, target=missing), ratio)
    torch.testing.assert_close(net.loss(replace(unweighted, weight=last), ratio), expected)
    # A value of weight 0 is the true value before the next step nevertheless.
    middle = torch.tensor([0.0, 0.0, 1.0]).expand(4, H)
    _, scale = net.inputs(unweighted)
    z = scale.standardize(unweighted.target).float()
    if ratio == 1.0:
        torch.testing.assert_close(net.loss(replace(unweighted, weight=middle), ratio), (z[:, 2] - z[:, 1] - 1).abs().mean())


def test_categories_known_ahead_and_of_the_past_are_one_table() -> None:
    body = Seen()
    whole = batch(future_codes=torch.tensor([[[1], [2], [1]]] * 4))
    network(body)(whole)
    assert body.given is not None
    assert body.given.past.shape == (4, L, 5)
    assert body.given.future.shape == (4, H, 4)
    same = whole.past_codes[0, 0, 0] == whole.future_codes[0, :, 0]
    place = int(same.nonzero()[0])
    assert torch.equal(body.given.past[0, 0, 2:], body.given.future[0, place, 1:])


@pytest.mark.parametrize("scaler", ["revin", "difference", "last", "standard"])
def test_what_the_body_says_of_a_place_comes_back_to_it(scaler: str) -> None:
    net, whole = network(Seen(), scaler=scaler), batch()
    if net.affine is not None:
        with torch.no_grad():
            net.affine.copy_(torch.tensor([2.0, 0.5]))
    raw, scale = net(whole)
    found = scale.unstandardize(raw.squeeze(-1))
    if scaler == "difference":  # the last change again at each step
        wanted = whole.y[:, -1:] + (whole.y[:, -1:] - whole.y[:, -2:-1]) * torch.arange(1, H + 1)
    else:
        wanted = whole.y[:, -1:].expand(-1, H)
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)


def test_the_affine_of_revin_is_learned() -> None:
    net = network(Seen(), scaler="revin")
    net.loss(batch()).backward()
    assert net.affine is not None
    assert net.affine.grad is not None


def test_a_stepwise_body_is_fed_its_own_values_in_forecasts_and_the_true_ones_when_taught() -> None:
    net, whole = network(Counting()), batch()
    inputs, scale = net.inputs(whole)
    own = decode_greedy(net, inputs).squeeze(-1)
    torch.testing.assert_close(own, inputs.y[:, -1:] + torch.arange(1, H + 1))
    assert whole.target is not None
    z = scale.standardize(whole.target).float()
    told = torch.ones_like(z)
    before = torch.cat([inputs.y[:, -1:], z[:, :-1]], dim=1)
    torch.testing.assert_close(decode_teacher_forced(net, inputs, z, told, 1.0).squeeze(-1), before + 1)
    torch.testing.assert_close(decode_teacher_forced(net, inputs, z, told, 0.0).squeeze(-1), own)
    told[:, 0] = 0  # missing: the last observed value is used
    torch.testing.assert_close(decode_teacher_forced(net, inputs, z, told, 1.0)[:, 1, 0], inputs.y[:, -1] + 1)


def test_steps_do_not_see_values_after_them() -> None:
    net, whole = network(Counting()), batch()
    inputs, scale = net.inputs(whole)
    assert whole.target is not None
    z = scale.standardize(whole.target).float().requires_grad_()
    for step in range(H):
        (slope,) = torch.autograd.grad(
            decode_teacher_forced(net, inputs, z, torch.ones_like(z), 1.0)[:, step].sum(), z, allow_unused=True
        )
        assert slope[:, step:].abs().max() == 0


def test_paths_go_on_from_their_own_draws() -> None:
    class Noisy(Counting):
        def step(self, state: State, previous: Tensor, ahead: Tensor, number: int) -> tuple[Tensor, State]:
            found, state = super().step(state, previous, ahead, number)
            return torch.cat([found, torch.full_like(found, 1.0)], dim=-1), state

    net, whole = network(Noisy(), ends_in=make_head("normal")), batch()
    inputs, scale = net.inputs(whole)
    uniform = torch.rand(4, 5, H, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).clamp(0.01, 0.99)
    found = decode_samples(net, inputs, scale, uniform)
    raw = torch.stack([torch.zeros(()), torch.ones(())])
    away = net.head.quantiles(raw.expand(4, 5, H, 2), uniform.unsqueeze(-1)).squeeze(-1)
    wanted = inputs.y[:, None, -1:] + (1 + away).cumsum(2)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


def test_the_loss_does_not_hang_on_the_order_of_windows() -> None:
    net, whole = network(Seen()), batch(16)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    shuffled = whole._map(lambda tensor: tensor[order])
    torch.testing.assert_close(net.loss(shuffled), net.loss(whole))
