"""Simple benchmark methods with analytic prediction intervals."""

__all__: list[str] = []  # public names are in `deepforecast`
