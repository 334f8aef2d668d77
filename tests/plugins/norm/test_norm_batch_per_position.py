import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.norm.batch_per_position import BatchNormPerPosition

LENGTHS = np.array([[5], [2], [4], [3]])
VALID = np.arange(5) < LENGTHS  # [4, 5]: 4 4 3 2 1 real tokens at positions 0 … 4
POSITIONS = np.arange(5)[None]


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(2.0, 3.0, shape).astype(paddle.get_default_dtype())


def trained(max_length=8, **options):
    """A norm with a weight, a bias and running values that are not those at the start."""
    norm = BatchNormPerPosition(3, max_length, **options)
    for i, tensor in enumerate([norm.weight, norm.bias, norm.running_mean, norm.running_variance]):
        tensor.set_value(np.abs(draw(*tensor.shape, seed=i + 1)))
    return norm


def call(norm, x, valid=VALID, positions=POSITIONS):
    return norm(*(paddle.to_tensor(array) for array in (x, valid, positions)))


def reference(norm, x, valid, positions, eps=1e-5):
    """One token after another: the statistics of its position, or the running ones where there are fewer than two."""
    positions = np.broadcast_to(positions, valid.shape)
    y = np.zeros_like(x)
    for b, t in zip(*np.nonzero(valid)):
        p = min(positions[b, t], norm.running_mean.shape[0] - 1)
        same = x[valid & (np.minimum(positions, norm.running_mean.shape[0] - 1) == p)]
        mean, variance = norm.running_mean.numpy()[p], norm.running_variance.numpy()[p]
        if norm.training and len(same) > 1:
            mean, variance = same.mean(0), same.var(0)
        y[b, t] = (x[b, t] - mean) / np.sqrt(variance + eps) * norm.weight.numpy() + norm.bias.numpy()
    return y


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "positions",
    [POSITIONS, POSITIONS + 5, np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [0, 2, 4, 6, 30], [3, 4, 5, 6, 7]])],
)
def test_formula(training, positions):
    norm, x = trained(), draw(4, 5, 3)
    norm.train() if training else norm.eval()
    expected = reference(norm, x, VALID, positions)
    np.testing.assert_allclose(call(norm, x, positions=positions).numpy(), expected, rtol=2e-5, atol=2e-5)


def test_running_update_at_each_position():
    norm, x = BatchNormPerPosition(3, 8, momentum=0.3), draw(4, 5, 3)
    call(norm, x)
    for p in range(8):
        mean, variance = norm.running_mean.numpy()[p], norm.running_variance.numpy()[p]
        if p < 4:
            real = x[:, p][VALID[:, p]]
            np.testing.assert_allclose(mean, 0.3 * real.mean(0), rtol=1e-5)
            np.testing.assert_allclose(variance, 0.7 + 0.3 * real.var(0, ddof=1), rtol=1e-5)
        else:  # one real token, or none: as at the start
            np.testing.assert_array_equal(mean, 0.0)
            np.testing.assert_array_equal(variance, 1.0)


def test_evaluation_leaves_the_running_values():
    norm = trained()
    norm.eval()
    before = [tensor.numpy() for tensor in norm.buffers()]
    call(norm, draw(4, 5, 3))
    for tensor, value in zip(norm.buffers(), before):
        np.testing.assert_array_equal(tensor.numpy(), value)


def test_evaluation_in_pieces_is_the_same():
    norm, x = trained(max_length=4), draw(4, 5, 3)
    norm.eval()
    whole = call(norm, x).numpy()
    pieces = [call(norm, x[:, i : i + 1], VALID[:, i : i + 1], POSITIONS[:, i : i + 1]).numpy() for i in range(5)]
    np.testing.assert_allclose(np.concatenate(pieces, 1), whole, rtol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_padding_changes_nothing(training):
    """Values, gradients and running values, though the padding falls on trained positions."""
    seen, g = [], draw(4, 5, 3, seed=8)
    for columns, filler in ((0, 1.0), (2, 1e4)):
        norm = trained()
        norm.train() if training else norm.eval()
        pad = ((0, 0), (0, columns))
        valid = np.pad(VALID, pad)
        inside = np.where(VALID[..., None], draw(4, 5, 3), filler).astype("float32")
        x = paddle.to_tensor(np.pad(inside, (*pad, (0, 0)), constant_values=filler), stop_gradient=False)
        y = norm(x, paddle.to_tensor(valid), paddle.arange(5 + columns).unsqueeze(0))
        y.backward(paddle.to_tensor(np.pad(g, (*pad, (0, 0)), constant_values=filler)))
        values = [y.numpy()[valid], x.grad.numpy()[valid], norm.weight.grad.numpy(), norm.bias.grad.numpy()]
        seen.append(values + [tensor.numpy() for tensor in norm.buffers()])
        assert not x.grad.numpy()[~valid].any()
    for short, long in zip(*seen):
        np.testing.assert_allclose(long, short, rtol=1e-4, atol=1e-5)


def test_gradients(float64, assert_gradients):
    norm = trained()
    x, valid, positions = (paddle.to_tensor(array) for array in (draw(4, 5, 3), VALID, POSITIONS))
    start = [tensor.numpy() for tensor in norm.buffers()]

    def run():
        for tensor, value in zip(norm.buffers(), start):  # a lone token depends on them
            tensor.set_value(value)
        return norm(x, valid, positions)

    assert_gradients(run, x, norm.weight, norm.bias)


def test_no_mask_means_all_real():
    x = draw(4, 5, 3)
    y = trained()(paddle.to_tensor(x), None, paddle.to_tensor(POSITIONS)).numpy()
    np.testing.assert_array_equal(y, call(trained(), x, np.ones([4, 5], bool)).numpy())


def test_buffers_are_in_checkpoints():
    assert set(trained().state_dict()) == {"weight", "bias", "running_mean", "running_variance"}
    assert set(BatchNormPerPosition.expected_failures) == {"causal_in_training", "neighbours_in_training"}


def test_refuses():
    with pytest.raises(ValueError, match="`max_length` must be at least 1, but is 0"):
        BatchNormPerPosition(4, 0)
    with pytest.raises(ValueError, match=r"`momentum` must be in \(0, 1\], but is 2"):
        BatchNormPerPosition(4, 8, momentum=2.0)
    with pytest.raises(ValueError, match="`positions` must be a tensor"):
        trained()(paddle.to_tensor(draw(4, 5, 3)))
