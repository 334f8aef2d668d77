import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.position.shaw import Shaw

SHARED = ([[0, 1, 2, 3]], [[0, 1, 2, 3, 4]])
CACHED = ([[4]], [[0, 1, 2, 3, 4]])
OWN = ([[0, 1, 2, 3], [9, 3, 1, 0]], [[0, 1, 2, 3, 4], [5, 3, 9, 2, 2]])
MIXED = ([[0, 1, 2, 3]], OWN[1])


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def tensors(*arrays):
    return [paddle.to_tensor(array) for array in arrays]


@pytest.fixture
def encoding(float64):
    return Shaw(3, clip=2)


def pairs(q_positions, k_positions, batch=2, heads=2):
    """(b, h, i, j, row of the table) of every pair, in loops."""
    for b in range(batch):
        qs, ks = q_positions[b % len(q_positions)], k_positions[b % len(k_positions)]
        for h, (i, p), (j, s) in ((h, i, j) for h in range(heads) for i in enumerate(qs) for j in enumerate(ks)):
            yield b, h, i, j, min(max(s - p, -2), 2) + 2


@pytest.mark.parametrize("positions", [SHARED, CACHED, OWN, MIXED])
def test_scores_against_loops(encoding, positions):
    length = len(positions[0][0])
    q, k, table = draw(2, 2, length, 3), draw(2, 2, 5, 3, seed=1), encoding.key_table.numpy()
    expected = np.zeros([2, 2, length, 5])
    for b, h, i, j, row in pairs(*positions):
        expected[b, h, i, j] = q[b, h, i] @ table[row]
    np.testing.assert_allclose(encoding.scores(*tensors(q, k, *positions)).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("positions", [SHARED, CACHED, OWN, MIXED])
def test_values_against_loops(encoding, positions):
    length = len(positions[0][0])
    weights, table = draw(2, 2, length, 5), encoding.value_table.numpy()
    expected = np.zeros([2, 2, length, 3])
    for b, h, i, j, row in pairs(*positions):
        expected[b, h, i] += weights[b, h, i, j] * table[row]
    np.testing.assert_allclose(encoding.values(*tensors(weights, *positions)).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("positions", [SHARED, OWN])
def test_gradients(encoding, assert_gradients, positions):
    q, k, weights, *at = tensors(draw(2, 2, 4, 3), draw(2, 2, 5, 3, seed=1), draw(2, 2, 4, 5, seed=2), *positions)
    assert_gradients(lambda: encoding.scores(q, k, *at), q, encoding.key_table)
    assert_gradients(lambda: encoding.values(weights, *at), weights, encoding.value_table)


def test_only_differences_matter(encoding):
    q, k = tensors(draw(2, 2, 4, 3), draw(2, 2, 5, 3))
    near, far = (encoding.scores(q, k, *tensors(np.array(SHARED[0]) + s, np.array(SHARED[1]) + s)) for s in (0, 1000))
    np.testing.assert_array_equal(near.numpy(), far.numpy())


def test_contract():
    assert Shaw.per_layer
    assert Shaw(4).uses() == {"scores", "values"}
    assert Shaw(4, clip=3).key_table.shape == [7, 4]
    keys_only = Shaw(4, with_values=False)
    assert keys_only.uses() == {"scores"}
    assert [name for name, _ in keys_only.named_parameters()] == ["key_table"]
    assert keys_only.values(*tensors(draw(1, 2, 4, 5), *SHARED)) is None
    with pytest.raises(ValueError, match=r"`clip` must be in \[1, 1000000\], but is 0"):
        Shaw(4, clip=0)
