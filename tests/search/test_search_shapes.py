"""Searching with models of one stack: labels of an encoder, and text that a decoder continues."""

from itertools import pairwise

import numpy as np
import paddle
import pytest
from search_tiny import SOURCES, encoded

import paddle_tfm
from paddle_tfm.data.batches import collate
from paddle_tfm.data.codec import Codec
from paddle_tfm.data.vocabulary import BOS, EOS, PAD, UNKNOWN, Vocabulary
from paddle_tfm.errors import UserError
from paddle_tfm.inference.alignment import align
from paddle_tfm.inference.generate import Continuation, generate
from paddle_tfm.search.decoding import decode_all
from paddle_tfm_plugins.search.beam import Beam
from paddle_tfm_plugins.search.greedy import Greedy
from paddle_tfm_plugins.search.sampling import Sampling
from paddle_tfm_plugins.tokenizer.char import Char

TOKENS, SEQUENCE = ["model.decoder_layers=0"], ["model.decoder_layers=0", "model.labels=sequence"]
DECODER = ["model.encoder_layers=0", "evaluate.metrics=[perplexity]", "evaluate.best=perplexity", "model.max_length=6"]


@pytest.fixture
def labels(tiny_model):
    """log-probabilities float64 [T, V] of one source alone, of what can be a label."""

    def find(model, source):
        batch = collate([encoded(source)]).tensors()
        with paddle.no_grad():
            memory = model.encode(batch.source, batch.source_valid)
            results = model.head.log_probs(model.label_states(memory), memory)[0].numpy().astype(np.float64)
        results[:, [PAD, BOS, EOS]] = -np.inf
        return results[: len(source)]

    return find


# --------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("search", [Greedy(), Beam(size=1), Beam(size=4), Greedy(max_length=1), Beam(min_length=9)])
@pytest.mark.parametrize("shape", [TOKENS, SEQUENCE])
def test_every_search_returns_the_best_label_of_each_position(tiny_model, labels, search, shape):
    """As many as there are positions, whatever its own bounds are; the score is that of the labels, no end counted."""
    model = tiny_model(*shape)
    results = decode_all(model, [encoded(source) for source in SOURCES], search)
    for source, (best, *_) in zip(SOURCES, results):
        alone = labels(model, source)
        assert best.ids == alone.argmax(-1).tolist() and len(best.ids) == (len(source) if shape is TOKENS else 1)
        assert best.score == pytest.approx(alone.max(-1).sum(), abs=1e-4)


def test_a_beginning_of_the_labels_can_be_forced(tiny_model):
    model = tiny_model(*TOKENS)
    results = decode_all(model, [encoded(source) for source in SOURCES], Greedy(), prefixes=[[5, 5], [4], []])
    free = decode_all(model, [encoded(source) for source in SOURCES], Greedy())
    assert [best.ids for (best,) in results] == [[5, 5, *free[0][0].ids[2:]], [4, free[1][0].ids[1]], free[2][0].ids]


def test_labels_have_no_alignment(tiny_model):
    with pytest.raises(UserError, match="an alignment is cross-attention, for which a model must have an encoder"):
        align(tiny_model(*TOKENS), None, [], [])


# ---------------------------------------------------------------------------------------------------- continuations


@pytest.fixture
def letters():
    vocabulary = Vocabulary(["a", "b"])
    return Codec(Char(exact=True), Char(exact=True), vocabulary, vocabulary)


def never_ending(model):
    bias = model.head.output.bias
    bias.set_value(bias + (paddle.arange(6) == EOS).astype("float32") * -200.0)


