"""The same data, seed and versions give the same bits, in any process, after any other work."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.everything import Said, elsewhere, everything, same, settled


@pytest.fixture(scope="module")
def once() -> Said:
    return everything()


@pytest.mark.slow  # as D2 below, but without other work between
def test_same_bits_again_in_this_process(once: Said) -> None:
    """Forecasts, windows, paths, boards, the bytes of model files and of the report's page."""
    same(everything(), once)


@pytest.mark.slow
def test_same_bits_in_another_process() -> None:
    same(elsewhere(), settled())


@pytest.mark.slow
def test_same_bits_in_the_process_that_compiles_the_kernels(tmp_path: Path) -> None:
    compiling = elsewhere(NUMBA_CACHE_DIR=str(tmp_path))
    assert list(tmp_path.rglob("*.nbi"))  # or nothing would have been kept
    same(compiling, elsewhere(NUMBA_CACHE_DIR=str(tmp_path)))


def test_same_bits_after_other_random_draws_and_rng_untouched(once: Said) -> None:
    chance, drawn = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        random.seed(12)
        np.random.seed(12)  # noqa: NPY002
        np.linalg.svd(np.random.normal(size=(50, 50)))  # noqa: NPY002
        before = random.getstate(), str(np.random.get_state())  # noqa: NPY002
        same(everything(), once)
        assert (random.getstate(), str(np.random.get_state())) == before  # noqa: NPY002
    finally:
        random.setstate(chance)
        np.random.set_state(drawn)  # noqa: NPY002


@pytest.mark.slow
def test_same_bits_after_torch_draws_and_its_rng_untouched() -> None:
    """In a process of its own: torch stays out of this one."""
    code = """
import torch
torch.manual_seed(12)
layer = torch.nn.Linear(20, 20)
layer(torch.rand(50, 20)).sum().backward()
before = torch.get_rng_state()
import atexit
atexit.register(lambda: torch.equal(before, torch.get_rng_state()) or print("chance was touched"))
"""
    same(elsewhere(code), settled())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_same_bits_under_any_hash_seed(seed: int) -> None:
    """Sets and the like come in another order under each seed: no result and no message may follow it."""
    same(elsewhere(PYTHONHASHSEED=str(seed)), settled())
