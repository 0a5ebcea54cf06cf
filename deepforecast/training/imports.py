"""Imports of heavy libraries without side effects on warning filters, environment and `random`."""

from __future__ import annotations

import os
import random
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

TRAINING_LOCK = threading.RLock()
"""Lock held while training.

torch's generator, warning filters and log levels belong to the process, so that only one thread
trains at a time. Loading and forecasting do not need it.
"""


@contextmanager
def quiet_import() -> Iterator[None]:
    """Restore warning filters, environment and `random` after imports inside the block.

    If torch and Lightning are imported already, nothing is restored, as other threads may have
    changed these in the meantime.
    """
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
