"""Regression models on lags, date features and covariates, trained on all series."""
