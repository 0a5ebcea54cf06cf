"""Building blocks of the networks, in torch alone: no data frames and no Lightning."""
