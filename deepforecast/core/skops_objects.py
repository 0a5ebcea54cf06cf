"""Objects of scikit-learn in model files, stored with skops, which creates only trusted types on loading."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepforecast.errors import DeepForecastError, format_list, missing_extra_error

TRUSTED_TYPES: tuple[str, ...] = ()
"""Types in regressors of this library that skops does not trust by default."""


class UntrustedTypeError(DeepForecastError):
    """An object contains a type that is not trusted, or cannot be stored."""


@dataclass(frozen=True)
class SkopsSerializer:
    """Serializes objects with skops; `allow_any` permits all types on saving, `trusted` names those permitted on loading."""

    allow_any: bool = False
    trusted: tuple[str, ...] = ()

    def serialize(self, value: Any, description: str) -> np.ndarray:
        """Serialize an object to bytes."""
        skops = _import_skops()
        try:
            content = skops.dumps(value)
        except Exception as error:  # __getstate__ may raise anything
            raise UntrustedTypeError(
                f"{description} cannot be saved with skops ({type(error).__name__}: {error}). Use a regressor that skops "
                "supports, such as one of scikit-learn"
            ) from error
        return np.frombuffer(content, dtype=np.uint8)

    def untrusted_types(self, arrays: Iterable[np.ndarray]) -> list[str]:
        """The sorted names of the types in these objects that are not trusted; none with `allow_any`."""
        unknown: set[str] = set()
        for array in arrays:
            raw = np.ascontiguousarray(array, dtype=np.uint8).tobytes()
            _refuse_compressed(raw, "an object of another library")
            unknown.update(self._unknown_types(raw))
        return [] if self.allow_any else sorted(unknown - set(self.trusted))

    def deserialize(self, array: np.ndarray, description: str) -> Any:
        """Deserialize an object from bytes."""
        raw = np.ascontiguousarray(array, dtype=np.uint8).tobytes()
        _refuse_compressed(raw, description)
        unknown = [] if self.allow_any else [name for name in self._unknown_types(raw) if name not in self.trusted]
        if unknown:
            raise UntrustedTypeError(f"{description} contains {format_list(unknown)}, which must be trusted")
        return _import_skops().loads(
            raw, trusted=[*TRUSTED_TYPES, *(self._unknown_types(raw) if self.allow_any else self.trusted)]
        )

    @staticmethod
    def _unknown_types(content: bytes) -> list[str]:
        return sorted(set(_import_skops().get_untrusted_types(data=content)) - set(TRUSTED_TYPES))


def stored_objects(node: Any, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The bytes of all objects of other libraries to which a manifest, or a part of it, refers."""
    if isinstance(node, list):
        return [stored_bytes for inner in node for stored_bytes in stored_objects(inner, arrays)]
    if not isinstance(node, Mapping):
        return []
    reference = node.get("object")
    name = reference.get("array") if isinstance(reference, Mapping) else None
    own_bytes = [arrays[name]] if isinstance(name, str) and name in arrays else []
    return own_bytes + [stored_bytes for inner in node.values() for stored_bytes in stored_objects(inner, arrays)]


def _import_skops() -> Any:
    """The module skops.io; raises `DependencyError` if it is not installed."""
    try:
        from skops import io
    except ImportError as error:
        raise missing_extra_error("A file with a regressor of another library", "skops") from error
    return io


def _refuse_compressed(raw: bytes, description: str) -> None:
    """Raise if a member of the archive is compressed, as it could expand to any size."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        is_compressed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
        if is_compressed or sum(member.file_size for member in members) > len(raw):
            raise UntrustedTypeError(f"{description} must not be compressed, as files of this library are not")