def greedy_by_hand(model, prompt, length):
    """The likeliest tokens after `prompt`, each by a whole pass over the window, without a cache."""
    ids, room = list(prompt), model.max_length - 1
    start = max(0, len(ids) - room // 2) if len(ids) > room else 0
    written = []
    while len(written) < length:
        if len(ids) - start > room:  # full: it begins again with the last half
            start = len(ids) - room // 2
        with paddle.no_grad():
            h, _ = model.decode(paddle.to_tensor([[BOS, *ids[start:]]]), model.start(None))
            log_probs = model.head.log_probs(h[:, -1:], None)[0, 0].numpy()
        log_probs[[PAD, BOS, UNKNOWN]] = -np.inf
        token = int(log_probs.argmax())
        if token == EOS:
            break
        ids.append(token)
        written.append(token)
    return written


@pytest.mark.parametrize("prompt", ["", "abba", "ababbabaab"])
def test_text_continues_beyond_the_window(tiny_model, letters, prompt):
    model = tiny_model(*DECODER, "model.position=learned", seed=2)
    never_ending(model)
    parts = []
    output = generate(model, letters, prompt, 17, Greedy(), on_text=parts.append)
    ids = letters.encode(paddle_tfm.protocols.Excerpt("", prompt)).target
    assert list(output.ids) == greedy_by_hand(model, ids, 17) and len(output.ids) == 17
    assert "".join(parts) == output.text == "".join(output.pieces)
    assert len(parts) == 17, "a token at a time"


@pytest.mark.parametrize("search", [Beam(size=3), Beam(size=1), Sampling(samples=2), Greedy(min_length=5)])
def test_any_search_continues_and_all_of_its_text_is_reported(tiny_model, letters, search):
    model, parts = tiny_model(*DECODER, "model.max_length=16"), []
    output = generate(model, letters, "ab", 9, search, on_text=parts.append)
    assert "".join(parts) == output.text and len(output.ids) <= 9


def test_the_score_is_that_of_the_continuation(tiny_model, letters):
    model = tiny_model(*DECODER, "model.max_length=16")
    output = generate(model, letters, "ab", 5, Sampling(temperature=0.7, seed=4))
    inputs = [BOS, 4, 5, *output.ids]
    with paddle.no_grad():
        h, _ = model.decode(paddle.to_tensor([inputs]), model.start(None))
        log_probs = model.head.log_probs(h, None)[0].numpy()
    expected = sum(log_probs[2 + t, token] for t, token in enumerate([*output.ids, EOS]))
    assert output.score == pytest.approx(expected, abs=1e-4)


def test_draws_belong_to_the_number_and_the_seed(tiny_model, letters):
    model = tiny_model(*DECODER, "model.max_length=32")
    never_ending(model)
    texts = [generate(model, letters, "a", 20, Sampling(seed=seed), number).text for seed, number in [(1, 0), (1, 0), (1, 1), (2, 0)]]  # fmt: skip
    assert texts[0] == texts[1] and len(set(texts)) == 3


def test_constraints_of_the_search_hold(tiny_model, letters):
    model = tiny_model(*DECODER, "model.max_length=32")
    never_ending(model)
    assert len(generate(model, letters, "", 9, Greedy(max_length=3)).ids) == 3
    ids = generate(model, letters, "", 9, Greedy(no_repeat_ngram=2, min_length=4)).ids
    assert len({*pairwise(ids)}) == len(ids) - 1


def test_a_prompt_of_unknown_pieces_is_refused(tiny_model, letters):
    with pytest.raises(UserError, match="prompt 'axay': the model has no piece 'x', 'y'"):
        generate(tiny_model(*DECODER), letters, "axay", 3, Greedy())


def test_rows_of_a_continuation_can_be_selected(tiny_model):
    """As a beam does, also where the window begins again."""
    model = tiny_model(*DECODER)
    rows = [Continuation(model, [4, 5], 9, 0) for _ in range(2)]  # each row alone
    both, order = Continuation(model, [4, 5], 9, 0), [0, 1]
    both.advance(paddle.to_tensor([BOS]))
    both.select(paddle.to_tensor([0, 0]))
    for row in rows:
        row.advance(paddle.to_tensor([BOS]))
    for tokens in ((4, 5), (5, 5), (4, 4), (5, 4), (4, 4), (5, 5)):
        log_probs = both.advance(paddle.to_tensor([tokens[i] for i in order])).numpy()
        expected = [rows[i].advance(paddle.to_tensor([tokens[i]])).numpy()[0] for i in order]
        np.testing.assert_allclose(log_probs, expected, rtol=1e-4, atol=1e-4)
        both.select(paddle.to_tensor([1, 0]))
        order.reverse()
