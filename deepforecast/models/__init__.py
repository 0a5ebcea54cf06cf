"""The models, one file each: import them from `deepforecast`."""

__all__: list[str] = []  # what users need has its name in `deepforecast`
