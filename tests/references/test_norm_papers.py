"""Running statistics and gradients of norms that have them, and what a norm adds to the loss, against their papers."""

import numpy as np
import paddle
import paper_equations as paper
import pytest
from paper_cases import D_MODEL, ENCODER, LENGTH, MAX_LENGTH, VALID, positions

from paddle_tfm.protocols import Tap

GIVEN = {"d_model": D_MODEL, "site": ENCODER, "max_length": MAX_LENGTH}


class Power:
    """2003.07845, of one channel at a time over the real tokens, the gradient by hand.

    PN-V, the batch's own ψ: ∂L/∂x = (∂L/∂x̂ − x̂ · mean(∂L/∂x̂ · x̂)) / ψ. PN, with the running ψ and ν of before:
    X̃' = ∂L/∂x̂ − ν x̂, ∂L/∂x = X̃' / ψ; then ψ² ← α ψ² + (1 − α) ψ_B² and ν ← ν (1 − (1 − α) Γ) + (1 − α) Λ, Γ =
    mean(x̂²) and Λ = mean(∂L/∂x̂ · x̂). ε stands beside ψ² as in the authors' released code.
    """

    def __init__(self, width, eps, alpha_forward, alpha_backward):
        self.eps, self.forward, self.backward = eps, alpha_forward, alpha_backward
        self.square, self.nu = np.ones(width), np.zeros(width)

    def step(self, x, g, w, warming_up):
        """Real tokens x [n, C] and ∂L/∂y → y, ∂L/∂x, ∂L/∂weight and ∂L/∂bias."""
        y, dx, dweight, dbias = np.empty_like(x), np.empty_like(x), np.empty(x.shape[1]), np.empty(x.shape[1])
        for c in range(x.shape[1]):
            own = sum(v * v for v in x[:, c]) / len(x)
            psi = np.sqrt((own if warming_up else self.square[c]) + self.eps)
            normal = x[:, c] / psi
            y[:, c] = w["weight"][c] * normal + w["bias"][c]
            gradient = w["weight"][c] * g[:, c]
            gamma, along = (normal**2).mean(), (gradient * normal).mean()
            dx[:, c] = (gradient - normal * (along if warming_up else self.nu[c])) / psi
            dweight[c], dbias[c] = (g[:, c] * normal).sum(), g[:, c].sum()
            self.square[c] = self.forward * self.square[c] + (1 - self.forward) * own
            self.nu[c] = self.nu[c] * (1 - (1 - self.backward) * gamma) + (1 - self.backward) * along
        return y, dx, dweight, dbias

    def evaluate(self, x, w):
        return w["weight"] * x / np.sqrt(self.square + self.eps) + w["bias"]


def inputs(rng, shift=3.0):
    """Channels with means and spreads of their own, and padding that holds something else altogether."""
    x = rng.normal(size=(3, LENGTH, D_MODEL)) * rng.uniform(0.5, 2, size=D_MODEL) + shift * rng.normal(size=D_MODEL)
    return np.where(VALID[..., None], x, 50 * x + 7)


# ------------------------------------------------------------------------------------------------------ batch norms


