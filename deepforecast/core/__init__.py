"""The contract between models and everything else: parameters, capabilities, state, rolling, saving, parallel work."""

__all__: list[str] = []  # what users need has its name in `deepforecast`
