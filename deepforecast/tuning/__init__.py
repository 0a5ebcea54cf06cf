"""Search for hyperparameters: one `tune()` for every family, on rolling cross-validation."""
