"""Compiled arithmetic of the classical models: arrays in, arrays out. Import one where it is called: numba comes with it."""
