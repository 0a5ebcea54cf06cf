"""The base class of models: parameters, capabilities, state, backtests, model files and parallel execution."""

__all__: list[str] = []  # public names are in `deepforecast`
