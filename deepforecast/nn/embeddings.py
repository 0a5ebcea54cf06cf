"""Learned embeddings of categorical columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class CategoryEmbedding(nn.Module):
    """Embeddings of categorical columns: codes (batch, ..., columns) -> vectors (batch, ...,
    width).

    Code 0, a category not seen in fit, gets the mean of the column's vectors, in training and in
    forecasts.

    Parameters
    ----------
    counts : sequence of int
        Number of categories of each column; they have codes from 1.
    widths : sequence of int, optional
        Embedding size of each column; None: see `embedding_width`.
    """

    def __init__(self, counts: Sequence[int], widths: Sequence[int] | None = None) -> None:
        super().__init__()
        self.widths = (
            tuple(widths)
            if widths is not None
            else tuple(embedding_width(count) for count in counts)
        )
        self.tables = nn.ParameterList(
            torch.randn(count, width) / math.sqrt(width)
            for count, width in zip(counts, self.widths, strict=True)
        )

    def width(self, columns: int | None = None) -> int:
        """Return the total width of the vectors of the first `columns`; None: of all."""
        return sum(self.widths[:columns])

    def forward(self, codes: Tensor) -> Tensor:
        """Embed codes (batch, ..., columns) int64 to (batch, ..., width)."""
        return self._embed(codes, len(self.widths))

    def embed_first(self, codes: Tensor) -> Tensor:
        """Embed codes of only the first columns, (batch, ..., c), with the same tables."""
        return self._embed(codes, codes.shape[-1])

    def _embed(self, codes: Tensor, columns: int) -> Tensor:
        tables = list(self.tables)[:columns]
        vectors = [
            _embed_column(table, column)
            for table, column in zip(tables, codes.unbind(-1), strict=True)
        ]
        return torch.cat(vectors, dim=-1) if vectors else codes.float()  # no columns: (..., 0)


def embedding_width(count: int) -> int:
    """Return the embedding size for `count` categories, min(16, 1.6 count^0.56): 2 for 1, 6 for 10,
    16 from 55.
    """
    width: int = min(16, math.ceil(1.6 * count**0.56))
    return width


def _embed_column(table: Tensor, codes: Tensor) -> Tensor:
    return functional.embedding(codes, torch.cat([table.mean(0, keepdim=True), table]))
