"""ARIMA: exact likelihood with gradient, estimation, Kalman filter for missing values, forecasts.

The model (Box & Jenkins) of a series y with regressors x and lag operator B is

    phi(B) Phi(B^s) (1 - B)^d (1 - B^s)^D (y_t - x_t' beta) = theta(B) Theta(B^s) e_t,   e_t ~ N(0, sigma^2)

layout              work arrays and names of their rows
polynomials         unconstrained coordinates to the polynomials in B, and gradients back
presample           stationary covariance of the presample state, and its gradient
exact_likelihood    likelihood of complete data; woodbury: its small dense part
kalman_filter       likelihood with missing values; adjoint: its gradient
hannan_rissanen     starting values
estimation          maximum likelihood, the entry point of models
state               filtered state after a history, and forecasts from it
"""
