"""Functions and torch modules that a user passes as parameters, as names that can be imported, settings and weights.

A file names the code, it does not contain it; on loading it is imported only if the user names it in `trusted`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from deepforecast.core.encoding import Arrays, UntrustedTypeError
from deepforecast.core.params import equal_params, read_settings
from deepforecast.errors import format_value


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
    settings = read_settings(module)
    try:
        weights = {name: tensor.numpy(force=True) for name, tensor in module.state_dict().items()}
        is_restored = equal_params({"module": build_module(type(module), settings, weights)}, {"module": module})
    except Exception as error:  # user code may raise anything
        raise _rebuild_error(module, f" ({type(error).__name__}: {format_value(str(error), 200)})") from error
    if not is_restored:
        raise _rebuild_error(module)
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


def _rebuild_error(module: Any, reason: str = "") -> UntrustedTypeError:
    name = type(module).__name__
    return UntrustedTypeError(
        f"{name} must be restored by its settings and weights, got another object{reason}.",
        hint=f"Store each constructor argument of {name} in an attribute of its name, or define a property `settings`, a dict",
    )
