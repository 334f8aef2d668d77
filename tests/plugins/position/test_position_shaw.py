import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.position.shaw import Shaw

SHARED = ([[0, 1, 2, 3]], [[0, 1, 2, 3, 4]])


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def tensors(*arrays):
    return [paddle.to_tensor(array) for array in arrays]


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
