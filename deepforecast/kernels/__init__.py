"""Compiled numerics of the statistical models; import lazily, as each module imports numba."""
