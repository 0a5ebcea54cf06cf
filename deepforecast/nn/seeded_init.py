"""Seeded initialisation of weights without touching torch's global generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

RANDOM_FUNCTIONS = frozenset({
    "uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_",
    "orthogonal_", "sparse_", "exponential_", "geometric_", "log_normal_", "cauchy_", "random_", "bernoulli_", "bernoulli",
    "multinomial", "normal", "poisson", "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like",
})  # fmt: skip
"""Functions of torch that take a generator."""


class SeededInit(TorchFunctionMode):
    """Context in which torch's random numbers in this thread are drawn from a generator of its own.

    They equal those of torch's global generator after `torch.manual_seed(seed)`. On the device
    "meta", on which nothing is drawn, the context has no effect.

    Parameters
    ----------
    seed : int

    Examples
    --------
    >>> before = torch.get_rng_state()
    >>> with SeededInit(3):
    ...     drawn = torch.nn.Linear(2, 2).weight
    >>> bool(torch.equal(before, torch.get_rng_state()))
    True
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator("cpu").manual_seed(seed)
        self.on_cpu = torch.get_default_device().type == "cpu"

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch, with this context's generator if it draws random numbers."""
        keywords = kwargs or {}
        if (
            self.on_cpu
            and _function_name(func) in RANDOM_FUNCTIONS
            and keywords.get("generator") is None
        ):
            keywords = {**keywords, "generator": self.generator}
        return func(*args, **keywords)


def _function_name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", "")
