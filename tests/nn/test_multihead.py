"""Heads beside loops over windows, heads and rows; of what is hidden nothing comes through, nor where all is."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from deepforecast.nn.multihead import (
    AttentionMask,
    CrossAttention,
    KeyValueProjection,
    SelfAttention,
    apply_rotary,
    attention,
    attention_weights,
    merge_heads,
    padding_bias,
    split_heads,
)
from deepforecast.nn.positions import rotary_angles
from tests.nn.bodies import seeded

WINDOWS, HEADS, QUERIES, KEYS, WIDTH = 3, 2, 4, 6, 4


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def parts() -> tuple[Tensor, Tensor, Tensor]:
    whole = [(QUERIES, 0), (KEYS, 1), (KEYS, 2)]
    query, keys, values = (drawn(WINDOWS, HEADS, rows, WIDTH, seed=seed) for rows, seed in whole)
    return query, keys, values


def by_loops(query: Tensor, keys: Tensor, values: Tensor, added: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """What each query finds, and by which weights, one number after the other."""
    found, used = torch.zeros_like(query), torch.zeros(*query.shape[:3], keys.shape[2], dtype=query.dtype)
    added = added.expand(used.shape)
    for window, head, row in torch.cartesian_prod(*(torch.arange(one) for one in query.shape[:3])).tolist():
        scores = {}
        for key in range(keys.shape[2]):
            if added[window, head, row, key] > -math.inf and not (causal and key > row):
                product = float(query[window, head, row] @ keys[window, head, key])
                scores[key] = product / math.sqrt(query.shape[3]) + float(added[window, head, row, key])
        total = sum(math.exp(one) for one in scores.values())
        for key, score in scores.items():
            used[window, head, row, key] = math.exp(score) / total
            found[window, head, row] += used[window, head, row, key] * values[window, head, key]
    return found, used


def some_added(all_hidden: bool = True) -> Tensor:
    """Some keys hidden, of the last window all, and a price on others."""
    valid = torch.ones(WINDOWS, KEYS, dtype=torch.float64)
    valid[1, :2] = 0.0
    if all_hidden:
        valid[2] = 0.0
    return padding_bias(valid) + drawn(1, HEADS, 1, KEYS, seed=5)


@pytest.mark.parametrize("causal", [False, True])
def test_it_is_the_loop(causal: bool) -> None:
    query, keys, values = parts()
    added = torch.zeros(1, dtype=torch.float64).view(1, 1, 1, 1) if causal else some_added()
    expected, used = by_loops(query, keys, values, added, causal)
    look = AttentionMask(None if causal else added, causal)
    kept: list[Tensor] = []
    torch.testing.assert_close(attention(query, keys, values, look), expected)
    torch.testing.assert_close(attention(query, keys, values, look, kept), expected)
    torch.testing.assert_close(kept[0], used)


@pytest.mark.parametrize("ask", [False, True])
def test_a_query_that_sees_nothing_finds_zeros_and_so_do_gradients(ask: bool) -> None:
    for exact in (torch.float32, torch.float64):
        query, keys, values = (one.to(exact).requires_grad_() for one in parts())
        found = attention(query, keys, values, AttentionMask(some_added().to(exact)), [] if ask else None)
        assert (found[2] == 0).all()
        assert (found[:2].abs().amax(-1) > 0).all()
        found.square().sum().backward()
        for one in (query, keys, values):
            assert one.grad.isfinite().all()
            assert (one.grad[2] == 0).all()
            assert (one.grad[:2].abs().sum() > 0).all()
        assert (keys.grad[1, :, :2] == 0).all()


def test_what_is_hidden_has_no_bearing() -> None:
    query, keys, values = parts()
    look = AttentionMask(some_added())
    one = attention(query, keys, values, look)
    keys[1, :, :2], values[1, :, :2] = 1e6, -1e6
    assert torch.equal(attention(query, keys, values, look), one)
    assert (attention_weights(query, keys, look)[1, :, :, :2] == 0).all()


def test_parts_are_of_one_product() -> None:
    rows = drawn(WINDOWS, KEYS, 3 * HEADS * WIDTH)
    found = split_heads(rows, 3, HEADS)
    for part, head in ((0, 0), (1, 1), (2, 0)):
        begin = (part * HEADS + head) * WIDTH
        assert torch.equal(found[part][:, head], rows[..., begin : begin + WIDTH])
    assert torch.equal(torch.cat([merge_heads(one) for one in found], -1), rows)


def test_rows_look_at_each_other() -> None:
    layer = seeded(lambda: SelfAttention(HEADS * WIDTH, HEADS)).double()
    rows, look = drawn(WINDOWS, KEYS, HEADS * WIDTH), AttentionMask(some_added())
    with torch.no_grad():
        query, keys, values = split_heads(rows @ layer.in_proj.weight.T + layer.in_proj.bias, 3, HEADS)
        expected = (
            merge_heads(by_loops(query, keys, values, look.bias, False)[0]) @ layer.out_proj.weight.T + layer.out_proj.bias
        )
        torch.testing.assert_close(layer(rows, look), expected)


def test_paths_of_a_window_look_at_keys_that_are_there_once() -> None:
    width = HEADS * WIDTH
    memory, cross = seeded(lambda: (KeyValueProjection(width, HEADS, 2).double(), CrossAttention(width, HEADS).double()))
    keys, values = memory(drawn(WINDOWS, KEYS, width))[2:]
    paths = drawn(WINDOWS, 5, width, seed=3)
    together = cross(paths, keys, values, AttentionMask(some_added()))
    for path in range(5):
        alone = cross(paths[:, path : path + 1], keys, values, AttentionMask(some_added()))
        torch.testing.assert_close(together[:, path : path + 1], alone)


def test_first_weights_are_glorots_of_each_map() -> None:
    layer = seeded(lambda: SelfAttention(64, 4))
    for block in layer.in_proj.weight.chunk(3):
        assert block.std().item() == pytest.approx(math.sqrt(2 / 128), rel=0.05)
    assert (layer.in_proj.bias == 0).all()


def test_turned_rows_compare_by_their_difference_alone() -> None:
    rows = drawn(8, WIDTH)
    tables = [rotary_angles(torch.arange(8, dtype=torch.float64) + shift, WIDTH) for shift in (-100, 0, 1234)]
    products = [apply_rotary(rows, one) @ apply_rotary(rows, one).T for one in tables]
    for one in products[1:]:
        torch.testing.assert_close(one, products[0])
    for place in (0, 5):  # each pair of numbers turned by hand
        for pair in range(WIDTH // 2):
            angle = place * 10_000 ** (-2 * pair / WIDTH)
            number = complex(rows[place, pair], rows[place, pair + WIDTH // 2]) * complex(math.cos(angle), math.sin(angle))
            found = apply_rotary(rows, tables[1])[place]
            assert (found[pair].item(), found[pair + WIDTH // 2].item()) == pytest.approx((number.real, number.imag))
