"""The exact distribution of Student's t over several looks at growing data, for a mean of 0.

Let x_1, x_2, … be independent normal differences of mean 0, S_n = Σ x_i, Q_n = Σ x_i², and ρ_n = S_n / √(n Q_n), so
that t_n = ρ_n √(n − 1) / √(1 − ρ_n²). The direction of (x_1 … x_n) is independent of its length, and so is the history
ρ_1 … ρ_n of Q_n, which makes ρ a Markov chain that knows no σ. With R = √Q_n, Z = (S_N − S_n) / √m and W² the rest of
Q_N − Q_n for the m = N − n new differences,

    ρ_N √N = (ρ_n √n R + √m Z) / √(R² + Z² + W²) = cos ψ (ρ_n √n cos φ + √m sin φ),

where sin² ψ ~ Beta((m − 1)/2, (n + 1)/2) and φ in (−π/2, π/2) with density ∝ cos^(n−1) φ are independent. Where
|t| stayed below its bounds so far, the density of ρ is smooth and even: a series of Legendre polynomials on
[−bound, bound], carried from look to look by Gauss quadrature over ψ and φ (as Armitage, McPherson and Rowe 1969 do
for known variances). Errors are below 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial import legendre
from scipy import special, stats

ORDER = 40  # half of the polynomials of a density: it is even
INNER = 14  # points of quadrature over ψ
POINTS, WEIGHTS = (half[ORDER:] for half in legendre.leggauss(2 * ORDER))  # on [0, 1]
ANGLES = {
    True: legendre.leggauss(60),
    False: legendre.leggauss(24),
}  # over φ: for m = 1, where nothing smooths, or more
MAX_NEWTON = 50

Density = Callable[[np.ndarray], np.ndarray]


def correlation(p: float, pairs: int) -> float:
    """The ρ whose two-sided p-value is `p`."""
    t = float(stats.t.isf(p / 2, pairs - 1))
    return t / math.sqrt(pairs - 1 + t * t)


def crossing(sizes: Sequence[int], nominal: Sequence[float]) -> float:
    """The probability that p < `nominal` at any of the looks, each after `sizes` differences."""
    survivors = _Distribution.first(sizes[0], nominal[0])
    for size, p in zip(sizes[1:], nominal[1:]):
        survivors = survivors.after(size, correlation(p, size))
    return 1 - survivors.inside


def spending(sizes: Sequence[int], spent: Sequence[float]) -> tuple[float, ...]:
    """The nominal p-value of each look at which the probability of a crossing up to it is `spent`."""
    survivors, nominal = _Distribution.first(sizes[0], spent[0]), [spent[0]]
    for size, total in zip(sizes[1:], spent[1:]):
        bound = _bound(survivors, size, total, total - (1 - survivors.inside))
        survivors = survivors.after(size, bound)
        nominal.append(2 * float(stats.t.sf(bound * math.sqrt((size - 1) / (1 - bound**2)), size - 1)))
    return tuple(nominal)


def _bound(survivors: _Distribution, size: int, spent: float, now: float) -> float:
    """Newton's iteration from near; the mass inside is concave in the bound, so that from below none overshoots."""
    lowest, highest = correlation(spent, size), survivors.reach(size) * (1 - 1e-6)
    bound = correlation(min(2 * now, spent), size)
    for _ in range(MAX_NEWTON):
        bound = min(max(bound, lowest), highest)
        missing = (1 - spent) - survivors.after(size, bound).inside
        step = missing / (2 * float(survivors.density_at(size, np.array([bound]))[0]))
        bound += step
        if abs(step) < 1e-10:
            break
    return bound


class _Distribution:
    """The density of ρ after `size` differences where nothing has crossed, on [−bound, bound]; `inside` is its mass."""

    def __init__(self, size: int, bound: float, density: Density, inside: float) -> None:
        self.size, self.bound, self.density, self.inside = size, bound, density, inside

    @classmethod
    def first(cls, size: int, p: float) -> _Distribution:
        norm = special.beta(0.5, (size - 1) / 2)
        return cls(size, correlation(p, size), lambda r: (1 - r * r) ** ((size - 3) / 2) / norm, 1 - p)

    def reach(self, size: int) -> float:
        """The largest ρ after `size` differences that a path which has not crossed can come to."""
        return math.sqrt((self.size * self.bound**2 + size - self.size) / size)

    def after(self, size: int, bound: float) -> _Distribution:
        """The same after `size` differences, of which those beyond `bound` cross."""
        bound = min(bound, self.reach(size))
        values = self.density_at(size, bound * POINTS)
        degrees = 2 * np.arange(ORDER)
        polynomials = legendre.legvander(POINTS, 2 * ORDER - 2)[:, ::2]
        series = np.zeros(2 * ORDER - 1)
        series[::2] = (2 * degrees + 1) * (polynomials * (WEIGHTS * values)[:, None]).sum(0)
        inside = 2 * bound * float((WEIGHTS * values).sum())
        return _Distribution(size, bound, lambda r: legendre.legval(r / bound, series), inside)

    def density_at(self, size: int, rho: np.ndarray) -> np.ndarray:
        """The density of ρ after `size` differences at `rho` ≥ 0 [points]."""
        n, m = self.size, size - self.size
        length = math.sqrt(n * self.bound**2 + m)
        sine, weights = _inner(n, m, np.clip(1 - rho**2 * size / length**2, 0, 1)[:, None])
        y = rho[:, None] * math.sqrt(size) / np.sqrt(1 - sine)
        turn, angle = np.arcsin(np.minimum(y / length, 1)), math.atan2(self.bound * math.sqrt(n), math.sqrt(m))
        low, high = turn - angle, np.where(y <= math.sqrt(m), turn + angle, math.pi - turn - angle)
        half = np.maximum(high - low, 0) / 2
        points, point_weights = ANGLES[m == 1]
        phi = ((low + high) / 2)[..., None] + half[..., None] * points
        before = (y[..., None] - math.sqrt(m) * np.sin(phi)) / (math.sqrt(n) * np.cos(phi))  # ρ_n of that ρ_N, ψ, φ
        values = np.cos(phi) ** (n - 2) * self.density(np.clip(before, -self.bound, self.bound))
        along = (values * point_weights).sum(-1) * half * math.sqrt(size / n) / special.beta(0.5, n / 2)
        return (along * weights / np.sqrt(1 - sine)).sum(-1)


def _inner(n: int, m: int, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points sin² ψ and weights [points, INNER] of its Beta density up to `most` [points, 1], beyond which no path
    leads; the integrand vanishes there like a root, which the weights of Jacobi take in."""
    if m == 1:
        return np.zeros_like(most), np.ones_like(most)
    a, b = (n + 1) / 2, (m - 1) / 2
    nodes, weights = special.roots_jacobi(INNER, 0.5, b - 1)
    share = (1 + nodes) / 2
    sine = most * share
    scale = most**b * (1 - sine) ** (a - 1) / np.sqrt(1 - share) / special.beta(a, b)
    return sine, weights / 2 ** (0.5 + b) * scale
