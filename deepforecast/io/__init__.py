"""A model file: bytes to a manifest and arrays, and back; knows no model."""

__all__: list[str] = []  # what users need has its name in `deepforecast`
