"""Neural forecasters."""
