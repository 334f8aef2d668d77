"""What `compare` computes beside statsmodels: Holm's method, paired intervals, signs, variance components, ladders."""

import numpy as np
import pytest

from paddle_tfm.comparison.statistics.components import components
from paddle_tfm.comparison.statistics.holm import holm, holm_levels
from paddle_tfm.comparison.statistics.intervals import mean_interval
from paddle_tfm.comparison.statistics.ladder import slope
from paddle_tfm.comparison.statistics.signs import sign_p

pytestmark = pytest.mark.peers
statsmodels = pytest.importorskip("statsmodels.api")
CLOSE = {"rtol": 1e-9, "atol": 1e-12}


@pytest.mark.parametrize("variants", [1, 2, 6, 15])
def test_holm(variants, rng):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    for _ in range(50):
        p = rng.uniform(size=variants) ** 3
        p[rng.integers(variants)] = p[0]  # with ties
        rejected, adjusted, *_ = multitest.multipletests(p, 0.05, method="holm")
        np.testing.assert_allclose(holm(p), adjusted, **CLOSE)
        assert ((p <= holm_levels(p, 0.05)) == rejected).all()


@pytest.mark.parametrize("pairs", [2, 3, 5, 12])
def test_the_interval_of_a_paired_difference(pairs, rng):
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    for _ in range(20):
        differences = rng.normal(0.5, 1, pairs)
        theirs = weightstats.DescrStatsW(differences)
        np.testing.assert_allclose(mean_interval(list(differences))[1:], theirs.tconfint_mean(0.05), **CLOSE)


def test_signs(rng):
    descriptive = pytest.importorskip("statsmodels.stats.descriptivestats")
    for _ in range(50):
        differences = rng.normal(0.3, 1, rng.integers(2, 20)).round(0)  # some pairs are even
        won, lost = (differences > 0).sum(), (differences < 0).sum()
        if won + lost:
            np.testing.assert_allclose(sign_p(won, lost), descriptive.sign_test(differences)[1], **CLOSE)


@pytest.mark.parametrize("shape", [(2, 30), (5, 8)])
def test_variance_components(shape, rng):
    """From the mean squares of an analysis of variance of main effects."""
    pandas, formula = pytest.importorskip("pandas"), pytest.importorskip("statsmodels.formula.api")
    factors = ("seed", "item")
    table = rng.normal(size=shape) + rng.normal(0, 2.0, (shape[0], 1)) + rng.normal(0, 0.5, shape[1])
    levels = dict(zip(factors, (index.reshape(-1) for index in np.indices(shape))))
    frame = pandas.DataFrame({**levels, "score": table.reshape(-1)})
    model = formula.ols("score ~ " + " + ".join(f"C({factor})" for factor in factors), frame).fit()
    analysis = statsmodels.stats.anova_lm(model)
    squares, error = analysis["mean_sq"], analysis["mean_sq"]["Residual"]
    ours = components(table)
    np.testing.assert_allclose(ours.residual, error / table.size, **CLOSE)
    for factor, found in zip(factors, (ours.of_seeds, ours.of_items)):
        np.testing.assert_allclose(found, max(0.0, squares[f"C({factor})"] - error) / table.size, **CLOSE)


def test_the_line_of_a_ladder(rng):
    for _ in range(20):
        rungs = {compute: rng.normal(np.log2(compute), 3, 3) for compute in (1e9, 4e9, 3e10, 1e11)}
        x = np.log2(np.repeat(list(rungs), 3))
        theirs = statsmodels.OLS(np.concatenate(list(rungs.values())), statsmodels.add_constant(x)).fit()
        ours = slope(rungs)
        np.testing.assert_allclose((ours.intercept, ours.slope), theirs.params, **CLOSE)
        np.testing.assert_allclose((ours.low, ours.high), theirs.conf_int(0.05)[1], **CLOSE)
        for compute in (1e9, 2e10, 3e11):
            at = theirs.get_prediction([[1, np.log2(compute)]]).conf_int(alpha=0.05)[0]
            np.testing.assert_allclose(ours.band(compute), at, **CLOSE)
