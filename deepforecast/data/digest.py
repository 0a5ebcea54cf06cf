"""A panel in a few letters: the same for the same data."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from deepforecast.data.panel import Panel


def digest(panel: Panel) -> str:
    """A sum over all ids, stamps and values of a panel, and the names and categories of its covariates.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=9), "y": range(9)})
    >>> digest(Panel.from_frame(frame)) == digest(Panel.from_frame(frame.sample(frac=1)))
    True
    """
    ids = [] if panel.series.ids is None else panel.series.ids.to_list()
    columns = [(name, one) for held in (panel.covariates, panel.static) for name, one in sorted(held.items())]
    said = repr((ids, panel.series.calendar.step, [(name, one.categories) for name, one in columns]))
    arrays = [panel.y, panel.indptr, panel.start, *(one.values for _, one in columns)]
    parts = [sha256(np.ascontiguousarray(one).tobytes()).digest() for one in arrays]
    return sha256(said.encode("utf-8", "surrogatepass") + b"".join(parts)).hexdigest()[:16]
