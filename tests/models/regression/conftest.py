"""The libraries of trees are loaded once, by the rule that their idle threads sleep."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from deepforecast.core.threads import passive_waiting

for name in ("sklearn.ensemble", "lightgbm"):
    if find_spec(name.partition(".")[0]) is not None:
        with passive_waiting(name):
            import_module(name)
