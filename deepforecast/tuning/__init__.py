"""Hyperparameter tuning by rolling cross-validation."""
