"""Attentions of a decoder alone, whose past is more than keys and values: in steps, in chunks, for chosen rows, they
compute what one pass does; their gradients are those of finite differences."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.forgetting import Forgetting
from paddle_tfm_plugins.attention.gated_deltanet import GatedDeltaNet

B, T, C, H = 3, 6, 8, 2
SITE = LayerSite("decoder", "self", 0, 0, 1)
VALID = paddle.to_tensor([[1] * 6, [1, 1, 0, 0, 1, 1], [0] * 2 + [1] * 4], "bool")
MAKERS = {
    "forgetting": lambda: Forgetting(d_model=C, num_heads=H, dropout=0.0, site=SITE),
    "gated_deltanet": lambda: GatedDeltaNet(C, H, site=SITE),
    "gated_deltanet without reach": lambda: GatedDeltaNet(C, H, site=SITE, kernel=1, expand=1),
}
every = pytest.mark.parametrize("name", MAKERS)


def make(name, dtype="float32"):
    attention, rng = MAKERS[name](), np.random.default_rng(0)
    for parameter in attention.parameters():
        parameter.set_value(rng.normal(0, 0.5, parameter.shape).astype(dtype))
    return attention


def info(x, start=0, valid=None):
    positions = paddle.arange(start, start + x.shape[1]).unsqueeze(0)
    valid = paddle.ones(x.shape[:2], "bool") if valid is None else valid
    return TokenInfo(PositionalEncoding(), positions, valid)


def attend(attention, x, kv, start=0, valid=None):
    """The tokens of x, which end at what `kv` holds."""
    here = info(x, start)
    total = start + x.shape[1]
    valid = paddle.ones([x.shape[0], total], "bool") if valid is None else valid[:, :total]
    mask = Mask(here.positions, paddle.arange(total).unsqueeze(0), valid, True)
    return attention(x, kv, here, mask, Tap())


def whole(attention, x, valid=None):
    return attend(attention, x, attention.project(x, info(x, 0, valid)), 0, valid)


def text(seed=1, dtype="float32"):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=(B, T, C)).astype(dtype))


@every
@pytest.mark.parametrize("chunks", [[1] * 6, [2, 1, 3]], ids=["one by one", "in chunks"])
def test_cached_steps_give_what_the_full_pass_gives(name, chunks):
    attention, x = make(name), text()
    full, state, start, parts = whole(attention, x, VALID), None, 0, []
    for size in chunks:
        part, here = x[:, start : start + size], VALID[:, start : start + size]
        new = attention.project(part, info(part, start, here))
        state = new if state is None else state.extend(new)
        parts.append(attend(attention, part, state, start, VALID))
        start += size
    real = VALID.astype("float32").unsqueeze(-1)
    np.testing.assert_allclose((paddle.concat(parts, 1) * real).numpy(), (full * real).numpy(), rtol=1e-4, atol=1e-5)


@every
@pytest.mark.parametrize("read", [1, 3])
def test_selecting_rows_of_the_past_is_selecting_sentences(name, read):
    attention, x, rows = make(name), text(), paddle.to_tensor([2, 0, 0, 1])
    state = attention.project(x[:, :read], info(x[:, :read]))
    for t in range(read, T - 1):
        state = state.extend(attention.project(x[:, t : t + 1], info(x[:, t : t + 1], t)))
    picked = x.index_select(rows, 0)
    last = picked[:, T - 1 :]
    state = state.select(rows).extend(attention.project(last, info(last, T - 1)))
    out = attend(attention, last, state, T - 1)
    np.testing.assert_allclose(out.numpy(), whole(attention, picked)[:, T - 1 :].numpy(), rtol=1e-4, atol=1e-5)


@every
def test_gradients(float64, assert_gradients, name):
    attention, x = make(name, "float64"), text(dtype="float64")[:2, :4]
    valid = paddle.to_tensor([[1, 1, 0, 0], [1] * 4], "bool")
    assert_gradients(lambda: whole(attention, x, valid), x, *attention.parameters())


@every
def test_a_memory_of_a_fixed_size_does_not_grow(name):
    """Forgetting attention keeps all keys; the memory of Gated DeltaNet has one size after any number of tokens."""
    attention, x, sizes = make(name), text(), []
    state = attention.project(x[:, :1], info(x[:, :1]))
    for t in range(1, T):
        state = state.extend(attention.project(x[:, t : t + 1], info(x[:, t : t + 1], t)))
        parts = (state.past.memory, state.past.reach) if name != "forgetting" else (state.key, state.value)
        sizes.append(sum(part.size for part in parts))
    assert len(set(sizes)) == (T - 1 if name == "forgetting" else 1)


def test_what_is_written_under_a_key_is_what_it_answers():
    """The delta rule: with β near 1 and no fading, S answers the last value written under a key, and none of those that
    were written there before."""
    from paddle_tfm_plugins.attention.gated_deltanet import recall

    key = paddle.to_tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).reshape([1, 1, 3, 2])
    value = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).reshape([1, 1, 3, 2])
    kept, ones = paddle.zeros([1, 1, 3, 1]), paddle.ones([1, 1, 3, 1])
    answers, memory = recall(key, key, value, kept, ones, paddle.zeros([1, 1, 2, 2]))
    np.testing.assert_allclose(answers.numpy()[0, 0], [[1, 2], [3, 4], [5, 6]], atol=1e-6)
    np.testing.assert_allclose(memory.numpy()[0, 0], [[5, 6], [3, 4]], atol=1e-6)


def test_gates_of_one_half_halve_a_weight_with_each_token():
    attention = make("forgetting")
    for parameter in attention.parameters():
        parameter.set_value(parameter * 0.0)
    tap, x = Tap(recording=True), text()
    here = info(x)
    attention(x, attention.project(x, here), here, Mask(here.positions, here.positions, here.valid, True), tap)
    weights = tap.recorded[0][1].numpy()
    np.testing.assert_allclose(
        weights[:, :, 3, :5] * 15, np.broadcast_to([1, 2, 4, 8, 0], (B, H, 5)), rtol=1e-5, atol=1e-9
    )
