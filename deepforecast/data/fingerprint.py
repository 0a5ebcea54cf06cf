"""A hash that identifies the contents of a panel."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from deepforecast.data.panel import Panel


def panel_fingerprint(panel: Panel) -> str:
    """Hash of the ids, timestamps, values and categories of a panel.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=9), "y": range(9)})
    >>> panel_fingerprint(Panel.from_frame(frame)) == panel_fingerprint(Panel.from_frame(frame.sample(frac=1)))
    True
    """
    ids = [] if panel.series.ids is None else panel.series.ids.to_list()
    columns = [*sorted(panel.covariates.items()), *sorted(panel.static.items())]
    description = repr((ids, panel.series.calendar.step, [(name, values.categories) for name, values in columns]))
    arrays = [panel.y, panel.indptr, panel.start, *(values.values for _, values in columns)]
    digests = [sha256(np.ascontiguousarray(values).tobytes()).digest() for values in arrays]
    return sha256(description.encode("utf-8", "surrogatepass") + b"".join(digests)).hexdigest()[:16]
