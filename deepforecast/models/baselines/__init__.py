"""Forecasts by a rule of thumb, with analytic intervals: the yardsticks of every other model."""

__all__: list[str] = []  # what users need has its name in `deepforecast`
