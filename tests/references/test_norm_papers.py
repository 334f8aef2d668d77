"""Every norm against its paper's equations; the batch norms in training, their running statistics, and at evaluation."""

import numpy as np
import paper_equations as paper
import pytest
from paper_cases import D_MODEL, ENCODER, LENGTH, MAX_LENGTH, VALID, positions

GIVEN = {"d_model": D_MODEL, "site": ENCODER, "max_length": MAX_LENGTH}


def layer(x, w, eps):
    return paper.layer_norm(x, w["weight"], w.get("bias"), eps)


def layer_std(x, w, eps):
    return paper.layer_norm_std(x, w["weight"], w["bias"], eps)


def rms(x, w, eps):
    return paper.rms_norm(x, w["weight"], eps)


TOKEN_WISE = {"layer": layer, "layer_std": layer_std, "rms": rms}
REFERENCES = {**TOKEN_WISE, "batch": paper.batch_norm, "batch_per_position": paper.batch_norm, "none": "composition"}


def inputs(rng, shift=3.0):
    """Channels with means and spreads of their own, and padding that holds something else altogether."""
    x = rng.normal(size=(3, LENGTH, D_MODEL)) * rng.uniform(0.5, 2, size=D_MODEL) + shift * rng.normal(size=D_MODEL)
    return np.where(VALID[..., None], x, 50 * x + 7)


def state(norm):
    return {name: value.numpy().astype(np.float64) for name, value in norm.named_buffers()}


@pytest.mark.parametrize("eps, scale", [(1e-5, 1.0), (1e-3, 0.02)])  # an ε that weighs tells where it stands
@pytest.mark.parametrize("name", TOKEN_WISE)
def test_token_wise_norm_is_the_papers(build, precision, rng, name, eps, scale):
    norm, w = build("norm", {"name": name, "eps": eps}, **GIVEN)
    x = scale * inputs(rng)
    for mode in (norm.train, norm.eval):
        mode()
        ours = norm(precision.tensor(x), precision.tensor(VALID), positions(LENGTH))
        precision.same(ours, TOKEN_WISE[name](x, w, eps))


@pytest.mark.parametrize("name, eps", [("layer", 1e-5), ("layer_std", 1e-6), ("rms", 1e-6)])
def test_default_epsilons(build, precision, rng, name, eps):
    norm, w = build("norm", name, **GIVEN)
    x = 1e-3 * rng.normal(size=(2, 3, D_MODEL))
    precision.same(norm(precision.tensor(x)), TOKEN_WISE[name](x, w, eps))


def test_layer_norm_without_its_bias(build, precision, rng):
    norm, w = build("norm", {"name": "layer", "bias": False}, **GIVEN)
    assert set(w) == {"weight"}
    x = inputs(rng)
    precision.same(norm(precision.tensor(x)), layer(x, w, 1e-5))


def test_none_is_the_identity(build, precision, rng):
    norm, w = build("norm", "none", **GIVEN)
    x = inputs(rng)
    assert not w
    precision.same(norm(precision.tensor(x), precision.tensor(VALID), positions(LENGTH)), precision.tensor(x).numpy())


# ------------------------------------------------------------------------------------------------------ batch norms


@pytest.mark.parametrize("eps, momentum", [(1e-5, 0.1), (0.3, 0.25)])
def test_batch_norm_is_the_papers(build, precision, rng, eps, momentum):
    """Algorithm 1 over the real tokens while training, algorithm 2 with running statistics at evaluation."""
    norm, w = build("norm", {"name": "batch", "eps": eps, "momentum": momentum}, **GIVEN)
    mean, variance = np.zeros(D_MODEL), np.ones(D_MODEL)
    norm.train()
    for _ in range(3):
        x = inputs(rng)
        batch_mean, batch_variance, m = paper.batch_statistics(x, VALID)
        ours = norm(precision.tensor(x), precision.tensor(VALID), positions(LENGTH))
        expected = paper.batch_norm(x, batch_mean, batch_variance, w["weight"], w["bias"], eps)
        precision.same(ours.numpy()[VALID], expected[VALID])
        mean = paper.moving(mean, batch_mean, momentum)
        variance = paper.moving(variance, paper.unbiased(batch_variance, m), momentum)
    norm.eval()
    running = state(norm)
    np.testing.assert_allclose(running["running_mean"], mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(running["running_variance"], variance, rtol=1e-5)
    x = inputs(rng)
    ours = norm(precision.tensor(x), precision.tensor(VALID), positions(LENGTH))
    expected = paper.batch_norm(x, mean, variance, w["weight"], w["bias"], eps)
    np.testing.assert_allclose(ours.numpy()[VALID], expected[VALID], rtol=1e-5, atol=1e-5)
    after = state(norm)
    assert all((after[name] == running[name]).all() for name in running)


@pytest.mark.parametrize("first", [0, 4], ids=["from-0", "from-4"])
def test_batch_norm_per_position_is_the_papers(build, precision, rng, first):
    """Algorithm 1 with statistics for each time step (1603.09025, section 3), over the sentences that have a token there.

    Its running statistics move for those positions only.
    """
    eps, momentum = 1e-5, 0.1
    norm, w = build("norm", {"name": "batch_per_position", "eps": eps, "momentum": momentum}, **GIVEN)
    at = positions(LENGTH) + first
    mean, variance = np.zeros((MAX_LENGTH, D_MODEL)), np.ones((MAX_LENGTH, D_MODEL))
    norm.train()
    for _ in range(2):
        x = inputs(rng)
        ours = norm(precision.tensor(x), precision.tensor(VALID), at).numpy()
        for t in range(4):  # positions at which two sentences or more are real
            batch_mean, batch_variance, m = paper.batch_statistics(x[:, t : t + 1], VALID[:, t : t + 1])
            expected = paper.batch_norm(x[:, t], batch_mean, batch_variance, w["weight"], w["bias"], eps)
            precision.same(ours[:, t][VALID[:, t]], expected[VALID[:, t]])
            mean[first + t] = paper.moving(mean[first + t], batch_mean, momentum)
            variance[first + t] = paper.moving(variance[first + t], paper.unbiased(batch_variance, m), momentum)
    norm.eval()
    seen, running = range(first, first + 4), state(norm)
    never = [p for p in range(MAX_LENGTH) if not first <= p < first + LENGTH]
    np.testing.assert_allclose(running["running_mean"][seen], mean[seen], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(running["running_variance"][seen], variance[seen], rtol=1e-5)
    assert (running["running_mean"][never] == 0).all() and (running["running_variance"][never] == 1).all()
    x = inputs(rng)
    ours = norm(precision.tensor(x), precision.tensor(VALID), at).numpy()[:, :4]
    expected = paper.batch_norm(x[:, :4], mean[seen], variance[seen], w["weight"], w["bias"], eps)
    real = VALID[:, :4]
    np.testing.assert_allclose(ours[real], expected[real], rtol=1e-5, atol=1e-5)
