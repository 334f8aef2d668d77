"""Coverage: what its loss is for."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import Memory
from paddle_tfm_plugins.head.pointer_coverage import PointerCoverage

C, V, B, T, S, PAD = 6, 9, 3, 7, 5, 0


@pytest.fixture
def setting(rng):
    """A head with values that matter, a decoder's output, and a memory with padding."""
    head = PointerCoverage(C, vocab_size=V, pad_id=PAD)
    for parameter in head.parameters():
        parameter.set_value(rng.normal(0, 1.5, parameter.shape).astype("float32"))
    valid = np.arange(S) < np.array([[5], [3], [4]])
    ids = np.where(valid, rng.integers(4, V + 2, [B, S]), PAD)
    x, h = (paddle.to_tensor(rng.normal(size=[B, n, C]).astype("float32")) for n in (S, T))
    memory = Memory(x, paddle.arange(S).unsqueeze(0), paddle.to_tensor(valid), paddle.to_tensor(ids), 2)
    return head, h, memory


def test_the_coverage_loss_teaches_to_look_elsewhere(setting):
    """What is attended to a second time falls when that loss alone is minimized."""
    head, h, memory = setting
    h, target = h[:, :3], paddle.full([B, 3], 5, "int64")  # no more steps than the shortest source has tokens
    for parameter in head.parameters():
        parameter.set_value(0.2 * parameter)  # weights of the source that are not yet all or nothing

    def repeated():
        with_it = head.loss(h, target, memory)
        head.coverage_weight = 0.0
        without = head.loss(h, target, memory)
        head.coverage_weight = 1.0
        return (with_it - without).sum()

    before = float(repeated())
    optimizer = paddle.optimizer.Adam(0.05, parameters=head.parameters())
    for _ in range(40):
        repeated().backward()
        optimizer.step()
        optimizer.clear_grad()
    assert float(repeated()) < 0.7 * before


def test_a_negative_weight_is_refused():
    with pytest.raises(ValueError, match="`coverage_weight` must not be negative"):
        PointerCoverage(C, vocab_size=V, pad_id=PAD, coverage_weight=-1.0)
