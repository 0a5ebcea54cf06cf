"""Bins: values as words and back, and the distribution they stand for."""

from __future__ import annotations

import pytest
import torch

from deepforecast.errors import ParameterError
from deepforecast.nn.heads.bins import BinnedHead
from tests.nn.scales import scale


@pytest.mark.parametrize("spacing", ["dense", "uniform"])
@pytest.mark.parametrize(("low", "high"), [(-15.0, 15.0), (0.0, 4.0), (-1.0, 9.0)])
def test_edges_values_and_codes(spacing: str, low: float, high: float) -> None:
    one = BinnedHead(64, low, high, spacing)
    assert one.edges[[0, -1]].tolist() == pytest.approx([low, high])
    assert (one.edges.diff() > 0).all()
    assert torch.equal(one.encode(one.values()), torch.arange(64))
    outside = torch.tensor([[low - 1, -1e30, high + 1, 1e30]])
    assert one.encode(outside).tolist() == [[0, 0, 63, 63]]


def test_dense_bins_are_narrow_near_zero() -> None:
    widths = BinnedHead(256).edges.diff()
    assert widths.min() < 0.02
    assert widths.argmin() in (127, 128)
    assert widths.max() == pytest.approx(0.53, abs=0.1)
    uniform = BinnedHead(10, spacing="uniform").edges.diff()
    assert torch.allclose(uniform, torch.full((10,), 3.0))


def test_an_edge_belongs_to_the_bin_above_it() -> None:
    one = BinnedHead(4, 0.0, 4.0, "uniform")
    assert one.encode(torch.tensor([0.0, 1.0, 1.999, 2.0, 4.0])).tolist() == [0, 1, 1, 2, 3]


def test_the_loss_is_the_cross_entropy() -> None:
    one = BinnedHead(16)
    raw = torch.randn(3, 5, 16, generator=torch.Generator().manual_seed(0))
    target = 4 * torch.randn(3, 5, generator=torch.Generator().manual_seed(1))
    expected = -one.log_probabilities(raw).gather(-1, one.encode(target).unsqueeze(-1)).squeeze(-1)
    assert torch.allclose(one.loss(raw, target, scale(3)), expected)
    assert torch.allclose(one.log_probabilities(raw).exp().sum(-1), torch.ones(3, 5))


def test_quantiles_lie_on_straight_lines_within_the_bins() -> None:
    one = BinnedHead(4, 0.0, 4.0, "uniform")
    raw = torch.tensor([0.1, 0.4, 0.0, 0.5]).log()
    p = torch.tensor([1e-12, 0.05, 0.1, 0.3, 0.5, 0.75, 1 - 1e-12], dtype=torch.float64)
    expected = [1e-11, 0.5, 1.0, 1.5, 2.0, 3.5, 4.0]  # none in the third bin
    assert torch.allclose(one.quantiles(raw, p), torch.tensor(expected, dtype=torch.float64), atol=1e-6)
    assert one.mean(raw).item() == pytest.approx(0.1 * 0.5 + 0.4 * 1.5 + 0.5 * 3.5)


def test_the_last_probability_below_one_has_a_quantile() -> None:
    one = BinnedHead(1000)
    raw = torch.randn(200, 1000, generator=torch.Generator().manual_seed(0))
    found = one.quantiles(raw, torch.tensor([1 - 2.0**-53], dtype=torch.float64))
    assert torch.allclose(found, torch.tensor(15.0, dtype=torch.float64), atol=1.0)


def test_one_bin_may_hold_everything() -> None:
    one = BinnedHead(8)
    raw = torch.full((8,), -torch.inf)
    raw[3] = 0.0
    found = one.quantiles(raw, torch.tensor([1e-12, 0.5, 1 - 1e-12], dtype=torch.float64))
    assert torch.allclose(found, torch.stack([one.edges[3], one.values()[3], one.edges[4]]).double(), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n": 1}, "`n` must be at least 2"),
        ({"low": 1.0, "high": 1.0}, r"`low` and `high` must be finite with low < high"),
        ({"low": float("-inf")}, r"`low` and `high` must be finite with low < high"),
        ({"spacing": "log"}, r"`spacing` must be .dense. or .uniform"),
    ],
)
def test_what_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        BinnedHead(**given)  # type: ignore[arg-type]
