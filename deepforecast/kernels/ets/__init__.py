"""Exponential smoothing in innovations form (Hyndman, Koehler, Ord & Snyder 2008): estimation, filtering, forecasting.

With eps = y - mu the forms with additive and with multiplicative errors move their states in the same way,

    q = l + phi b (or l b^phi)    mu = q + s (or q s) + regressors    u = eps (or eps / s)
    l' = q + alpha u              b' = phi b + beta u (or b^phi + beta u / l)    s' = s + gamma eps (or s + gamma eps / q)

and differ in the likelihood alone, where the error is eps or eps / mu. So few recursions carry all forms: a component that
a form has not stays where it is, at its neutral value with a rate of 0.

lanes, powers     the recursion of 16 series side by side, and backwards for the gradient
likelihood        minus its logarithm, and how it changes with each eps
coordinates       parameters as unconstrained numbers; admissible: the region where old errors are forgotten
starting          where a search begins; estimating: the searches
filtering         one pass over histories; forecasting: means, variances, sample paths
"""
