"""Heads: the loss and the predictive distribution of a network."""
