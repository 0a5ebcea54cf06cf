"""Prophet."""
