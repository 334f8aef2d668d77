import numpy as np
import paddle

from paddle_tfm_plugins.position.learned import Learned


def test_beyond_the_table_is_the_last_row():
    encoding, x = Learned(4, max_length=5), paddle.zeros([1, 3, 4])
    y = encoding.embed(x, paddle.to_tensor([[4, 5, 1000]])).numpy()
    np.testing.assert_array_equal(y[0], np.repeat(encoding.weight.numpy()[4:5], 3, 0))
