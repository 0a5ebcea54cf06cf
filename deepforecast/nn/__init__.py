"""Building blocks of networks: torch alone, no frames and no Lightning."""
