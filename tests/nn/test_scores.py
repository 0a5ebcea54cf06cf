"""Each score is its plain loop, in values and gradients; what is ready once a window changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from deepforecast.errors import ParameterError, ParameterTypeError
from deepforecast.nn import scores
from deepforecast.nn.scores import SCORES, Score
from tests.nn.bodies import NothingOnTheCPU, seeded

WINDOWS, ASKING, ROWS, QUERY, KEY = 3, 4, 5, 6, 7
LOOPS: dict[str, Callable[[Score, Tensor, Tensor, int], Tensor]] = {
    "additive": lambda one, q, k, _: one.direction @ torch.tanh(one.query.weight @ q + one.query.bias + one.key.weight @ k),
    "dot": lambda one, q, k, _: sum(a * b for a, b in zip(q, k, strict=True)),
    "scaled_dot": lambda one, q, k, _: sum(a * b for a, b in zip(q, k, strict=True)) / len(q) ** 0.5,
    "general": lambda one, q, k, _: q @ (one.weight @ k),
    "location": lambda one, q, k, row: one.weight[row] @ q,
    "cosine": lambda one, q, k, _: (q @ k) / (q.square().sum().sqrt() * k.square().sum().sqrt()),
    "gaussian": lambda one, q, k, _: -0.5 * sum((a - b) ** 2 for a, b in zip(q, k, strict=True)),
}


def made(name: str) -> tuple[Score, Tensor, Tensor]:
    """A score, queries and keys, in float64."""
    kind = SCORES[name]
    wide = QUERY if kind.same_width else KEY
    drawn = torch.Generator().manual_seed(1)
    queries = torch.randn(WINDOWS, ASKING, QUERY, generator=drawn, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(WINDOWS, ROWS, wide, generator=drawn, dtype=torch.float64, requires_grad=True)
    return seeded(lambda: kind(QUERY, wide, ROWS)).double(), queries, keys


def looped(one: Score, name: str, queries: Tensor, keys: Tensor) -> Tensor:
    """One query, one key at a time."""
    every = [
        LOOPS[name](one, queries[window, asking], keys[window, row], row)
        for window in range(WINDOWS) for asking in range(queries.shape[1]) for row in range(ROWS)
    ]  # fmt: skip
    return torch.stack(every).view(WINDOWS, queries.shape[1], ROWS)


def test_every_score_there_is_has_a_loop() -> None:
    assert set(SCORES) == set(LOOPS)


@pytest.mark.parametrize("asking", [1, ASKING])
@pytest.mark.parametrize("name", list(LOOPS))
def test_a_score_is_its_plain_loop(name: str, asking: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "CHUNK_SIZE", 2 * ASKING * ROWS * QUERY)  # two windows, then one
    one, queries, keys = made(name)
    queries = queries[:, :asking].detach().requires_grad_()
    weights = torch.randn(WINDOWS, asking, ROWS, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    learned = [queries, *([keys] if name != "location" else []), *one.parameters()]
    found, expected = one(queries, one.prepare_keys(keys)), looped(one, name, queries, keys)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
    with torch.no_grad():
        torch.testing.assert_close(one(queries, one.prepare_keys(keys)), expected, atol=1e-10, rtol=1e-10)
    for mine, plain in zip(
        torch.autograd.grad((found * weights).sum(), learned),
        torch.autograd.grad((expected * weights).sum(), learned),
        strict=True,
    ):
        torch.testing.assert_close(mine, plain, atol=1e-10, rtol=1e-10)


def test_the_additive_score_is_the_concatenated_one() -> None:
    one, queries, keys = made("additive")
    both = torch.cat(
        [queries.unsqueeze(2).expand(-1, -1, ROWS, -1), keys.unsqueeze(1).expand(-1, ASKING, -1, -1)], dim=-1
    )  # [s; h]
    whole = torch.cat([one.query.weight, one.key.weight], dim=1)
    expected = torch.tanh(both @ whole.t() + one.query.bias) @ one.direction
    torch.testing.assert_close(one(queries, one.prepare_keys(keys)), expected, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize(("query", "key"), [(QUERY, KEY), (QUERY, QUERY), (32, 32)])
def test_the_additive_score_begins_as_a_bell(query: int, key: int) -> None:
    """Largest where query and key are equal, and lower the further they are apart: near 0 as the Gaussian kernel is."""
    one = seeded(lambda: SCORES["additive"](query, key, ROWS)).double()
    drawn = torch.Generator().manual_seed(1)
    queries = torch.randn(1, 1, query, generator=drawn, dtype=torch.float64)
    away = torch.randn(200, query, generator=drawn, dtype=torch.float64)

    def at(distance: float) -> Tensor:
        keys = queries[0] + distance * away
        wide = torch.cat([keys, keys.new_ones(200, max(key - query, 0))], dim=1).unsqueeze(0)
        return one(queries, one.prepare_keys(wide)).flatten()

    assert (at(0.0) > at(0.1)).all()
    assert (at(0.1) > at(1.0)).all()
    lost, bell = (at(0.0) - at(0.01)).mean(), 0.5 * (0.01 * away).square().sum(1).mean()
    torch.testing.assert_close(lost, bell, rtol=0.1, atol=0)


@pytest.mark.parametrize("name", ["general", "cosine", "gaussian"])
def test_the_plain_function_is_the_module(name: str) -> None:
    one, queries, keys = made(name)
    given = (queries, keys, one.weight) if name == "general" else (queries, keys)
    torch.testing.assert_close(getattr(scores, name)(*given), one(queries, one.prepare_keys(keys)), atol=1e-12, rtol=1e-12)


def test_an_angle_to_nothing_is_finite() -> None:
    one, queries, keys = made("cosine")
    one(queries, one.prepare_keys(keys * 0)).sum().backward()
    assert queries.grad is not None
    assert keys.grad is not None
    assert (queries.grad.isfinite() & keys.grad.isfinite().all()).all()


@pytest.mark.parametrize("name", list(LOOPS))
def test_on_another_device_nothing_is_left_behind(name: str) -> None:
    one, queries, keys = made(name)
    one, queries, keys = one.to("meta"), queries.detach().to("meta").requires_grad_(), keys.detach().to("meta")
    with NothingOnTheCPU():
        found = one(queries, one.prepare_keys(keys))
    found.sum().backward()
    assert found.shape == (WINDOWS, ASKING, ROWS)


def test_names_are_unique_and_of_scores() -> None:
    with pytest.raises(ParameterError, match="must be unique, got 'dot', the name of Dot"):

        @scores.score("dot")
        class Other(Score):
            pass

    with pytest.raises(ParameterTypeError, match="must decorate a subclass of Score"):
        scores.score("plain")(dict)  # type: ignore[type-var]
    assert "plain" not in SCORES
    with pytest.raises(NotImplementedError, match="must implement forward"):
        Score(2, 2, 2)(torch.zeros(1, 1, 2), torch.zeros(1, 2, 2))
