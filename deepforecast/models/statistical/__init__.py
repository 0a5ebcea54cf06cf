"""Classical models of each series alone: exponential smoothing, Theta, ARIMA, decomposition, intermittent demand."""
