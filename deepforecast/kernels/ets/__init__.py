"""Exponential smoothing in innovations state space form: estimation, filtering, forecasting.

Notation: level l, slope b, seasonal state s of period m, forecast mean mu, residual eps = y - mu.
One step of every model of Hyndman et al. (2008), table 2.1, is

    q  = l + phi b        (multiplicative trend: l b^phi)
    mu = q + s            (multiplicative season: q s), plus the effect of regressors
    u  = eps              (multiplicative season: eps / s)
    l' = q + alpha u
    b' = phi b + beta u   (multiplicative trend: b^phi + beta u / l)
    s' = s + gamma eps    (multiplicative season: s + gamma eps / q)

Models with additive and with multiplicative errors share these updates, since eps / mu times mu is
eps; they differ in the likelihood, whose error is eps or eps / mu. A component that a model lacks
has its neutral state (0, or 1 for a multiplicative one) and smoothing parameter 0, so that few
recursions serve all models. "Form" below means one such model, for example ETS(M,Ad,M).

forms               the models as tuples of integers
recursion           recursion and gradient of 16 series at a time; power_trend: multiplicative trend
likelihood          negative log-likelihood and its derivative with respect to eps
coordinates         parameters as unconstrained coordinates; admissible_region: invertibility
initial_states      heuristic initial states; warm_start: where a search starts
optimization        the searches of a group of forms; estimation: all forms of all series
filter              one-step-ahead forecasts; forecasts: means, variances, sample paths

References
----------
Hyndman, Koehler, Ord & Snyder (2008), *Forecasting with Exponential Smoothing*, Springer,
doi:10.1007/978-3-540-71918-2.
"""
