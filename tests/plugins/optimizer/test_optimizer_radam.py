"""RAdam: from which step on the variance is known, and the factor that grows to 1."""

import paddle_tfm  # noqa: F401  before Paddle: it sets the environment that Paddle reads

# isort: split
from itertools import pairwise

import pytest

from paddle_tfm_plugins.optimizer.radam import rectification


@pytest.mark.parametrize(("beta2", "first"), [(0.98, 5), (0.999, 5), (0.7, 6)])
def test_the_variance_is_tractable_from_the_step_of_the_formula(beta2, first):
    """ρ_t > 4 for the first time. By hand: β2 0.98 has ρ_4 3.95 and ρ_5 4.92; β2 0.7 has ρ_5 3.65 and ρ_6 4.07."""
    assert [rectification(beta2, t) is None for t in range(1, first)] == [True] * (first - 1)
    assert rectification(beta2, first) is not None


def test_the_rectification_rises_from_near_0_to_1():
    factors = [rectification(0.98, t) for t in range(5, 2000)]
    assert 0 < factors[0] < 0.1 and factors[-1] == pytest.approx(1.0, abs=1e-6)
    assert all(a < b or b == pytest.approx(1.0) for a, b in pairwise(factors))


def test_without_memory_of_squares_it_stays_momentum():
    """ρ_∞ = 4 for β2 = 0.6: the variance is never tractable."""
    assert all(rectification(0.6, t) is None for t in range(1, 500))
