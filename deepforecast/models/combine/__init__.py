"""Models around other models."""

__all__: list[str] = []  # what users need has its name in `deepforecast`
