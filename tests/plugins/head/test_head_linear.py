"""The plain output matrix against its formula."""

import numpy as np
import paddle

from paddle_tfm.protocols import Memory
from paddle_tfm_plugins.head.linear import LinearHead

NOTHING = Memory(*[paddle.zeros([2, 1, 4])] * 4)


def test_it_is_the_formula():
    head, h = LinearHead(4, 6, pad_id=0), np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    head.output.bias.set_value(paddle.randn([6]))
    logits = h @ head.output.weight.numpy() + head.output.bias.numpy()
    expected = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    np.testing.assert_allclose(head.log_probs(paddle.to_tensor(h), NOTHING).numpy(), expected, rtol=1e-4, atol=1e-5)
    assert list(head.state_dict()) == ["output.weight", "output.bias"]
    assert list(LinearHead(4, 6, pad_id=0, bias=False).state_dict()) == ["output.weight"]


def test_it_cannot_say_words_of_the_source():
    assert not LinearHead.extends_vocabulary
