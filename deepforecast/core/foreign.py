"""Objects of scikit-learn in model files: written by skops, read back as nothing but types listed or named by the user.

Skops takes an object apart into a description and arrays; reading it, it builds the types that it is allowed and no others.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepforecast.errors import DeepForecastError, some

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
        from skops import io as skops

        try:
            data = skops.dumps(value)
        except Exception as error:  # whatever an object may raise that is asked for its state
            raise NotTrusted(f"{what} cannot be written by skops: {type(error).__name__}: {error}") from error
        unknown = self._unknown(data)
        if unknown and not self.allow:
            raise NotTrusted(
                f"{what} holds {some(unknown)}, not of the library: such a file is read only by who trusts these types. Say "
                f"save(path, allow_skops=True), and load(path, trusted={unknown!r})"
            )
        return np.frombuffer(data, dtype=np.uint8)

    def revived(self, data: np.ndarray, what: str) -> Any:
        """The object back from its bytes."""
        from skops import io as skops

        raw = np.ascontiguousarray(data, dtype=np.uint8).tobytes()
        _refuse_packed(raw, what)
        unknown = [] if self.allow else [name for name in self._unknown(raw) if name not in self.trusted]
        if unknown:
            raise NotTrusted(f"{what} holds {some(unknown)}; if you trust its origin, say load(path, trusted={unknown!r})")
        return skops.loads(raw, trusted=[*OWN, *(self._unknown(raw) if self.allow else self.trusted)])

    @staticmethod
    def _unknown(data: bytes) -> list[str]:
        from skops import io as skops

        return sorted(set(skops.get_untrusted_types(data=data)) - set(OWN))


def _refuse_packed(raw: bytes, what: str) -> None:
    """No member of the archive is larger than it looks."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        if any(one.compress_type != zipfile.ZIP_STORED for one in members) or sum(one.file_size for one in members) > len(raw):
            raise NotTrusted(f"{what} is compressed, which no file of the library is")
