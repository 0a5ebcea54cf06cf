"""Friedman and Nemenyi against the worked example of Demšar (2006), section 3.2.2, and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from deepforecast.errors import DataError, ParameterError
from deepforecast.evaluation.critical_difference import cliques, critical_difference, friedman

# Table 6: area under the curve of C4.5 with parameters m and cf tuned or not, 14 datasets. The paper ranks "voting" by digits
# it does not print (2 before 3), hence the last one's 0.9749.
AUC = np.array([
    [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.0, 0.940, 0.619, 0.972, 0.957],
    [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.0, 0.962, 0.666, 0.981, 0.978],
    [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.0, 0.965, 0.614, 0.975, 0.946],
    [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.0, 0.962, 0.669, 0.9749, 0.970],
])  # fmt: skip


def test_ranks_and_statistic_are_those_of_the_paper() -> None:
    found = friedman(1 - AUC)
    assert found.mean_ranks == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    assert found.n_datasets == 14
    wanted = friedmanchisquare(*(1 - AUC))
    assert found.statistic == pytest.approx(wanted.statistic)
    assert found.p_value == pytest.approx(wanted.pvalue)
    # the paper's 9.28 is not corrected for ties, of which there are three pairs and a row of four
    ties = 3 * (2**3 - 2) + (4**3 - 4)
    assert found.statistic * (1 - ties / (14 * 4 * 15)) == pytest.approx(9.28, abs=5e-3)


@pytest.mark.parametrize(("models", "level", "q"), [(2, 95, 1.960), (4, 95, 2.569), (10, 95, 3.164), (4, 90, 2.291)])
def test_critical_differences_follow_from_the_papers_table(models: int, level: int, q: float) -> None:
    wanted = q * np.sqrt(models * (models + 1) / (6 * 14))
    assert critical_difference(models, 14, level=level) == pytest.approx(wanted, abs=1e-3)


def test_cliques_are_the_bars_of_the_papers_figure() -> None:
    found = friedman(1 - AUC)
    assert found.critical_difference == pytest.approx(1.25, abs=5e-3)
    assert found.cliques == ((3, 1, 2, 0),)
    # at 90 % the critical difference is 1.12: C4.5 differs from m and from both, and from cf does not
    assert cliques(found.mean_ranks, critical_difference(4, 14, level=90)) == ((3, 1, 2), (2, 0))
    assert cliques([1.0, 5.0, 9.0], 1.0) == ()


def test_datasets_that_not_all_have_are_left_out() -> None:
    values = np.hstack([1 - AUC, [[0.1], [np.nan], [0.2], [0.3]]])
    assert friedman(values).n_datasets == 14
    assert friedman(values).mean_ranks == pytest.approx(friedman(1 - AUC).mean_ranks)


def test_models_that_tie_everywhere_are_alike() -> None:
    found = friedman(np.ones((3, 5)))
    assert (found.statistic, found.p_value, found.cliques) == (0.0, 1.0, ((0, 1, 2),))


@pytest.mark.parametrize("values", [np.ones((1, 5)), np.ones((3, 1)), np.full((2, 4), np.nan)])
def test_too_few_of_either_are_refused(values: np.ndarray) -> None:
    with pytest.raises(DataError, match="at least two models and two datasets"):
        friedman(values)


def test_levels_and_shapes_are_checked() -> None:
    with pytest.raises(ParameterError, match="level"):
        friedman(AUC, level=100)
    with pytest.raises(ParameterError, match="must have shape"):
        friedman(AUC[0])
