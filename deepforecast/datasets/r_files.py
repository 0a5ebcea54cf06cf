"""Reading of R data files (`.rda`) with the optional dependency `rdata`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from deepforecast.errors import DataError, DependencyError, format_value

VECTOR_TYPES = ("LGL", "INT", "REAL")


def read_objects(path: Path) -> dict[str, Any]:
    """Read the objects of a file by name, as dicts, lists and arrays.

    A time series is a dict with its values ("x") and its attribute "tsp": first time, last time,
    frequency.
    """
    try:
        from rdata.parser import parse_file
    except ImportError as error:
        raise DependencyError(
            f"Reading the R file {path.name} requires the package rdata, which is not installed.", hint="Run: pip install rdata"
        ) from error
    try:
        with warnings.catch_warnings():
            # rdata would guess the type
            warnings.filterwarnings("error", message="Unknown file type")
            r_objects = _to_python(parse_file(path).object)
    except (UserWarning, ValueError, NotImplementedError, EOFError, IndexError, KeyError) as error:
        raise DataError(
            f"{path} must be an R data file (.rda), but reading it failed ({format_value(str(error))}).",
            hint="Delete the file and load again.",
        ) from error
    if not isinstance(r_objects, dict):
        raise DataError(
            f"{path} must contain named R objects, got {type(r_objects).__name__}.", hint="Delete the file and load again."
        )
    return r_objects


def _to_python(node: Any) -> Any:
    """An R object as Python values: text as a list, named lists as dicts, vectors as arrays; None for other types."""
    node_type = node.info.type.name
    if node_type == "LIST":  # a pairlist: the objects of a file, or the attributes of an object
        return _pairlist(node)
    attached = _pairlist(node.attributes) if node.attributes is not None else {}
    if node_type == "STR":
        return [_decode_text(child) for child in node.value]
    if node_type == "VEC":
        values = [_to_python(child) for child in node.value]
        names = attached.get("names")
        return dict(zip(names, values, strict=True)) if names else values
    if node_type in VECTOR_TYPES:
        return {"x": node.value, "tsp": attached["tsp"]} if "tsp" in attached else node.value
    return None  # functions, environments and others are no data


def _pairlist(node: Any) -> dict[str, Any]:
    """The names and values of an R pairlist, a linked list of (value, rest)."""
    pairs: dict[str, Any] = {}
    while node is not None and node.info.type.name == "LIST":
        pairs[_symbol_name(node.tag)] = _to_python(node.value[0])
        node = node.value[1]
    return pairs


def _symbol_name(tag: Any) -> str:
    tag = tag.referenced_object if tag is not None and tag.info.type.name == "REF" else tag
    return "" if tag is None else _decode_text(tag.value)


def _decode_text(node: Any) -> str:
    raw = node.value
    return raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else str(raw)
