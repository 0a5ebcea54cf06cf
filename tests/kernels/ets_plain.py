"""Exponential smoothing as the book writes it, one series and one step at a time: what the kernels are held against."""

from __future__ import annotations

import numpy as np


def errors_of(y, form, rates, states, offsets=None):
    """One-step-ahead means and errors; a missing value has the error 0. States: level, slope, factors in turn."""
    (alpha, beta, gamma, phi), level, slope = rates, states[0], states[1]
    factors = list(states[2:])
    means, errors = np.empty(len(y)), np.zeros(len(y))
    for t, value in enumerate(y):
        factor = factors.pop(0)
        power = slope**phi if form.trend == 2 else phi * slope if form.trend else 0.0
        base = level * power if form.trend == 2 else level + power
        mean = base * factor if form.season == 2 else base + (factor if form.season else 0.0)
        means[t] = mean + (0.0 if offsets is None else offsets[t])
        miss = 0.0 if np.isnan(value) else value - means[t]
        errors[t] = miss / means[t] if form.error else miss
        up = miss / factor if form.season == 2 else miss
        slope = power + beta * up / (level if form.trend == 2 else 1.0) if form.trend else 0.0
        level = base + alpha * up
        factors.append(factor + gamma * (miss / base if form.season == 2 else miss) if form.season else factor)
    return means, errors


def log_likelihood(y, form, rates, states, offsets=None):
    """Of the values that are there, sigma replaced by its estimate."""
    with np.errstate(all="ignore"):
        means, errors = errors_of(y, form, rates, states, offsets)
        seen = ~np.isnan(y)
        n = seen.sum()
        found = -n / 2 * (np.log(2 * np.pi * np.mean(errors[seen] ** 2)) + 1)
        return found - np.log(np.abs(means[seen])).sum() if form.error else found
