"""Draws of the categorical head made bolder or safer, greedy paths of means, and memory that paths share."""

from __future__ import annotations

import pytest
import torch

from deepforecast.nn.decoding import apply_temperature, decode_samples
from deepforecast.nn.heads.bins import BinnedHead
from deepforecast.nn.heads.registry import make_head
from deepforecast.nn.network import decode_greedy
from deepforecast.nn.scaling import Scale
from tests.nn.bodies import seeded, some_inputs
from tests.nn.test_beam_search import SIZES, Remembering, network, recurrent

CHANCES = torch.tensor([[0.5, 0.1, 0.3, 0.06, 0.04], [0.04, 0.06, 0.3, 0.5, 0.1]])


@pytest.mark.parametrize(
    ("top_p", "kept"), [(1.0, [0, 1, 2, 3, 4]), (0.95, [0, 1, 2, 3]), (0.81, [0, 1, 2]), (0.6, [0, 2]), (0.4, [0]), (1e-9, [0])]
)
def test_the_fewest_and_likeliest_that_make_up_the_share_are_kept(top_p: float, kept: list[int]) -> None:
    found = apply_temperature(CHANCES.log(), 1.0, top_p).softmax(-1)
    wanted = torch.zeros(5).index_add(0, torch.tensor(kept), CHANCES[0, kept])
    assert torch.allclose(found[0], wanted / wanted.sum())
    assert torch.allclose(found[1].sort().values, found[0].sort().values)  # wherever they stand


@pytest.mark.parametrize("temperature", [0.25, 2.0])
def test_temperature_is_a_power_of_the_probabilities(temperature: float) -> None:
    wanted = CHANCES ** (1 / temperature)
    found = apply_temperature(CHANCES.log(), temperature, 1.0).softmax(-1)
    assert torch.allclose(found, wanted / wanted.sum(-1, keepdim=True))


def test_what_is_impossible_is_never_drawn() -> None:
    bins, uniform = BinnedHead(5, -2.5, 2.5, "uniform"), torch.linspace(1e-6, 1 - 1e-6, 1001)
    raw = apply_temperature(CHANCES[:1].log(), 1.0, 0.6).expand(1001, 5)
    assert bins.encode(bins.sample(raw, uniform[:, None])).unique().tolist() == [0, 2]


def test_draws_are_the_quantiles_they_are_asked_for() -> None:
    bins, raw = BinnedHead(), seeded(lambda: torch.randn(50, 256))
    uniform = seeded(lambda: torch.rand(50, dtype=torch.float64))
    assert torch.allclose(bins.sample(raw, uniform[:, None]).double(), bins.quantiles(raw, uniform[:, None]), atol=1e-4)


def test_a_greedy_path_of_means_feeds_means() -> None:
    net, inputs = recurrent(), some_inputs(SIZES)
    with torch.no_grad():
        by_median, by_mean = decode_greedy(net, inputs), decode_greedy(net, inputs, mean=True)
        state = net.initial_state(inputs)
        raw, state = net.step(state, inputs.y[:, -1], inputs.future_features[:, 0], 0)
        raw, _ = net.step(state, net.head.mean(raw).float(), inputs.future_features[:, 1], 1)
    assert torch.equal(by_median[:, 0], by_mean[:, 0])
    assert torch.allclose(by_mean[:, 1], raw)
    assert not torch.allclose(by_mean[:, 1], by_median[:, 1])


def test_the_memory_of_a_window_is_not_repeated_for_its_paths() -> None:
    net, inputs = network(seeded(lambda: Remembering(SIZES))), some_inputs(SIZES, windows=3)
    one = torch.ones(3, 1, dtype=torch.float64)
    with torch.no_grad():
        decode_samples(net, inputs, Scale(0 * one, one, one.float()), torch.full((3, 7, 4), 0.3, dtype=torch.float64))
    assert net.body.held == [(3, 21)] * 4


def test_values_of_a_path_are_spread_evenly_over_its_distribution() -> None:
    """Of steps that all paths agree on, the values of all paths together are as evenly spread as can be."""
    net, inputs = network(seeded(lambda: Remembering(SIZES))), some_inputs(SIZES, windows=3)
    one, uniform = torch.ones(3, 1, dtype=torch.float64), (torch.arange(6, dtype=torch.float64) + 0.5).expand(3, 4, 6).mT / 6
    scale = Scale(0 * one, one, one.float())
    with torch.no_grad():
        alone, found = decode_samples(net, inputs, scale, uniform), decode_samples(net, inputs, scale, uniform, n_values=5)
        raw, _ = net.step(net.initial_state(inputs), inputs.y[:, -1], inputs.future_features[:, 0], 0)
        wanted = net.head.quantiles(raw, (torch.arange(30, dtype=torch.float64) + 0.5) / 30)
    assert found.shape == (3, 36, 4)
    assert torch.equal(found[:, :6], alone)
    assert torch.allclose(found[:, 6:, 0].sort(dim=1).values.double(), wanted, atol=1e-5)


def test_every_head_draws() -> None:
    for name in ("quantiles", "normal", "poisson", "mixture", "implicit_quantile", "bins"):
        one = seeded(lambda name=name: make_head(name))
        raw, uniform = (
            seeded(lambda one=one: torch.randn(6, one.out_features)),
            torch.linspace(0.1, 0.9, 6, dtype=torch.float64),
        )
        spread = torch.ones(6, dtype=torch.float64)
        with torch.no_grad():
            found, wanted = one.sample(raw, uniform[:, None], spread), one.quantiles(raw, uniform[:, None], spread)
        assert torch.allclose(found.double(), wanted, atol=1e-4), name


