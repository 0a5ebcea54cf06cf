"""Weights over the rows there are: exact zeros elsewhere, hard and local ones, and gradients that stay numbers."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from deepforecast.errors import ParameterError
from deepforecast.nn.attention import (
    Attention,
    AttentionOptions,
    attend,
    harden_weights,
    local_scores,
    masked_softmax,
    self_attention,
    valid_steps,
)
from deepforecast.nn.scores import SCORES
from tests.nn.bodies import NothingOnTheCPU, seeded

WINDOWS, ASKING, ROWS, QUERY, WIDTH = 3, 2, 5, 4, 6


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


VALID = torch.tensor([[[True] * 5], [[False, False, True, True, True]], [[False] * 5]])


def made(**options: Any) -> Attention:
    return seeded(lambda: Attention(AttentionOptions(**options), QUERY, WIDTH, ROWS)).double()


def test_a_masked_softmax_is_that_of_the_rows_there_are() -> None:
    scores = drawn(WINDOWS, ASKING, ROWS)
    found = masked_softmax(scores, VALID)
    torch.testing.assert_close(found[0], scores[0].softmax(-1))
    torch.testing.assert_close(found[1, :, 2:], scores[1, :, 2:].softmax(-1))
    assert (found[1, :, :2] == 0).all()
    assert (found[2] == 0).all()
    torch.testing.assert_close(masked_softmax(scores), scores.softmax(-1))


@pytest.mark.parametrize("size", [1.0, 1e3, 1e30])
def test_its_gradients_are_numbers(size: float) -> None:
    scores = (drawn(WINDOWS, ASKING, ROWS) * size).float().requires_grad_()
    masked_softmax(scores, VALID).square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert (scores.grad[2] == 0).all()
    assert (scores.grad[1, :, :2] == 0).all()


def test_values_are_not_the_keys() -> None:
    """What is looked at decides how much is taken, not what."""
    scores, values = drawn(1, 2, 3), drawn(1, 3, 4, seed=1)
    context, weights = attend(scores, values)
    for asking in range(2):
        expected = sum(weights[0, asking, row] * values[0, row] for row in range(3))
        torch.testing.assert_close(context[0, asking], expected)


def test_hard_weights_are_all_on_one_row_with_the_gradient_of_the_soft_ones() -> None:
    scores, pull = drawn(WINDOWS, ASKING, ROWS).requires_grad_(), drawn(WINDOWS, ASKING, ROWS, seed=1)
    soft = masked_softmax(scores, VALID)
    hard = harden_weights(soft)
    assert hard.unique().tolist() == [0.0, 1.0]
    assert hard.sum(-1).tolist() == [[1.0] * 2, [1.0] * 2, [0.0] * 2]
    assert torch.equal(hard[:2].argmax(-1), soft[:2].argmax(-1))
    straight = torch.autograd.grad((hard * pull).sum(), scores, retain_graph=True)[0]
    torch.testing.assert_close(straight, torch.autograd.grad((soft * pull).sum(), scores)[0])
    assert straight.abs().sum() > 0


def test_a_window_of_rows_around_a_row() -> None:
    scores, inside = local_scores(torch.zeros(1, 2, 7), torch.tensor([[3.0, 0.5]]), 2)
    assert inside[0].tolist() == [[False, True, True, True, True, True, False], [True] * 3 + [False] * 4]
    torch.testing.assert_close(scores[0, 0], -0.5 * torch.tensor([9.0, 4, 1, 0, 1, 4, 9]))


def test_a_local_query_always_finds_a_row_and_learns_where() -> None:
    one = made(window=1)
    queries, encoded = drawn(WINDOWS, ASKING, QUERY) * 9, drawn(WINDOWS, ROWS, WIDTH)
    _, weights = one(queries, *one.keys_and_values(encoded), VALID)
    assert weights.sum(-1).round(decimals=9).tolist() == [[1.0] * 2, [1.0] * 2, [0.0] * 2]
    assert ((weights > 0).sum(-1) <= 3).all()
    (weights * torch.arange(ROWS)).sum().backward()
    assert one.centre is not None
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in one.centre.parameters())


def test_rows_look_at_each_other() -> None:
    rows = drawn(2, 4, 3)
    found, weights = self_attention(rows)
    for window, row in product(range(2), range(4)):
        shares = torch.softmax(torch.stack([rows[window, row] @ rows[window, other] for other in range(4)]), 0)
        torch.testing.assert_close(weights[window, row], shares)
        torch.testing.assert_close(found[window, row], sum(shares[other] * rows[window, other] for other in range(4)))
    assert (self_attention(drawn(3, 5, 2), VALID)[1][1, :, :2] == 0).all()


def test_rows_are_there_from_the_first_value_on() -> None:
    seen = torch.tensor([[0.0, 0, 1, 0, 1], [0.0] * 5])
    assert valid_steps(seen).tolist() == [[[False, False, True, True, True]], [[False] * 5]]


@pytest.mark.parametrize("name", list(SCORES))
def test_every_sum_of_options_learns(name: str) -> None:
    for separate, temperature, window, hard in product((False, True), (False, True), (None, 2), (False, True)):
        one = made(score=name, separate_values=separate, learned_scale=temperature, window=window, hard_attention=hard)
        queries, encoded = drawn(WINDOWS, ASKING, QUERY), drawn(WINDOWS, ROWS, WIDTH).requires_grad_()
        keys, values = one.keys_and_values(encoded)
        context, weights = one(queries, keys, values, VALID)
        assert context.shape == (WINDOWS, ASKING, WIDTH)
        torch.testing.assert_close(weights.sum(-1), VALID.any(-1).double().expand(WINDOWS, ASKING))
        assert (context[2] == 0).all()
        (context * drawn(WINDOWS, ASKING, WIDTH, seed=3)).sum().backward()
        dead = [at for at, weight in one.named_parameters() if weight.grad is None or not weight.grad.abs().sum() > 0]
        assert not dead
        assert all(weight.grad is None or weight.grad.isfinite().all() for weight in one.parameters())
        assert encoded.grad is not None
        assert encoded.grad.isfinite().all()
        assert (encoded.grad[2] == 0).all()


def test_a_learned_temperature_multiplies_the_scores() -> None:
    """Of angles it begins at 10: as they are, their softmax over many rows is flat."""
    queries, encoded = drawn(WINDOWS, ASKING, QUERY), drawn(WINDOWS, ROWS, WIDTH)
    for name, begins in (("cosine", 10.0), ("general", 1.0)):
        one = made(score=name, learned_scale=True)
        keys, values = one.keys_and_values(encoded)
        expected = masked_softmax(begins * one.score(queries, keys), VALID)
        torch.testing.assert_close(one(queries, keys, values, VALID)[1], expected, atol=1e-6, rtol=1e-6)


def test_paths_of_a_window_share_its_keys() -> None:
    """Queries of N paths ask the same keys: each gets what it gets alone."""
    one = made(score="additive")
    queries, encoded = drawn(WINDOWS, 4, QUERY), drawn(WINDOWS, ROWS, WIDTH)
    keys, values = one.keys_and_values(encoded)
    whole, _ = one(queries, keys, values, VALID)
    for path in range(4):
        torch.testing.assert_close(one(queries[:, path : path + 1], keys, values, VALID)[0], whole[:, path : path + 1])


def test_an_unknown_score_is_refused_with_the_list() -> None:
    with pytest.raises(ParameterError, match=r"`attention` must be one of 'additive', 'dot'.*, got nearest"):
        made(score="nearest")


@pytest.mark.parametrize("name", list(SCORES))
def test_on_another_device_nothing_is_left_behind(name: str) -> None:
    one = made(score=name, separate_values=True, learned_scale=True, window=2, hard_attention=True).to("meta")
    queries, encoded, valid = (one.to("meta") for one in (drawn(3, 2, QUERY), drawn(3, ROWS, WIDTH), VALID))
    with NothingOnTheCPU():
        context, _ = one(queries, *one.keys_and_values(encoded), valid)
    assert context.device.type == "meta"
