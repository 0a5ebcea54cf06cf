"""ARIMA: exact likelihood with its gradient, estimation, the filter that steps over missing values, forecasts.

The model of a series y with regressors x and lag operator B is

    phi(B) Phi(B^s) (1 - B)^d (1 - B^s)^D (y_t - x_t' beta) = theta(B) Theta(B^s) e_t,   e_t ~ N(0, sigma^2)

polynomials.py  from unconstrained coordinates to the two polynomials in B, and gradients back
presample.py    the covariance of what the past before the first row still says, and its gradient
exact.py        likelihood of a complete stretch: three sparse recursions and a small dense part
holes.py        likelihood where values are missing: a Kalman filter and its reverse
fitting.py      the loop around them; the entries that models call
state.py        the filter's state after a history, forecasts from it
"""
