"""The losses of all shipped heads in a step, where kernels of another library compute them: gradients, and extreme
logits."""

import numpy as np
import paddle
import pytest

from paddle_tfm import randomness
from paddle_tfm.layers import Embedding
from paddle_tfm.protocols import Memory
from paddle_tfm_plugins.head.adaptive import AdaptiveSoftmax
from paddle_tfm_plugins.head.fix import FixNorm
from paddle_tfm_plugins.head.linear import LinearHead
from paddle_tfm_plugins.head.pointer import PointerGenerator
from paddle_tfm_plugins.head.pointer_coverage import PointerCoverage
from paddle_tfm_plugins.head.pointer_network import PointerNetwork
from paddle_tfm_plugins.head.tied import TiedHead

C, V, B, T, S, PAD = 6, 9, 2, 4, 5, 1
MAKERS = {
    "linear": lambda: LinearHead(C, V, PAD),
    "linear without bias": lambda: LinearHead(C, V, PAD, bias=False),
    "linear, capped": lambda: LinearHead(C, V, PAD, cap=2.0),
    "tied": lambda: TiedHead(Embedding(V, C, PAD, 3), V, PAD),
    "tied with bias": lambda: TiedHead(Embedding(V, C, PAD, 3), V, PAD, bias=True),
    "tied, capped": lambda: TiedHead(Embedding(V, C, PAD, 3), V, PAD, bias=True, cap=30.0),
    "pointer": lambda: PointerGenerator(C, V, PAD),
    "pointer without extra": lambda: PointerGenerator(C, V, PAD, bias=False),
    "pointer with coverage": lambda: PointerCoverage(
        d_model=C, vocab_size=V, pad_id=PAD, coverage_weight=0.0
    ),  # its loss with a weight is in the test of its own
    "pointer network": lambda: PointerNetwork(C, V, PAD),
    "pointer network of positions": lambda: PointerNetwork(C, V, PAD, output="position"),
    "fix": lambda: FixNorm(C, V, Embedding(V, C, PAD, 3), PAD, bias=True),
    "fix tied": lambda: FixNorm(C, V, Embedding(V, C, PAD, 3), PAD, tied=True),
    "fix at a scale": lambda: FixNorm(C, V, Embedding(V, C, PAD, 3), PAD, scale=5.0, learned=False),
    "adaptive": lambda: AdaptiveSoftmax(C, V, PAD, cutoffs=[3, 6]),
    "adaptive with padding in a cluster": lambda: AdaptiveSoftmax(C, V, PAD, cutoffs=[1], factor=2, bias=True),
    "adaptive without clusters": lambda: AdaptiveSoftmax(C, V, PAD, cutoffs=[50]),
}
COPYING = ("pointer", "pointer network")  # those whose sources have words beyond the vocabulary here
BOUNDED = ("pointer network", "fix", "linear, capped", "tied, capped")  # no loss of theirs is above some number
every = pytest.mark.parametrize("name", MAKERS)


def make(name, scale=0.6):
    head, rng = MAKERS[name](), np.random.default_rng(0)
    shared = [layer.weight for layer in getattr(head, "_shared", ())]
    for parameter in [*shared, *head.parameters()]:
        parameter.set_value(rng.normal(0, scale, parameter.shape).astype("float32"))
    return head


def tensor(*shape, seed=1):
    x = paddle.to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))
    x.stop_gradient = False
    return x


def memory(extra, padding=0):
    """Sources with a word twice, words beyond the vocabulary, and `padding` columns of rubbish."""
    ids = np.array([[3, 8, 3, 4, PAD], [V, 5, V + 1, V, 2]])
    ids = ids if extra else np.minimum(ids, V - 1)
    valid = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], bool)
    x = np.random.default_rng(2).normal(size=(B, S, C))
    x = np.concatenate([x, np.full([B, padding, C], 77.0)], 1).astype("float32")
    ids = np.concatenate([ids, np.full([B, padding], PAD)], 1)
    valid = np.concatenate([valid, np.zeros([B, padding], bool)], 1)
    positions = paddle.arange(S + padding).unsqueeze(0)
    return Memory(paddle.to_tensor(x), positions, paddle.to_tensor(valid), paddle.to_tensor(ids), extra)


def setting(name):
    extra = 2 if name in COPYING else 0
    target = np.array([[3, 4, 0, 8], [5, V + 1 if extra else 7, V if extra else 2, 6]])
    return memory(extra), paddle.to_tensor(target)


@every
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_gradient_of_the_loss_is_that_of_the_log_probabilities(name, smoothing):
    head, h, (there, target) = make(name), tensor(B, T, C), setting(name)
    pull = tensor(B, T, seed=8).detach()
    gradients = []
    for fast in (True, False):
        if fast:
            with randomness.random_context(1, 1):
                loss = head.loss(h, target, there, smoothing)
        else:
            log_p = head.log_probs(h, there)
            others = (log_p[..., :V].sum(-1) - log_p[..., PAD]) / (V - 1)
            picked = (log_p * paddle.nn.functional.one_hot(target, V + there.extra)).sum(-1)
            loss = -(1 - smoothing) * picked - smoothing * others
        (loss * pull).sum().backward()
        by_name = {"h": h.grad.numpy().copy()}
        for key, parameter in head.named_parameters():
            by_name[key] = parameter.grad.numpy().copy()
        gradients.append(by_name)
        h.clear_gradient()
        head.clear_gradients()
    for key, value in gradients[0].items():
        np.testing.assert_allclose(value, gradients[1][key], rtol=1e-3, atol=1e-4, err_msg=key)
        assert np.abs(value).max() > 1e-4, key


@every
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_extreme_logits_stay_finite(name, smoothing):
    head, (there, target) = make(name, scale=40.0), setting(name)
    h = tensor(B, T, C)
    log_p = head.log_probs(h * 10.0, there)
    with randomness.random_context(1, 1):
        loss = head.loss(h * 10.0, target, there, smoothing)
    (loss.sum() + log_p.sum()).backward()
    assert np.isfinite(loss.numpy()).all() and np.isfinite(log_p.numpy()).all() and np.isfinite(h.grad.numpy()).all()
    picked = np.take_along_axis(log_p.numpy(), target.numpy()[..., None], -1)[..., 0]
    others = np.delete(log_p.numpy()[..., :V], PAD, -1).mean(-1)
    if not name.startswith(BOUNDED):
        assert loss.numpy().max() > 100  # beyond what Paddle's own cross entropy can say on a CPU
    np.testing.assert_allclose(loss.numpy(), -(1 - smoothing) * picked - smoothing * others, rtol=1e-4, atol=1e-3)
