"""Normalisation, dropout, embeddings of categories, and seeded initialisation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from deepforecast.errors import ParameterError
from deepforecast.nn.layers import (
    NORMALIZATIONS,
    RANDOM_FUNCTIONS,
    BatchNorm,
    CategoryEmbedding,
    Dropout,
    SeededInit,
    dropout_mask,
    embedding_width,
    normalization,
)
from tests.nn.bodies import seeded

DRAWN = torch.Generator().manual_seed(0)
HIDDEN = 5 + 3 * torch.randn(6, 7, 4, generator=DRAWN)


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_by_name(name: str | None) -> None:
    for hidden in (HIDDEN, HIDDEN[:, 0], HIDDEN[:1, 0]):
        assert normalization(name, 4)(hidden).shape == hidden.shape
    found = normalization(name, 4)(HIDDEN)
    mean, square = {
        None: (HIDDEN.mean(-1), HIDDEN.square().mean(-1)),
        "layer": (torch.zeros(6, 7), torch.ones(6, 7)),
        "rms": (found.mean(-1), torch.ones(6, 7)),
        "batch": (found.mean(-1), found.square().mean(-1)),
    }[name]
    torch.testing.assert_close(found.mean(-1), mean, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.square().mean(-1), square, atol=1e-4, rtol=1e-4)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ParameterError, match="one of None, 'layer', 'batch', 'rms', got group"):
        normalization("group", 4)


def test_batch_normalisation_in_training_and_after() -> None:
    norm = BatchNorm(4)
    found = norm(HIDDEN)
    torch.testing.assert_close(found.mean((0, 1)), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.var((0, 1), correction=0), torch.ones(4), atol=1e-4, rtol=0)
    for _ in range(200):
        norm(HIDDEN)
    norm.eval()
    held = (HIDDEN - HIDDEN.mean((0, 1))) / HIDDEN.var((0, 1)).sqrt()
    torch.testing.assert_close(norm(HIDDEN), held, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(norm(HIDDEN[:1, :1]), held[:1, :1], atol=1e-4, rtol=1e-4)


def test_a_single_row_in_training_is_normalised_by_what_was_seen_before() -> None:
    norm = seeded(lambda: BatchNorm(4))
    norm(HIDDEN)
    seen = {name: held.clone() for name, held in norm.named_buffers()}
    row = HIDDEN[0, 0]
    expected = (row - seen["running_mean"]) / (seen["running_var"] + norm.eps).sqrt()
    torch.testing.assert_close(norm(row[None]), expected[None])
    assert all(torch.equal(held, seen[name]) for name, held in norm.named_buffers())


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9])
def test_the_share_is_that_asked_for(share: float) -> None:
    found = seeded(lambda: dropout_mask(torch.ones(500, 401), share))
    assert (found == 0).float().mean().item() == pytest.approx(share, abs=4 * (share * (1 - share) / found.numel()) ** 0.5)
    assert found.max().item() == pytest.approx(1 / (1 - share), rel=1e-3)
    assert found.dtype == torch.float32


def test_neighbours_are_drawn_by_themselves() -> None:
    gone = (seeded(lambda: dropout_mask(torch.ones(4000, 8), 0.3)) == 0).double()
    together = torch.corrcoef(gone.T) - torch.eye(8, dtype=torch.float64)
    assert together.abs().max() < 0.07


def test_training_alone_and_the_generator_decide() -> None:
    layer, x = Dropout(0.5), torch.ones(64, 3, requires_grad=True)
    one, other = (seeded(lambda: layer(x), seed) for seed in (0, 1))
    assert torch.equal(one, seeded(lambda: layer(x), 0))
    assert not torch.equal(one, other)
    one.sum().backward()
    assert torch.equal(x.grad, one.detach())
    assert layer.eval()(x) is x
    assert Dropout(0.0)(x) is x


def codes(*rows: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor(rows)


def test_vectors_stand_side_by_side() -> None:
    made = seeded(lambda: CategoryEmbedding((3, 5), widths=(2, 4)))
    found = made(codes((1, 5), (3, 2)))
    assert found.shape == (2, 6)
    assert found.dtype == torch.float32
    assert torch.equal(found[0], torch.cat([made.tables[0][0], made.tables[1][4]]))
    assert torch.equal(found[1], torch.cat([made.tables[0][2], made.tables[1][1]]))
    assert made(torch.ones(7, 12, 2, dtype=torch.int64)).shape == (7, 12, 6)


@pytest.mark.parametrize("training", [True, False])
def test_a_category_never_seen_is_the_mean(training: bool) -> None:
    made = seeded(lambda: CategoryEmbedding((3, 5))).train(training)
    found = made(codes((0, 0)))
    assert torch.allclose(found[0], torch.cat([table.mean(0) for table in made.tables]))


def test_the_first_columns_share_their_tables() -> None:
    made = seeded(lambda: CategoryEmbedding((3, 5, 2)))
    both = codes((1, 5, 2), (3, 2, 0))
    assert torch.equal(made.embed_first(both[:, :2]), made(both)[:, : made.width(2)])
    assert made.embed_first(both[:, :0]).shape == (2, 0)
    assert made.width() == sum(made.widths) == made(both).shape[1]


def test_other_columns_than_counted_are_refused() -> None:
    with pytest.raises(ValueError):
        seeded(lambda: CategoryEmbedding((3, 5)))(codes((1,)))


def test_only_the_category_met_learns() -> None:
    made = seeded(lambda: CategoryEmbedding((4,)))
    made(codes((2,), (2,))).sum().backward()
    (table,) = made.tables
    assert table.grad is not None
    assert (table.grad.abs().sum(1) > 0).tolist() == [False, True, False, False]


def test_widths_grow_slowly() -> None:
    assert [embedding_width(count) for count in (1, 2, 10, 54, 55, 100_000)] == [2, 3, 6, 15, 16, 16]


FILLED = [name for name in sorted(RANDOM_FUNCTIONS) if hasattr(nn.init, name) and name != "sparse_"]
ACTS: dict[str, Callable[[], Tensor]] = {
    "Linear": lambda: nn.Linear(3, 4).weight, "LSTM": lambda: nn.LSTM(3, 4).weight_hh_l0,
    "GRU": lambda: nn.GRU(3, 4).bias_ih_l0,
    "Embedding": lambda: nn.Embedding(3, 4).weight, "Conv1d": lambda: nn.Conv1d(2, 2, 3).weight,
    "MultiheadAttention": lambda: nn.MultiheadAttention(4, 2).in_proj_weight,
    **{name: lambda name=name: getattr(nn.init, name)(torch.empty(3, 4)) for name in FILLED},
    "sparse_": lambda: nn.init.sparse_(torch.empty(3, 4), 0.5),
    "rand": lambda: torch.rand(3), "randn": lambda: torch.randn(3), "randint": lambda: torch.randint(9, (3,)),
    "randperm": lambda: torch.randperm(9), "normal": lambda: torch.normal(torch.zeros(3), torch.ones(3)),
    "poisson": lambda: torch.poisson(torch.full((9,), 3.0)), "multinomial": lambda: torch.multinomial(torch.ones(9), 4),
    "bernoulli": lambda: torch.bernoulli(torch.full((9,), 0.5)), "bernoulli_": lambda: torch.empty(9).bernoulli_(),
    "rand_like": lambda: torch.rand_like(torch.empty(3)), "randn_like": lambda: torch.randn_like(torch.empty(3)),
    "randint_like": lambda: torch.randint_like(torch.empty(3), 9), "random_": lambda: torch.empty(3).random_(),
    **{name: lambda name=name: getattr(torch.empty(3), name)(*([0.5] if name == "geometric_" else []))
       for name in ("exponential_", "log_normal_", "cauchy_", "geometric_")},
}  # fmt: skip


def test_every_function_is_tried() -> None:
    assert set(ACTS) >= RANDOM_FUNCTIONS


@pytest.mark.parametrize("name", list(ACTS))
def test_the_numbers_of_the_seed_and_torchs_own_generator_as_it_was(name: str) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        wanted = ACTS[name]()
        before = torch.get_rng_state()
        with SeededInit(5):
            found = ACTS[name]()
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(found, wanted)


def test_a_generator_that_is_given_is_used() -> None:
    with SeededInit(5):
        found = torch.rand(3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(found, torch.rand(3, generator=torch.Generator().manual_seed(1)))


def test_where_nothing_is_drawn_none_is_needed() -> None:
    with torch.device("meta"), SeededInit(5):
        assert nn.LSTM(3, 4).weight_hh_l0.is_meta
        assert torch.rand(3).is_meta
    with FakeTensorMode(), SeededInit(5):
        assert nn.Linear(3, 4).weight.shape == (4, 3)
