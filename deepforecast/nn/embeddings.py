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
            else tuple(embedding_width(n_categories) for n_categories in counts)
        )
        self.tables = nn.ParameterList(
            torch.randn(n_categories, width) / math.sqrt(width)
            for n_categories, width in zip(counts, self.widths, strict=True)
        )

    def width(self, n_columns: int | None = None) -> int:
        """Return the total width of the vectors of the first `n_columns` columns; None: of all."""
        return sum(self.widths[:n_columns])

    def forward(self, codes: Tensor) -> Tensor:
        """Embed codes (batch, ..., columns) int64 to (batch, ..., width)."""
        return self._embed(codes, len(self.widths))

    def embed_first(self, codes: Tensor) -> Tensor:
        """Embed codes of only the first columns, (batch, ..., c), with the same tables."""
        return self._embed(codes, codes.shape[-1])

    def _embed(self, codes: Tensor, n_columns: int) -> Tensor:
        """Look up the codes (batch, ..., n_columns) and concatenate the vectors of the columns."""
        tables = list(self.tables)[:n_columns]
        vectors = [
            _embed_column(table, column)
            for table, column in zip(tables, codes.unbind(-1), strict=True)
        ]
        return torch.cat(vectors, dim=-1) if vectors else codes.float()  # no columns: (..., 0)


def embedding_width(n_categories: int) -> int:
    """Return the embedding size for a number of categories, ceil(1.6 n^0.56), at most 16.

    It is 2 for 1 category, 6 for 10, and 16 from 55 on.
    """
    width: int = min(16, math.ceil(1.6 * n_categories**0.56))
    return width


def _embed_column(table: Tensor, codes: Tensor) -> Tensor:
    """Look up codes (batch, ...), with the mean of the table (categories, width) for code 0."""
    return functional.embedding(codes, torch.cat([table.mean(0, keepdim=True), table]))
