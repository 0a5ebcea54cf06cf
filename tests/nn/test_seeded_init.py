"""First weights by a seed, torch's own generator left alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from deepforecast.nn.layers import RANDOM_FUNCTIONS, SeededInit

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
