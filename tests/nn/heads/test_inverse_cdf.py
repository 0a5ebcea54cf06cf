"""Ways back from probabilities to values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import special

from deepforecast.nn.heads.inverse_cdf import (
    MAX_COUNT,
    bisect,
    count_quantile,
    interpolate_quantiles,
    make_monotone,
    student_t_quantile,
)

EXACT = torch.float64


def test_straight_lines() -> None:
    values, known = torch.tensor([[0.0, 1.0, 5.0]], dtype=EXACT), torch.tensor([0.2, 0.5, 0.9], dtype=EXACT)
    p = torch.tensor([[0.1, 0.2, 0.35, 0.5, 0.6, 0.9, 0.99]], dtype=EXACT)
    assert torch.allclose(
        interpolate_quantiles(values, known, p), torch.tensor([[0.0, 0.0, 0.5, 1.0, 2.0, 5.0, 5.0]], dtype=EXACT)
    )


def test_what_falls_by_rounding_is_levelled_in_the_order_of_probabilities() -> None:
    p, values = torch.tensor([0.9, 0.1, 0.5]), torch.tensor([1.9, 1.0, 2.0])
    assert make_monotone(values, p).tolist() == pytest.approx([2.0, 1.0, 2.0])


def test_student_quantiles_there_and_back() -> None:
    p = torch.tensor([1e-12, 0.2, 0.5, 0.9], dtype=EXACT)
    for freedom in (2.1, 30.0, 1e9):
        found = student_t_quantile(p, torch.tensor(freedom, dtype=EXACT))
        assert np.allclose(special.stdtr(freedom, found.numpy()), p.numpy(), rtol=1e-9, atol=0)


def test_bisection() -> None:
    p = torch.tensor([0.1, 0.5, 0.999], dtype=EXACT)
    found = bisect(torch.special.ndtr, p, p - 50, p + 50)
    assert torch.allclose(found, torch.special.ndtri(p), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("guess", [0.0, 3.0, 40.0, 1e6, np.nan, -5.0])
def test_counts_are_found_from_any_guess(guess: float) -> None:
    p = np.array([1e-12, 0.01, 0.5, 0.9, 1 - 1e-12, 1 - 2**-53])
    rate = np.full(6, 9.5)
    found = count_quantile(special.pdtr, p, np.full(6, guess), rate)
    assert (special.pdtr(found, rate) >= p).all()
    assert ((found == 0) | (special.pdtr(found - 1, rate) < p)).all()


def test_counts_end_somewhere() -> None:
    """A cumulated probability that never gets there, as rounding may make one."""
    found = count_quantile(lambda count: np.full_like(count, 0.5), np.array([0.9, 0.4]), np.array([3.0, 3.0]))
    assert found.tolist() == [MAX_COUNT, 0.0]
