"""First imports of heavy libraries, which touch warnings filters, the environment and `random`: put back as they were."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unnoticed() -> Iterator[None]:
    """For `import`s inside the block."""
    before, drawn = set(os.environ), random.getstate()
    with warnings.catch_warnings():
        try:
            yield
        finally:
            for name in set(os.environ) - before:
                del os.environ[name]
            random.setstate(drawn)
