"""SOAP: what the eigenbases must not do."""

import numpy as np
import paddle

from paddle_tfm_plugins.optimizer.soap import SOAP


def test_rows_without_a_gradient_stay(rng):
    """Rows that no gradient has reached share the eigenvalue 0, and their directions are mixed: neither padding's row
    nor that of a word still to come may move with one that comes later."""
    table = paddle.create_parameter([8, 3], "float32")
    table.set_value(rng.normal(size=[8, 3]).astype("float32"))
    start = table.numpy().copy()
    optimizer = SOAP(weight_decay=0.0, frequency=2).create([table])
    optimizer.set_lr(0.01)
    for seen in ([1, 2], [1, 2], [1, 2], [1, 2, 3], [1, 3, 4], [3, 4], [2, 4]):
        slope = np.zeros([8, 3], "float32")
        slope[seen] = rng.normal(size=[len(seen), 3])
        (table * paddle.to_tensor(slope)).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    moved = (table.numpy() != start).any(1)
    assert moved.tolist() == [False, True, True, True, True, False, False, False]
