"""Objects of scikit-learn in model files: written by skops, read back as nothing but types listed or named by the user.

Skops takes an object apart into a description and arrays; reading it, it builds the types that it is allowed and no others.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepforecast.errors import DeepForecastError, missing_extra, some

OWN: tuple[str, ...] = ()
"""Types that skops does not know to be harmless and that regressors of the library hold."""


class NotTrusted(DeepForecastError):
    """A type that nobody named."""


@dataclass(frozen=True)
class Foreign:
    """What may go into a file (`allow`: objects of any type), and come out of it (`trusted`: their names)."""

    allow: bool = False
    trusted: tuple[str, ...] = ()

    def written(self, value: Any, what: str) -> np.ndarray:
        """An object as bytes."""
        skops = _skops()
        try:
            data = skops.dumps(value)
        except Exception as error:  # whatever an object may raise that is asked for its state
            raise NotTrusted(f"{what} cannot be written by skops: {type(error).__name__}: {error}") from error
        return np.frombuffer(data, dtype=np.uint8)

    def untrusted(self, objects: Iterable[np.ndarray]) -> list[str]:
        """The types in all these objects that must be trusted and are not."""
        found: set[str] = set()
        for data in objects:
            raw = np.ascontiguousarray(data, dtype=np.uint8).tobytes()
            _refuse_packed(raw, "an object of another library")
            found.update(self._unknown(raw))
        return [] if self.allow else sorted(found - set(self.trusted))

    def revived(self, data: np.ndarray, what: str) -> Any:
        """The object back from its bytes."""
        raw = np.ascontiguousarray(data, dtype=np.uint8).tobytes()
        _refuse_packed(raw, what)
        unknown = [] if self.allow else [name for name in self._unknown(raw) if name not in self.trusted]
        if unknown:
            raise NotTrusted(f"{what} holds {some(unknown)}, which must be trusted to be read")
        return _skops().loads(raw, trusted=[*OWN, *(self._unknown(raw) if self.allow else self.trusted)])

    @staticmethod
    def _unknown(data: bytes) -> list[str]:
        return sorted(set(_skops().get_untrusted_types(data=data)) - set(OWN))


def objects(node: Any, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The bytes of every object of another library that a manifest refers to: among parameters, and what was learned."""
    if isinstance(node, list):
        return [data for inner in node for data in objects(inner, arrays)]
    if not isinstance(node, Mapping):
        return []
    own = node.get("object")
    name = own.get("array") if isinstance(own, Mapping) else None
    here = [arrays[name]] if isinstance(name, str) and name in arrays else []
    return here + [data for inner in node.values() for data in objects(inner, arrays)]


def _skops() -> Any:
    try:
        from skops import io
    except ImportError as error:
        raise missing_extra("A file with a regressor of another library", "skops") from error
    return io


def _refuse_packed(raw: bytes, what: str) -> None:
    """No member of the archive is larger than it looks."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        if any(one.compress_type != zipfile.ZIP_STORED for one in members) or sum(one.file_size for one in members) > len(raw):
            raise NotTrusted(f"{what} is compressed, which no file of the library is")
