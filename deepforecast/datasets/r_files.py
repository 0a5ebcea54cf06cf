"""Objects of R in the files of its packages (`.rda`), as plain Python: read by `rdata`, an optional dependency."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from deepforecast.errors import DataError, DependencyError, format_value

VECTORS = ("LGL", "INT", "REAL")


def objects(path: Path) -> dict[str, Any]:
    """The objects of a file by name: lists as dicts (or lists, if nameless), vectors as arrays, texts as lists of text.

    A time series is a dict of its values ("x") and the three numbers that R keeps with it ("tsp": first, last, frequency).
    """
    try:
        from rdata.parser import parse_file
    except ImportError as error:
        raise DependencyError(
            f"{path.name} is a file of R, read by the package rdata, which is missing. Run: pip install rdata"
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Unknown file type")  # it would guess
            found = _plain(parse_file(path).object)
    except (UserWarning, ValueError, NotImplementedError, EOFError, IndexError, KeyError) as error:
        raise DataError(f"{path} has to be a file of R (.rda); reading it failed ({format_value(str(error))}). Delete it.") from error
    if not isinstance(found, dict):
        raise DataError(f"{path} has to hold named objects of R; it holds {type(found).__name__}. Delete it.")
    return found


def _plain(given: Any) -> Any:
    kind = given.info.type.name
    if kind == "LIST":  # a chain of pairs: the objects of a file, or what is attached to one
        return _pairs(given)
    attached = _pairs(given.attributes) if given.attributes is not None else {}
    if kind == "STR":
        return [_text(one) for one in given.value]
    if kind == "VEC":
        values = [_plain(one) for one in given.value]
        names = attached.get("names")
        return dict(zip(names, values, strict=True)) if names else values
    if kind in VECTORS:
        return {"x": given.value, "tsp": attached["tsp"]} if "tsp" in attached else given.value
    return None  # functions, environments and the like: no data


def _pairs(given: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while given is not None and given.info.type.name == "LIST":
        found[_symbol(given.tag)] = _plain(given.value[0])
        given = given.value[1]
    return found


def _symbol(tag: Any) -> str:
    tag = tag.referenced_object if tag is not None and tag.info.type.name == "REF" else tag
    return "" if tag is None else _text(tag.value)


def _text(given: Any) -> str:
    raw = given.value
    return raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else str(raw)
