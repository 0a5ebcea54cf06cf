"""The shapes in signatures of `deepforecast.nn`, checked at every call by jaxtyping and beartype.

The package imports jaxtyping for type checkers only. Here its names are resolved, and functions, methods and constructors of
dataclasses are replaced by checked ones, until the block ends.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, jaxtyped
from torch import Tensor

import deepforecast.nn
from deepforecast.nn.network import State

MODULES = tuple(
    importlib.import_module(entry.name)
    for entry in pkgutil.walk_packages(deepforecast.nn.__path__, "deepforecast.nn.")
)
Member = FunctionType | staticmethod | classmethod | property


@contextmanager
def checked_shapes(*users: ModuleType) -> Iterator[None]:
    """Check shapes in all of `nn`, and where `users` have imported its functions."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, checked in checked_members():
            patch.setattr(owner, name, checked)
        functions = checked_functions()
        for module in (*MODULES, *users):
            for name, value in list(vars(module).items()):
                if isinstance(value, FunctionType) and value in functions:
                    patch.setattr(module, name, functions[value])
        yield


@cache
def checked_functions() -> dict[FunctionType, Callable[..., Any]]:
    """Functions of the modules, and what checks their shapes."""
    functions = [function for module in MODULES for _, function in own_functions(module)]
    return {function: check(function) for function in functions if has_shapes(function)}


@cache
def checked_members() -> list[tuple[type, str, Any]]:
    """Class, name and checked version of the methods and properties with shapes."""
    return [
        (owner, name, check(member) if isinstance(member, FunctionType) else type(member)(check(unwrap(member))))
        for module in MODULES
        for owner, name, member in own_members(module)
        if has_shapes(unwrap(member))
    ]


def own_functions(module: ModuleType) -> list[tuple[str, FunctionType]]:
    """Functions that a module defines."""
    return [
        (name, value)
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    ]


def own_members(module: ModuleType) -> list[tuple[type, str, Member]]:
    """Methods and properties that the classes of a module define, and the constructors of its dataclasses."""
    return [
        (owner, name, member)
        for owner in vars(module).values()
        if inspect.isclass(owner) and owner.__module__ == module.__name__
        for name, member in vars(owner).items()
        if isinstance(member, Member)
        and (not name.startswith("__") or (name == "__init__" and dataclasses.is_dataclass(owner)))
    ]


@cache
def type_checking_names() -> dict[str, Any]:
    """What the modules define below `if TYPE_CHECKING`: jaxtyping's names, and aliases of shapes."""
    names: dict[str, Any] = {"Tensor": Tensor}
    for module in MODULES:
        for node in ast.parse(Path(str(module.__file__)).read_text("utf-8")).body:
            block = ast.unparse(node)
            if block.startswith("if TYPE_CHECKING:\n    from jaxtyping import "):
                lines = [line.strip() for line in block.splitlines()[1:]]
                exec("\n".join(line for line in lines if not line.startswith("from deepforecast.")), names)
    return names


def hints(function: Any) -> dict[str, Any]:
    """The types of arguments and result, resolved."""
    names = inspect.unwrap(function).__globals__ | type_checking_names()
    return get_type_hints(function, globalns=names, include_extras=True)


def has_shapes(function: Any) -> bool:
    return any(is_shaped(hint) for hint in hints(function).values())


def is_shaped(hint: Any) -> bool:
    """Whether a type is a tensor with a shape, or contains one."""
    return (inspect.isclass(hint) and issubclass(hint, AbstractArray)) or any(map(is_shaped, get_args(hint)))


def is_unshaped(hint: Any) -> bool:
    """Whether a type is a tensor without a shape, or contains one; callables and `State`, whose tensors differ, may."""
    if hint == State or get_origin(hint) is get_origin(Callable[[], None]):
        return False
    return hint is Tensor or any(map(is_unshaped, get_args(hint)))


def unshaped(module: ModuleType) -> list[str]:
    """Public functions, methods and fields of a module that take or return a tensor whose shape they do not state."""
    functions = [(name, function) for name, function in own_functions(module) if not name.startswith("_")]
    functions += [
        (f"{owner.__name__}.{name}", unwrap(member))
        for owner, name, member in own_members(module)
        if not owner.__name__.startswith("_") and (name == "__init__" or not name.startswith("_"))
    ]
    return [
        f"{module.__name__}.{name}: {argument}"
        for name, function in functions
        for argument, hint in hints(function).items()
        if is_unshaped(hint)
    ]


def unwrap(member: Member) -> Any:
    """The function behind a method or property."""
    return getattr(member, "fget", None) or getattr(member, "__func__", member)


def check(function: FunctionType) -> Callable[..., Any]:
    """A function that checks the shapes of arguments and result at each call."""
    strings = function.__annotations__
    function.__annotations__ = hints(function)  # read by jaxtyping
    try:
        return jaxtyped(function, typechecker=beartype(conf=BeartypeConf(is_pep484_tower=True)))  # an int is a float
    finally:
        function.__annotations__ = strings
