"""From a frame to arrays and back: columns, calendars, panels, checks."""

__all__: list[str] = []  # what users need has its name in `deepforecast`
