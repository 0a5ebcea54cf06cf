"""Categories become vectors; one never seen is the mean of those that were."""

from __future__ import annotations

import pytest
import torch

from deepforecast.nn.layers import CategoryEmbedding, embedding_width
from tests.nn.bodies import seeded


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
