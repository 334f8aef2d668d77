"""`Norm.discrepancy`: how far running statistics are from a batch's own, against NumPy over the real tokens."""

import numpy as np
import paddle
import pytest

from paddle_tfm import create_registry

VALID = np.arange(5) < np.array([[5], [2], [4], [3]])
POSITIONS = np.arange(5)[None]
EPS = 1e-5
WITH_STATISTICS = ["batch", "batch_per_position", "power"]


@pytest.fixture(scope="module")
def registry():
    return create_registry()


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(2.0, 3.0, shape)


@pytest.fixture
def made(registry, float64):
    def make(name):
        norm = registry.build("norm", name, "norm", d_model=3, max_length=4, site=None)
        for i, (part, tensor) in enumerate(norm.named_buffers()):
            if part != "passes":
                tensor.set_value(np.abs(draw(*tensor.shape, seed=i + 1)))
        return norm

    return make


def discrepancy(norm, x, valid=VALID):
    arguments = (None if array is None else paddle.to_tensor(array) for array in (x, valid, POSITIONS))
    return {name: float(value) for name, value in norm.discrepancy(*arguments).items()}


def expected(name, norm, x, valid):
    state = {part: value.numpy() for part, value in norm.named_buffers()}
    if name == "power":
        ours = np.sqrt((x[valid] ** 2).mean(0) + EPS)
        return {"deviation": np.abs(np.sqrt(state["running_square"] + EPS) / ours - 1).mean()}
    places = np.minimum(np.broadcast_to(POSITIONS, valid.shape), 3)
    means, deviations = [], []
    for b, t in zip(*np.nonzero(valid)):
        same = x[valid & (places == places[b, t])] if name == "batch_per_position" else x[valid]
        entry = places[b, t] if name == "batch_per_position" else slice(None)
        if len(same) < 2:
            continue
        sigma = np.sqrt(same.var(0) + EPS)
        means.append(np.abs(state["running_mean"][entry] - same.mean(0)) / sigma)
        deviations.append(np.abs(np.sqrt(state["running_variance"][entry] + EPS) / sigma - 1))
    return {"mean": np.mean(means), "deviation": np.mean(deviations)}


@pytest.mark.parametrize("valid", [VALID, VALID & (np.arange(5) < 4), None], ids=["padded", "lone token", "full"])
@pytest.mark.parametrize("name", WITH_STATISTICS)
def test_is_that_of_the_real_tokens(made, name, valid):
    """The third sentence alone reaches position 3 in the second case: without two tokens it has nothing to tell."""
    valid = valid if valid is None or valid is VALID else valid & np.array([[0], [1], [1], [1]], bool)
    norm, x = made(name), draw(4, 5, 3)
    reference = expected(name, norm, x, np.ones([4, 5], bool) if valid is None else valid)
    assert discrepancy(norm, x, valid) == pytest.approx(reference, rel=1e-10)
    assert min(reference.values()) > 0.05


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", WITH_STATISTICS)
def test_changes_nothing_and_is_the_same_in_both_modes(made, name, training):
    norm, x = made(name), draw(4, 5, 3)
    reference = discrepancy(norm, x)
    norm.train() if training else norm.eval()
    before = {part: value.numpy() for part, value in norm.state_dict().items()}
    assert discrepancy(norm, x) == reference
    for part, value in norm.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[part])


@pytest.mark.parametrize("name", WITH_STATISTICS)
def test_without_a_token_there_is_none(made, name):
    assert set(discrepancy(made(name), draw(4, 5, 3), np.zeros([4, 5], bool)).values()) == {0.0}


def test_norms_without_running_statistics_have_none(registry):
    for name in ("layer", "layer_std", "rms", "scale", "dyt", "group", "none", *WITH_STATISTICS):
        norm = registry.build("norm", name, "norm", d_model=8, max_length=4, site=None)
        statistics = bool(list(norm.buffers()))
        assert statistics == (norm.momentum is not None) == (name in WITH_STATISTICS)
        discrepancy = norm.discrepancy(paddle.ones([1, 2, 8]), None, paddle.to_tensor([[0, 1]]))
        assert bool(discrepancy) == statistics
