"""Parameters in files: plain values, and functions and torch modules as names that can be imported, settings and weights.

A file names the code, it does not contain it; on loading it is imported only if the user names it in `trusted`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from deepforecast.core.encoding import Arrays, UntrustedTypeError
from deepforecast.core.object_identity import equal_values, read_settings
from deepforecast.core.params import declared_params, format_param
from deepforecast.errors import format_value


def saved_values(model: Any) -> dict[str, Any]:
    """The parameter values of a model that a file stores, see `save_plain` of `param`."""
    values: dict[str, Any] = model.get_params(deep=False)
    params = declared_params(type(model))
    for name, param in params.items():
        if param.save_plain and isinstance(values[name], dict):
            values[name] = {key: value for key, value in values[name].items() if is_plain(value)} or None
    return values


def is_plain(value: Any) -> bool:
    """Whether a value is None, a number, a string, or consists of these."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(inner) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, np.bool_, np.integer, np.floating))


def is_storable(value: Any) -> bool:
    """Whether the value is a function, or an object like a torch module."""
    return inspect.isroutine(value) or (hasattr(value, "state_dict") and not isinstance(value, type))


def import_name(value: Any) -> str:
    """The name "module.name" of a function, or of the class of an object; raises if it cannot be imported by it."""
    target = value if inspect.isroutine(value) else type(value)
    name = f"{target.__module__}.{target.__qualname__}"
    try:
        is_importable = import_object(name) is target
    except UntrustedTypeError:
        is_importable = False
    if not is_importable:
        raise UntrustedTypeError(
            f"{format_value(name)} cannot be imported by this name.",
            hint="Define it at the top level of a module that can be imported",
        )
    return name


def import_object(name: str) -> Any:
    """The function or class "module.name"; raises if there is none."""
    module_name, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UntrustedTypeError(
            f"{format_value(name)} cannot be imported ({error}).", hint="Install or define it as it was when the model was saved"
        ) from error


def split_module(module: Any) -> tuple[dict[str, Any], Arrays]:
    """The settings and the weights of a torch module; raises if they do not make an equal one."""
    try:
        settings = read_settings(module)
        weights = {name: tensor.numpy(force=True) for name, tensor in module.state_dict().items()}
        is_restored = equal_values(build_module(type(module), settings, weights), module)
    except Exception as error:  # user code may raise anything
        raise restore_error(module, f" ({type(error).__name__}: {format_value(str(error), 200)})") from error
    if not is_restored:
        raise restore_error(module)
    return settings, weights


def build_module(cls: type, settings: Mapping[str, Any], weights: Arrays) -> Any:
    """A torch module with these settings and weights; raises ValueError unless they fit."""
    if not isinstance(cls, type):
        raise ValueError("only a class can have settings")
    module: Any = cls(**settings)
    state = module.state_dict()
    if state.keys() != weights.keys():
        raise ValueError("the weights must be those of the module")
    for name, tensor in state.items():  # shares the memory of the module
        if tuple(tensor.shape) != weights[name].shape:
            raise ValueError(f"the weights {format_value(name)} must have the shape {tuple(tensor.shape)}")
        tensor.copy_(tensor.new_tensor(weights[name]))
    return module


def restore_error(module: Any, reason: str = "") -> UntrustedTypeError:
    """The error for a torch module that its settings and weights do not restore."""
    name = type(module).__name__
    settings = f"settings {format_param(module).removeprefix(name)}"
    return UntrustedTypeError(
        f"{name} must be restored by its constructor arguments and weights, got another object from the {settings}{reason}.",
        hint=f"Store each constructor argument of {name} as it is in an attribute of its name, or define a property `settings`, "
        "a dict of these arguments; change no other attributes",
    )
