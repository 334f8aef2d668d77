"""Running statistics: how far they are from a batch's own (`discrepancy`), a block of `pooling` that fails, `cumulative`, too
few tokens, and half precision."""

import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.norm.batch import BatchNorm

VALID = np.arange(5) < np.array([[5], [2], [4], [3]])
POSITIONS = np.arange(5)[None]
EPS = 1e-5
WITH_STATISTICS = ["batch", "batch_per_position", "power"]


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(2.0, 3.0, shape)


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
def test_the_discrepancy_is_that_of_the_real_tokens(registry, float64, name, valid):
    """The third sentence alone reaches position 3 in the second case: without two tokens it has nothing to tell."""
    valid = valid if valid is None or valid is VALID else valid & np.array([[0], [1], [1], [1]], bool)
    norm, x = registry.build("norm", name, "norm", d_model=3, max_length=4, site=None), draw(4, 5, 3)
    for i, (part, tensor) in enumerate(norm.named_buffers()):
        if part != "passes":
            tensor.set_value(np.abs(draw(*tensor.shape, seed=i + 1)))
    reference = expected(name, norm, x, np.ones([4, 5], bool) if valid is None else valid)
    arguments = (None if array is None else paddle.to_tensor(array) for array in (x, valid, POSITIONS))
    assert {key: float(value) for key, value in norm.discrepancy(*arguments).items()} == pytest.approx(
        reference, rel=1e-10
    )
    assert min(reference.values()) > 0.05


def test_norms_without_running_statistics_have_none(registry):
    for name in ("layer", "dyt", "none", *WITH_STATISTICS):
        norm = registry.build("norm", name, "norm", d_model=8, max_length=4, site=None)
        statistics = bool(list(norm.buffers()))
        assert statistics == (norm.momentum is not None) == (name in WITH_STATISTICS)
        assert bool(norm.discrepancy(paddle.ones([1, 2, 8]), None, paddle.to_tensor([[0, 1]]))) == statistics


def test_a_block_of_pooling_that_fails_or_sees_nothing_changes_nothing():
    norm, x = BatchNorm(3), paddle.ones([2, 2, 3])
    with pytest.raises(RuntimeError, match="no more"), norm.pooling():
        norm(x)
        raise RuntimeError("no more")
    with norm.pooling():
        pass
    assert (norm.running_mean.numpy() == 0.0).all() and (norm.running_variance.numpy() == 1.0).all()
    norm(x)
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.1, rtol=1e-6)  # running values move again


def test_cumulative_is_the_mean_over_batches():
    norm, batches = BatchNorm(3, momentum="cumulative"), [draw(6, 3), draw(2, 3, seed=1)]
    for x in batches:
        norm(paddle.to_tensor(x[None].astype("float32")))
    np.testing.assert_allclose(norm.running_mean.numpy(), np.mean([x.mean(0) for x in batches], 0), rtol=1e-5)
    variances = [x.var(0, ddof=1) for x in batches]
    np.testing.assert_allclose(norm.running_variance.numpy(), np.mean(variances, 0), rtol=1e-5)
    assert norm.state_dict()["batches"].item() == 2.0


@pytest.mark.parametrize("name, count", [("batch", 0), ("batch", 1), ("power", 0)])
def test_too_few_tokens_use_the_running_values_and_move_none(registry, name, count):
    norm, reference = (registry.build("norm", name, d_model=3) for _ in range(2))
    for each in (norm, reference):
        for i, (_, tensor) in enumerate(each.named_buffers()):
            tensor.set_value(np.abs(draw(*tensor.shape, seed=i + 1)).astype(tensor.numpy().dtype))
    reference.eval()
    x = paddle.to_tensor(draw(1, 3, 3).astype("float32"), stop_gradient=False)
    valid = paddle.to_tensor([[i < count for i in range(3)]])
    y = norm(x, valid)
    y.sum().backward()
    np.testing.assert_allclose(y.numpy(), reference(x, valid).numpy(), rtol=1e-5)
    ours = {part: value.numpy() for part, value in norm.named_buffers() if part != "passes"}
    for part, value in reference.named_buffers():
        np.testing.assert_array_equal(ours.get(part, value.numpy()), value.numpy())
    assert np.isfinite(x.grad.numpy()).all()


@pytest.mark.parametrize("name", ["dyt", "group", "rms", "scale", "batch", "power"])
def test_half_precision_comes_back_as_such_and_statistics_are_float32(registry, name):
    x = paddle.to_tensor(draw(2, 3, 8).astype("float32")).astype("bfloat16")
    norm, reference = (registry.build("norm", name, d_model=8, max_length=4) for _ in range(2))
    y, theirs = norm(x), reference(x.astype("float32"))
    assert y.dtype == paddle.bfloat16
    np.testing.assert_allclose(y.astype("float32").numpy(), theirs.numpy(), rtol=0.01, atol=0.05)
    for one, other in zip(norm.buffers(), reference.buffers()):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
