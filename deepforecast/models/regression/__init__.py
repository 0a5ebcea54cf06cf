"""Regressors on features of the past, of the calendar and of columns known ahead: one for all series."""
