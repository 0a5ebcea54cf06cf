"""Hashes of functions and objects: equal for equal code and values, in every process, and different otherwise."""

from __future__ import annotations

import functools
import math
import os
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepforecast.core.object_identity import equal_values, object_hash, text_without_address
from deepforecast.core.params import format_param, identify_param

ROOT = Path(__file__).resolve().parents[2]


def define(source: str) -> Any:
    """The `value` of a module with this source, as after an edit in a notebook."""
    module = types.ModuleType("notebook")
    exec(source, vars(module))
    return module.value


FUNCTION = """
FACTOR = 2
def helper(x):
    return x + 1
def value(x, y=3):
    'The docstring.'
    return FACTOR * helper(x) * sum(y + k for k in {1, 2, 5})
"""
CLASS = """
class Base:
    limit = 2
    def shift(self, x):
        return x + 1
class Loss(Base):
    @property
    def floor(self):
        return 3
    @staticmethod
    def scale(x):
        return 4 * x
    def __init__(self, k):
        super().__init__()
        self._k = k
    def __call__(self, x):
        return self._k * x
value = Loss(5)
"""
CLOSURE = "def make(k):\n    return lambda x: k * x\nvalue = make(2)"


@pytest.mark.parametrize("source", [FUNCTION, CLASS, CLOSURE])
def test_the_same_source_has_the_same_hash(source: str) -> None:
    assert object_hash(define(source)) == object_hash(define("\n\n" + source))
    assert equal_values(define(source), define(source))


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        (FUNCTION, "FACTOR = 2", "FACTOR = 3"),
        (FUNCTION, "x + 1", "x + 2"),
        (FUNCTION, "y=3", "y=4"),
        (FUNCTION, "y + k", "y - k"),
        (FUNCTION, "{1, 2, 5}", "{1, 2, 6}"),
        (CLASS, "limit = 2", "limit = 3"),
        (CLASS, "x + 1", "x + 2"),
        (CLASS, "return 3", "return 4"),
        (CLASS, "4 * x", "5 * x"),
        (CLASS, "Loss(5)", "Loss(6)"),
        (CLASS, "self._k * x", "self._k + x"),
        (CLOSURE, "make(2)", "make(3)"),
        (CLOSURE, "k * x", "k + x"),
    ],
)
def test_an_edit_changes_the_hash(source: str, old: str, new: str) -> None:
    assert source.count(old) == 1
    assert object_hash(define(source)) != object_hash(define(source.replace(old, new)))


def test_a_docstring_is_no_code() -> None:
    assert object_hash(define(FUNCTION)) == object_hash(define(FUNCTION.replace("The docstring.", "Another one.")))


class Recursive:
    """An object that contains itself, and values of many types."""

    def __init__(self, level: float) -> None:
        self.itself = self
        self.values = {"array": np.array([level, np.nan]), "objects": np.array([level, "a"], dtype=object), "set": {*"abcdefgh", level}}
        self.method = self.compute
        self.power = functools.partial(pow, level)
        self.path, self.module, self.root = Path("a"), math, math.sqrt

    def compute(self) -> None:
        """Nothing."""


def test_objects_are_their_attributes() -> None:
    assert object_hash(Recursive(1.5)) == object_hash(Recursive(1.5))
    assert object_hash(Recursive(1.5)) != object_hash(Recursive(2.5))
    assert object_hash(np.float64(2)) == object_hash(2) == object_hash(2.0) != object_hash(True)
    assert object_hash({"a": 1, "b": 2}) == object_hash({"b": 2, "a": 1}) != object_hash({"a": 2, "b": 1})
    assert object_hash(math.nan) == object_hash(float("nan")) != object_hash(math.inf)
    assert object_hash(math.sqrt) != object_hash(math.sin)
    assert object_hash(np.zeros(2)) != object_hash(np.zeros(2, dtype=np.float32))


class Opaque:
    """An object that cannot be copied, printed or compared."""

    def __reduce__(self) -> Any:
        raise TypeError("no copy")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = object.__hash__


def test_nothing_raises() -> None:
    for value in (Opaque(), threading.Lock(), object(), (number for number in ())):
        assert equal_values(value, value)
        assert not equal_values(value, 3)
        assert "0x" not in text_without_address(value)
        assert "0x" not in identify_param(value)
        assert len(object_hash(value)) == 16
    assert text_without_address(Opaque()) == format_param(Opaque()) == "Opaque(...)"
    assert equal_values({"a": np.ones(2)}, {"a": np.ones(2)})
    assert not equal_values({"a": np.ones(2)}, {"a": np.zeros(2)})


def test_functions_of_installed_packages_are_their_names() -> None:
    assert object_hash(np.median) != object_hash(np.mean)
    renamed = types.FunctionType((lambda x: x).__code__, {}, "median")
    renamed.__module__, renamed.__qualname__ = "numpy", "median"
    other = types.FunctionType((lambda x: x + 1).__code__, {}, "median")
    other.__module__, other.__qualname__ = "numpy", "median"
    assert object_hash(renamed) == object_hash(other)  # another version of the package
    other.__qualname__ = renamed.__qualname__ = "make.<locals>.median"
    assert object_hash(renamed) != object_hash(other)


def test_hashes_are_the_same_in_every_process() -> None:
    code = (
        "from tests.core.test_object_identity import *\n"
        "print([object_hash(define(source)) for source in (FUNCTION, CLASS, CLOSURE)], object_hash(Recursive(1.5)))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
