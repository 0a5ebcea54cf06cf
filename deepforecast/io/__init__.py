"""The file format of models: a manifest and arrays to bytes and back, independent of model classes."""

__all__: list[str] = []  # public names are in `deepforecast`
