"""First imports of heavy libraries, which touch warnings filters, the environment and `random`: put back as they were."""

from __future__ import annotations

import os
import random
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

TRAINING_LOCK = threading.RLock()
"""Torch's own generator, filters and levels belong to the process: who trains holds this, so that of fits in several threads
one learns at a time, as if alone. Who loads or forecasts has no need of it."""


@contextmanager
def quiet_import() -> Iterator[None]:
    """For `import`s inside the block. Where the libraries are there already nothing is touched: another thread may be at work
    under filters of its own."""
    if all(name in sys.modules for name in ("torch", "pytorch_lightning")):
        yield
        return
    environment_names, random_state = set(os.environ), random.getstate()
    with warnings.catch_warnings():
        try:
            yield
        finally:
            for name in set(os.environ) - environment_names:
                del os.environ[name]
            random.setstate(random_state)
