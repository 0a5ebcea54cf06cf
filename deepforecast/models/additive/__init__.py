"""Sums of a trend, seasons, holidays and effects: the Prophet family."""
