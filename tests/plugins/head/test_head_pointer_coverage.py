"""Coverage: a state of the head that decoding carries, and what its loss is for."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import Memory
from paddle_tfm.search.decoding import ModelDecoding
from paddle_tfm_plugins.head.pointer import PointerGenerator
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


@pytest.mark.parametrize("chunks", [[1] * T, [3, 1, 1, 2], [T]], ids=str)
def test_step_by_step_is_all_at_once(setting, chunks):
    head, h, memory = setting
    whole, state, start = head.log_probs(h, memory).numpy(), (), 0
    for size in chunks:
        kept = [part.numpy().copy() for part in state]
        last, following = head.step(h[:, start : start + size], memory, state)
        start += size
        np.testing.assert_allclose(last.numpy(), whole[:, start - 1], rtol=1e-5, atol=1e-5)
        for part, before in zip(state, kept):
            np.testing.assert_array_equal(part.numpy(), before)  # a state is a value
        state = following
    later = np.abs(head.log_probs(h[:, 3:4], memory).numpy() - whole[:, 3:4]).max()
    assert later > 0.01  # without what came before, it is another distribution


def test_without_its_two_terms_it_is_the_pointer_generator(setting):
    head, h, memory = setting
    plain = PointerGenerator(C, V, PAD)
    plain.set_state_dict(head.state_dict())
    head.coverage.weight.set_value(paddle.zeros([1, C]))
    head.coverage_weight = 0.0
    np.testing.assert_allclose(head.log_probs(h, memory).numpy(), plain.log_probs(h, memory).numpy(), 1e-5, 1e-5)
    target = paddle.full([B, T], 5, "int64")
    np.testing.assert_allclose(
        head.loss(h, target, memory, 0.1).numpy(), plain.loss(h, target, memory, 0.1).numpy(), rtol=1e-4
    )


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


@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 0, 0, 1], [1, 1]], ids=str)
def test_decoding_with_rows_that_move_is_one_pass(make_model, make_batch, rows):
    """The engine carries the state of the head along with its rows."""
    model, batch = make_model("model.head=pointer_coverage"), make_batch((5, 3, 4), (4, 6, 2))
    for parameter in model.head.parameters():
        parameter.set_value(6.0 * parameter)
    words = paddle.to_tensor([[5, 6, 7], [7, 8, 5], [6, 7, 8]])
    with paddle.no_grad():
        memory = model.encode(batch.source, batch.source_valid)
        decoding = ModelDecoding(model, memory, [9] * 3, [0, 1, 2])
        decoding.advance(paddle.full([3], decoding.bos, dtype="int64"))
        decoding.advance(words[:, 0])
        order = paddle.to_tensor(rows)
        decoding.select(order)
        tokens = words.index_select(order)
        one, two = decoding.advance(tokens[:, 1]), decoding.advance(tokens[:, 2])
        chunk = ModelDecoding(model, memory.select(order), [9] * len(rows), list(range(len(rows))))
        inputs = paddle.concat([paddle.full([len(rows), 1], decoding.bos, dtype="int64"), tokens], 1)
        at_once = chunk.step(inputs)  # as of a prompt
        chosen = memory.select(order)
        h, _ = model.decode(inputs, model.start(chosen))
        expected = model.head.log_probs(h, chosen).numpy()
        alone = model.head.log_probs(h[:, -1:], chosen).numpy()[:, 0]
    for ours, theirs in ((one, expected[:, -2]), (two, expected[:, -1]), (at_once, expected[:, -1])):
        np.testing.assert_allclose(ours.numpy()[:, 2:], theirs[:, 2:], rtol=1e-4, atol=1e-5)
    assert np.abs(alone - expected[:, -1])[:, 2:].max() > 1e-3


def test_a_negative_weight_is_refused():
    with pytest.raises(ValueError, match="`coverage_weight` must not be negative"):
        PointerCoverage(C, vocab_size=V, pad_id=PAD, coverage_weight=-1.0)
