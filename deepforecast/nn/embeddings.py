"""Categories as vectors of numbers that are learned."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class CategoryEmbedding(nn.Module):
    """Codes of categorical columns (B, ..., C) to their vectors side by side (B, ..., width).

    `counts`: how many categories each column has; they are coded from 1. Code 0, a category never seen, is the mean of the
    column's vectors, in training as afterwards: what the column says on average, without a slot that would need noise to be
    learned, and without the origin, which a network need never have met.
    """

    def __init__(self, counts: Sequence[int], widths: Sequence[int] | None = None) -> None:
        super().__init__()
        self.widths = tuple(widths) if widths is not None else tuple(embedding_width(count) for count in counts)
        self.tables = nn.ParameterList(
            torch.randn(count, width) / math.sqrt(width) for count, width in zip(counts, self.widths, strict=True)
        )

    def width(self, columns: int | None = None) -> int:
        """How wide the vectors of the first `columns` (all of them without a number) are together."""
        return sum(self.widths[:columns])

    def forward(self, codes: Tensor) -> Tensor:
        """(B, ..., C) int64 to (B, ..., width)."""
        return self._embed(codes, len(self.widths))

    def embed_first(self, codes: Tensor) -> Tensor:
        """Codes of only the first columns, (B, ..., c), to only their vectors, by the same tables."""
        return self._embed(codes, codes.shape[-1])

    def _embed(self, codes: Tensor, columns: int) -> Tensor:
        tables = list(self.tables)[:columns]
        vectors = [_embed_column(table, column) for table, column in zip(tables, codes.unbind(-1), strict=True)]
        return torch.cat(vectors, dim=-1) if vectors else codes.float()  # of no column no numbers


def embedding_width(count: int) -> int:
    """How many numbers stand for one of `count` categories: 2 for one, 6 for ten, 16 from 55 on."""
    width: int = min(16, math.ceil(1.6 * count**0.56))
    return width


def _embed_column(table: Tensor, codes: Tensor) -> Tensor:
    """Vectors of one column: (B, ...) to (B, ..., width)."""
    return functional.embedding(codes, torch.cat([table.mean(0, keepdim=True), table]))
