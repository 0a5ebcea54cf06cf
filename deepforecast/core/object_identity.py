"""Identity of functions and objects of a user: settings, equality, and a hash that is the same in every process.

Two of them are the same if they compute the same: their code, constants, closures, attributes and weights are equal.
Installed packages are known by the names of their functions and classes, as their code changes with their version.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import sysconfig
import types
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np

INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
UNUSED_ATTRIBUTES = ("training",)  # of torch modules: a fit sets it
SCALARS = (types.NoneType, bool, str, bytes, complex, types.EllipsisType)
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def is_object(value: Any) -> bool:
    """Whether the value is a function, or an object with state such as a torch module."""
    return callable(value) or hasattr(value, "state_dict")


def read_settings(module: Any) -> dict[str, Any]:
    """The constructor arguments of a torch module: its `settings`, or attributes with the names of the arguments."""
    return dict(module.settings) if hasattr(module, "settings") else constructor_arguments(module)


def constructor_arguments(module: Any) -> dict[str, Any]:
    """The attributes of an object with the names of arguments of its constructor; others are left out."""
    parameters = inspect.signature(type(module)).parameters
    return {name: getattr(module, name) for name in parameters if hasattr(module, name)}


def equal_values(value: Any, other: Any) -> bool:
    """Whether two parameters are equal; functions and objects are if their hashes are. Never raises."""
    if value is other:
        return True
    if is_object(value) and is_object(other):
        return object_hash(value) == object_hash(other)
    try:
        return bool(value == other)
    except Exception:  # e.g. arrays in a dict, or `__eq__` of a user
        return object_hash(value) == object_hash(other)


def text_without_address(value: Any) -> str:
    """The repr of a value without addresses in memory, or the name of its type if its repr raises."""
    try:
        return ADDRESS.sub("", repr(value))
    except Exception:  # user code may raise anything
        return f"{type(value).__name__}(...)"


def object_hash(value: Any) -> str:
    """The hash of a value: of code, constants and closure of a function, of class and attributes of an object.

    >>> object_hash(lambda x: x + 1) == object_hash(lambda x: x + 1), object_hash(1) == object_hash(1.0)
    (True, True)
    >>> object_hash(lambda x: x + 1) == object_hash(lambda x: x + 2)
    False
    """
    return _Hasher().hash(value)


class _Hasher:
    """Hashes of values by their ids; the values are kept, as the id of one that is deleted is used again."""

    def __init__(self) -> None:
        self.hashes: dict[int, tuple[Any, str]] = {}

    def hash(self, value: Any) -> str:
        """The hash of a value, "cycle" inside itself."""
        if id(value) not in self.hashes:
            self.hashes[id(value)] = value, "cycle"
            try:
                parts = self._parts(value)
            except Exception:  # neither plain data nor can it be copied
                parts = ("text", type(value).__qualname__, text_without_address(value))
            self.hashes[id(value)] = value, sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()[:16]
        return self.hashes[id(value)][1]

    def _parts(self, value: Any) -> tuple[Any, ...]:
        """The type of a value and texts and hashes of its parts."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, SCALARS):
            return type(value).__name__, repr(value)
        if isinstance(value, (int, float)):
            return "number", repr(int(value) if value % 1 == 0 else value)  # 1 equals 1.0
        if isinstance(value, (list, tuple)):
            return type(value).__name__, [self.hash(inner) for inner in value]
        if isinstance(value, (set, frozenset)):
            return type(value).__name__, sorted(map(self.hash, value))
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, np.ndarray) or (hasattr(value, "requires_grad") and hasattr(value, "detach")):
            return self._array(value)
        if isinstance(value, (types.FunctionType, types.CodeType, types.MethodType)):
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        return self._object(value)

    def _mapping(self, values: Mapping[Any, Any]) -> tuple[Any, ...]:
        return "mapping", sorted((self.hash(key), self.hash(values[key])) for key in sorted(values, key=repr))

    def _array(self, values: Any) -> tuple[Any, ...]:
        """Values of an array or a tensor, and whether a tensor is trained."""
        is_trained, dtype = bool(getattr(values, "requires_grad", False)), str(values.dtype)
        try:
            array = values if isinstance(values, np.ndarray) else values.detach().numpy(force=True)
        except TypeError:  # NumPy has no bfloat16
            array = values.detach().double().numpy(force=True)
        content: Any = self.hash(array.tolist()) if array.dtype == object else sha256(array.tobytes()).hexdigest()
        return "array", dtype, array.shape, is_trained, content

    def _function(self, value: Any) -> tuple[Any, ...]:
        """Code of a function with the values that it uses, in the order of the code; docstrings are no part of it."""
        if isinstance(value, types.MethodType):
            return "method", self.hash(value.__func__), self.hash(value.__self__)
        if isinstance(value, types.CodeType):
            counts = value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount
            return "code", value.co_code.hex(), counts, value.co_names, [self.hash(const) for const in value.co_consts]
        if _is_installed(value.__module__) and "<" not in value.__qualname__:  # neither a lambda nor a local function
            return "name", f"{value.__module__}.{value.__qualname__}"
        code = value.__code__
        consts = tuple(None if const == value.__doc__ else const for const in code.co_consts)
        closure = [cell.cell_contents for cell in value.__closure__ or ()]
        used = {name: value.__globals__[name] for name in _used_names(code) if name in value.__globals__}
        defaults = value.__defaults__, value.__kwdefaults__
        return "function", [self.hash(part) for part in (code.replace(co_consts=consts), defaults, closure, used)]

    def _class(self, cls: type) -> tuple[Any, ...]:
        """Name of a class, and the code and values of its body unless it is of an installed package."""
        name = f"{cls.__module__}.{cls.__qualname__}"
        if _is_installed(cls.__module__):
            return "name", name
        body: dict[str, Any] = {}
        for key, member in vars(cls).items():
            if isinstance(member, property):
                body[key] = [member.fget, member.fset]
            elif isinstance(member, (staticmethod, classmethod)):
                body[key] = member.__func__
            elif isinstance(member, types.FunctionType) or not key.startswith("__"):
                body[key] = member
        return "class", name, self.hash(body), [self.hash(base) for base in cls.__bases__]

    def _object(self, value: Any) -> tuple[Any, ...]:
        """Class and attributes of an object, as `copy` would copy them."""
        if isinstance(value, types.ModuleType):
            return "name", value.__name__
        reduced = value.__reduce_ex__(2)
        if isinstance(reduced, str):  # a global object, e.g. a function of C
            return "name", str(getattr(value, "__module__", "")), reduced
        constructor, arguments, state, *items = (*reduced, None, None)[:5]
        if hasattr(value, "state_dict") and isinstance(state, dict):
            state = {name: inner for name, inner in state.items() if name not in UNUSED_ATTRIBUTES}
        contents = [None if inner is None else list(inner) for inner in items]
        return "object", [self.hash(part) for part in (type(value), constructor, arguments, state, contents)]


def _used_names(code: types.CodeType) -> set[str]:
    """The names of globals and attributes in a code and in the functions defined in it."""
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*map(_used_names, inner))


@functools.cache
def _is_installed(module_name: str | None) -> bool:
    """Whether a module is of Python, of an installed package or of this library."""
    name = str(module_name)
    root = name.partition(".")[0]
    if root == __name__.partition(".")[0] or root in sys.builtin_module_names:
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and file.startswith(INSTALLED)
