"""The recursion with a multiplicative trend, lane after lane: powers do not become vector instructions.

    q = l b^phi    u = eps (or eps / s)    l' = q + alpha u    b' = b^phi + beta u / l
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import bare
from deepforecast.kernels.ets.lanes import BASE, FACTOR, LANES, MISS, PART, PULL, SEEN, SLOPE, TARGET

Floats = NDArray[np.float64]


@bare
def forward_power(trail: Floats, steps: int, width: int, held: Floats, ring: Floats, product: bool) -> None:
    """mu = q + s, or q s. A growth that is not positive makes a lane NaN."""
    for k in range(LANES):
        alpha, beta, gamma, phi = held[k], held[LANES + k], held[2 * LANES + k], held[3 * LANES + k]
        level, growth = held[4 * LANES + k], held[5 * LANES + k]
        place = k
        for t in range(steps):
            at = t * width + k
            seen, factor = trail[at + SEEN * LANES], ring[place]
            grown = growth**phi if growth > 0.0 else np.nan
            base = level * grown
            miss = 0.0
            if seen > 0.0:
                miss = trail[at + TARGET * LANES] - (base * factor if product else base + factor)
            trail[at + MISS * LANES], trail[at + SLOPE * LANES], trail[at + PART * LANES] = miss, growth, level
            trail[at + BASE * LANES], trail[at + FACTOR * LANES] = base, factor
            up = miss / factor if product else miss
            if seen > 0.0:
                growth = grown + beta * up / level
                level = base + alpha * up
                ring[place] = factor + gamma * (miss / base if product else miss)
            else:
                growth, level = grown, base
            place += LANES
            if place >= len(ring):
                place = k


@bare
def backward_power(trail: Floats, steps: int, width: int, held: Floats, pulls: Floats, ring: Floats, product: bool) -> None:
    """The same as `backward_sum` of `lanes`."""
    for k in range(LANES):
        alpha, beta, gamma, phi = held[k], held[LANES + k], held[2 * LANES + k], held[3 * LANES + k]
        by_level, by_growth = 0.0, 0.0
        place = ((steps - 1) * LANES) % len(ring) + k
        for i in range(steps):
            at = (steps - 1 - i) * width + k
            miss, growth, level = trail[at + MISS * LANES], trail[at + SLOPE * LANES], trail[at + PART * LANES]
            base, factor = trail[at + BASE * LANES], trail[at + FACTOR * LANES]
            turn, grown = ring[place], base / level
            over_factor, over_base = (1.0 / factor, 1.0 / base) if product else (1.0, 1.0)
            up = miss * over_factor
            by_up, across = alpha * by_level + beta * by_growth / level, gamma * turn * over_base
            mean = -trail[at + SEEN * LANES] * (trail[at + PULL * LANES] + by_up * over_factor + across)
            trail[at + PULL * LANES] = mean
            pulls[k] += up * by_level
            pulls[LANES + k] += by_growth * up / level
            pulls[2 * LANES + k] += miss * over_base * turn
            if product:
                ring[place] = turn + mean * base - by_up * up * over_factor
                by_base = by_level + mean * factor - across * miss * over_base
            else:
                ring[place] = turn + mean
                by_base = by_level + mean
            by_grown = by_growth + by_base * level
            pulls[3 * LANES + k] += by_grown * grown * math.log(growth)
            by_level = by_base * grown - beta * by_growth * up / (level * level)
            by_growth = by_grown * phi * grown / growth
            place -= LANES
            if place < 0:
                place += len(ring)
        pulls[4 * LANES + k], pulls[5 * LANES + k] = by_level, by_growth