def test_running_statistics_are_those_of_the_papers_population(build, precision, rng):
    """1502.03167, algorithm 2: of the real tokens of each batch, the variance unbiased; what they make of a token is the
    reference's."""
    norm, _ = build("norm", {"name": "batch", "momentum": 0.25}, **GIVEN)
    mean, variance = np.zeros(D_MODEL), np.ones(D_MODEL)
    norm.train()
    for _ in range(3):
        x = inputs(rng)
        norm(precision.tensor(x), precision.tensor(VALID), positions(LENGTH))
        batch_mean, batch_variance, m = paper.batch_statistics(x, VALID)
        mean = paper.moving(mean, batch_mean, 0.25)
        variance = paper.moving(variance, paper.unbiased(batch_variance, m), 0.25)
    np.testing.assert_allclose(norm.running_mean.numpy(), mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(norm.running_variance.numpy(), variance, rtol=1e-5)


def test_those_of_a_position_move_where_two_sentences_have_a_token(build, precision, rng):
    norm, _ = build("norm", {"name": "batch_per_position", "momentum": 0.25}, **GIVEN)
    mean, variance = np.zeros((MAX_LENGTH, D_MODEL)), np.ones((MAX_LENGTH, D_MODEL))
    norm.train()
    for _ in range(2):
        x = inputs(rng)
        norm(precision.tensor(x), precision.tensor(VALID), positions(LENGTH) + 4)
        for t in range(4):  # positions at which two sentences or more are real
            batch_mean, batch_variance, m = paper.batch_statistics(x[:, t : t + 1], VALID[:, t : t + 1])
            mean[4 + t] = paper.moving(mean[4 + t], batch_mean, 0.25)
            variance[4 + t] = paper.moving(variance[4 + t], paper.unbiased(batch_variance, m), 0.25)
    np.testing.assert_allclose(norm.running_mean.numpy(), mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(norm.running_variance.numpy(), variance, rtol=1e-5)


@pytest.mark.parametrize("weights", [{}, {"mean_weight": 60.0, "variance_weight": 0.0}], ids=["pre-norm", "post-norm"])
def test_regularized_batch_norm_is_the_authors(build, precision, rng, weights):
    """wjxts/RegularizedBN, `MaskBatchNorm3d.loss_diff`: penalty_mean · Σ (running − batch mean)² + penalty_var · Σ
    |running − batch variance|, of the running values after the batch's update with momentum 0.05; the gradient, by hand,
    is that of the batch's mean and variance alone. 0.1 and 0.01 are its README's."""
    norm, w = build("norm", {"name": "regularized_batch", **weights}, **GIVEN)
    of_mean, of_variance = weights.get("mean_weight", 0.1), weights.get("variance_weight", 0.01)
    mean, variance = np.zeros(D_MODEL), np.ones(D_MODEL)
    norm.train()
    for _ in range(2):
        x, tap = inputs(rng), Tap()
        batch_mean, batch_variance, n = paper.batch_statistics(x, VALID)
        given = precision.tensor(x)
        given.stop_gradient = False
        with tap.of_this_pass():
            ours = norm(given, precision.tensor(VALID), positions(LENGTH))
        expected = paper.batch_norm(x, batch_mean, batch_variance, w["weight"], w["bias"], 1e-5)
        precision.same(ours.numpy()[VALID], expected[VALID])
        mean = paper.moving(mean, batch_mean, 0.05)
        variance = paper.moving(variance, paper.unbiased(batch_variance, n), 0.05)
        penalty = of_mean * ((mean - batch_mean) ** 2).sum() + of_variance * np.abs(variance - batch_variance).sum()
        assert list(tap.aux_losses) == ["regularized_batch"]
        precision.same(tap.aux_losses["regularized_batch"], penalty / n)
        dx = paddle.grad(tap.aux_losses["regularized_batch"], given)[0].numpy()
        to_mean = 2 * of_mean * (batch_mean - mean)
        to_variance = of_variance * np.sign(batch_variance - variance) * 2 * (x - batch_mean)
        np.testing.assert_allclose(dx[VALID], ((to_mean + to_variance) / n**2)[VALID], rtol=1e-4, atol=1e-7)
        assert not dx[~VALID].any()
    norm.eval()
    with tap.of_this_pass():
        norm(given, precision.tensor(VALID), positions(LENGTH))
    precision.same(tap.aux_losses["regularized_batch"], penalty / n)  # evaluation adds nothing


# ------------------------------------------------------------------------------------------------------- power norm


@pytest.mark.parametrize("warmup", [0, 2, 9])
@pytest.mark.parametrize("eps, alphas", [(1e-5, (0.9, 0.9)), (0.3, (0.75, 0.6))])
def test_power_norm_is_the_papers(build, precision, rng, warmup, eps, alphas):
    """Five passes there and back, of which the first `warmup` are PN-V; then evaluation."""
    rates = {"momentum": 1 - alphas[0], "gradient_momentum": 1 - alphas[1]}
    norm, w = build("norm", {"name": "power", "warmup": warmup, "eps": eps, **rates}, **GIVEN)
    reference = Power(D_MODEL, eps, *alphas)
    norm.train()
    for step in range(5):
        x, g = inputs(rng, shift=0.5), rng.normal(size=(3, LENGTH, D_MODEL))
        taken = [precision.tensor(x), norm.weight, norm.bias]
        taken[0].stop_gradient = False
        y = norm(taken[0], precision.tensor(VALID), positions(LENGTH))
        dx, dweight, dbias = paddle.grad(y, taken, precision.tensor(g))
        expected = reference.step(x[VALID], g[VALID], w, warming_up=step < warmup)
        for ours, theirs in zip((y.numpy()[VALID], dx.numpy()[VALID], dweight, dbias), expected):
            precision.same(ours, theirs)
        assert not dx.numpy()[~VALID].any() and not y.numpy()[~VALID].any()
        precision.same(norm.running_square, reference.square)
        precision.same(norm.running_gradient, reference.nu)
    norm.eval()
    x = inputs(rng)
    ours = norm(precision.tensor(x), precision.tensor(VALID), positions(LENGTH))
    precision.same(ours.numpy()[VALID], reference.evaluate(x, w)[VALID])
    precision.same(norm.running_square, reference.square)
