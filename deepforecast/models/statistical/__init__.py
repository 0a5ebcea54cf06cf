"""Statistical models: ETS, Theta, ARIMA, decomposition and intermittent demand."""
