"""Data frames to arrays and back: columns, calendars, panels, checks."""

__all__: list[str] = []  # the public names are in `deepforecast`
