"""The engine's side of a search: a row that moves keeps what belongs to its sentence."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import Hypothesis
from paddle_tfm.search.decoding import ModelDecoding, decode_batch
from paddle_tfm_plugins.search.greedy import Greedy


@pytest.mark.parametrize("rows", [[1, 1, 0, 0, 3, 2], [5, 4, 2, 2], [3, 3, 3], [1, 2, 4, 5], [0, 0, 0, 4, 4, 4]])
@pytest.mark.parametrize("options", [(), ("model.position=learned", "model.head=pointer"), ("model.norm=batch",)])
def test_rows_of_one_sentence_share_its_memory(make_model, make_batch, rows, options):
    """Two of each, then others, by twos, by threes or mixed; one token at a time, then two: beside rows that hold a
    memory each."""
    model, batch = make_model(*options), make_batch((5, 3, 4), (4, 6, 2))
    twice, order = paddle.to_tensor([0, 0, 1, 1, 2, 2]), paddle.to_tensor(rows)
    words = paddle.to_tensor([[5, 6], [7, 8], [6, 7], [8, 5], [7, 5], [5, 7]])
    with paddle.no_grad():
        memory = model.encode(batch.source, batch.source_valid)
        decoding = ModelDecoding(model, memory, [9] * 3, [0, 1, 2])
        decoding.advance(paddle.full([3], decoding.bos, dtype="int64"))
        decoding.select(twice)
        assert decoding.state.group == 2 and decoding.state.layers[0].cross_kv.key.shape[0] == 3
        decoding.advance(words[:, 0])
        decoding.select(order)
        seen = [decoding.advance(words[: len(rows), i]) for i in (0, 1)]
        seen.append(decoding.step(words[: len(rows)]))
        inputs = paddle.concat([paddle.full([6, 1], decoding.bos, dtype="int64"), words[:, :1]], 1).index_select(order)
        alone = model.start(memory.select(twice.index_select(order)))
        _, alone = model.decode(inputs, alone)
        for tokens, got in zip((words[:, :1], words[:, 1:], words), seen):
            h, alone = model.decode(tokens[: len(rows)], alone)
            expected = model.head.log_probs(h[:, -1:], alone.memory).squeeze(1)
            np.testing.assert_allclose(got[:, 2:].numpy(), expected[:, 2:].numpy(), rtol=1e-5, atol=1e-5)


@pytest.fixture
def decoded_lengths(make_model, make_batch, monkeypatch):
    """decoded_lengths(search, source lengths, prefixes, **model options) → the longest output of each sentence, as the
    search sees it."""

    def lengths(search, source_lengths, prefixes=None, max_length=64):
        model = make_model(f"model.max_length={max_length}")
        longest = []

        def run(decoding):
            longest.extend(decoding.max_lengths)
            return [[Hypothesis([], 0.0)] for _ in decoding.max_lengths]

        monkeypatch.setattr(search, "run", run)
        decode_batch(model, make_batch(source_lengths, source_lengths), search, prefixes)
        return longest

    return lengths


@pytest.mark.parametrize(
    ("options", "prefix", "expected"),
    [
        ({}, 0, 2.0 * 4 + 20),  # `max_ratio` times the source without its end token, and `max_extra`
        ({"max_ratio": 0.5, "max_extra": 1}, 0, 3),
        ({"max_ratio": 0.5, "max_extra": 1, "max_length": 2}, 0, 2),
        ({"max_length": 40}, 0, 28),  # a maximum allows no more than the source does
        ({"max_ratio": 0.5, "max_extra": 1, "min_length": 7}, 0, 7),  # the minimum precedes the bound
        ({"max_ratio": 0.5, "max_extra": 1}, 6, 6),  # and so does a prefix,
        ({"max_length": 2}, 6, 6),  # even a maximum
        ({"min_length": 9}, 6, 28),
        ({"max_extra": 100}, 0, 63),  # never more than the model holds, with the end token
        ({"min_length": 80}, 0, 63),
    ],
)
def test_the_longest_output_of_a_sentence(decoded_lengths, options, prefix, expected):
    assert decoded_lengths(Greedy(**options), (5,), [[4] * prefix]) == [expected]


def test_the_longest_output_is_that_of_the_sentence_and_not_of_its_batch(decoded_lengths):
    assert decoded_lengths(Greedy(max_ratio=2.0, max_extra=1), (5, 3, 8), [[], [4] * 7, []]) == [9, 7, 15]


@pytest.mark.parametrize("options", [(), ("model.head=fix", "model.norm=rms")])
def test_a_search_sees_weights_that_changed_since_the_last(make_model, make_batch, options):
    """Set in place, written to by another process' view, replaced by a new parameter or by another layer's, and after a
    training step: what comes out is what a model with these weights from the start gives."""
    model, batch, search = make_model(*options), make_batch((5, 3, 4), (5, 3, 4)), Greedy(max_length=8)
    seen = [decode_batch(model, batch, search)]

    def fresh():
        same = make_model(*options, seed=99)
        same.set_state_dict(model.state_dict())
        return decode_batch(same, batch, search)

    def check():
        seen.append(decode_batch(model, batch, search))
        assert seen[-1] == fresh() != seen[-2]

    attention = model.decoder.layers[0].self_attention
    for linear in (attention.query, attention.key, attention.value, model.decoder.layers[0].feed_forward.output):
        linear.weight.set_value(linear.weight * -3.0)
        check()
    np.from_dlpack(attention.output.weight.detach())[...] *= -5.0
    check()
    for name in ("query", "value"):
        layer, new = getattr(attention, name), paddle.nn.Linear(*attention.query.weight.shape)
        new.weight.set_value(5.0 * new.weight)
        layer.weight = new.weight
        check()
        setattr(attention, name, model.encoder.layers[0].self_attention.output)
        check()
    model.train()
    optimizer = paddle.optimizer.SGD(0.5, parameters=model.parameters())
    model.loss(batch).backward()
    optimizer.step()
    model.eval()
    check()


def test_tokens_of_known_validity_follow_tokens_that_are_all_real(make_model, make_batch):
    """Chunks of which some say which tokens are real, and some leave it out because all are."""
    model, batch = make_model(), make_batch((5, 3, 4), (6, 6, 6))
    real = paddle.ones([3, 6], "bool")
    with paddle.no_grad():
        memory = model.encode(batch.source, batch.source_valid)
        expected, _ = model.decode(batch.target_in, model.start(memory), real)
        for stated in ([True, False, True], [False, True, False], [False, False, False]):
            state, parts = model.start(memory), []
            for (first, end), say in zip(((0, 1), (1, 4), (4, 6)), stated):
                h, state = model.decode(batch.target_in[:, first:end], state, real[:, first:end] if say else None)
                parts.append(h)
            np.testing.assert_allclose(paddle.concat(parts, 1).numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
