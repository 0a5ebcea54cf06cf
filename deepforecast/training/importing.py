"""First imports of the heavy libraries, which set warnings filters and environment variables: put back as they were."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unnoticed() -> Iterator[None]:
    """For `import`s inside the block."""
    before = set(os.environ)
    with warnings.catch_warnings():
        try:
            yield
        finally:
            for name in set(os.environ) - before:
                del os.environ[name]
