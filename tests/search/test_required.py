"""Required words in a beam (arXiv:1804.06609), beside all outputs written down."""

import numpy as np
import pytest
from search_tiny import LONGEST, SOURCES

from paddle_tfm import UserError
from paddle_tfm.inference.terms import Terms
from paddle_tfm.search.decoding import decode_all
from paddle_tfm_plugins.search._required import after, missing, unmet
from paddle_tfm_plugins.search.beam import Beam

WIDE = Beam(size=200, alpha=0.0, max_ratio=0.0, max_extra=LONGEST)
REQUIRED = ([[5]], [[4, 4]], [[5, 5], [4]], [[5, 4], [4, 5]], [[4, 5, 5, 4]], [[5], [4], [3]], [])


def holds(output, ids):
    return any(tuple(output[i : i + len(ids)]) == tuple(ids) for i in range(len(output)))


@pytest.mark.parametrize("required", REQUIRED)
def test_a_wide_beam_finds_the_most_probable_output_that_holds_the_words(tiny_model, examples, every_output, required):
    model = tiny_model()
    found = decode_all(model, examples, WIDE, required=[required] * len(examples))
    for example, hypotheses in zip(examples, found):
        scores = every_output(model, example)
        allowed = {ids: score for ids, score in scores.items() if all(holds(ids, each) for each in required)}
        best = max(allowed, key=allowed.get)
        assert tuple(hypotheses[0].ids) == best
        assert hypotheses[0].score == pytest.approx(allowed[best], abs=1e-3)
        assert all(tuple(each.ids) in allowed for each in hypotheses)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_narrow_beams_hold_the_words_in_any_batch_and_who_requires_none_gets_the_plain_beam(tiny_model, examples, size):
    model = tiny_model(seed=3)
    search = Beam(size=size, max_ratio=0.0, max_extra=8)
    plain = decode_all(model, examples, search)
    required = [[[5, 4], [3]], [], [[4, 4, 5]]]
    outputs = decode_all(model, examples, search, required=required)
    for hypotheses, of_sentence in zip(outputs, required):
        assert hypotheses and all(holds(each.ids, ids) for each in hypotheses for ids in of_sentence)
    assert [each.ids for each in outputs[1]] == [each.ids for each in plain[1]]
    alone = [decode_all(model, [examples[i]], search, required=[required[i]])[0] for i in range(len(SOURCES))]
    assert [[each.ids for each in several] for several in alone] == [
        [each.ids for each in several] for several in outputs
    ]
    assert decode_all(model, examples, search, required=[[]] * 3) == plain


def test_words_that_fill_the_output_and_words_after_a_prefix(tiny_model, examples):
    search = Beam(size=3, max_ratio=0.0, max_extra=4)
    outputs = decode_all(tiny_model(), examples, search, prefixes=[[5]] * 3, required=[[[4, 4], [3]]] * 3)
    assert all(sorted([tuple(each.ids)]) in ([(5, 4, 4, 3)], [(5, 3, 4, 4)]) for several in outputs for each in several)
    with pytest.raises(UserError, match="forbid words that are required"):
        decode_all(tiny_model(), examples, Beam(size=3, no_repeat_ngram=1), required=[[[4, 4]]] * 3)


def test_what_is_missing_is_what_a_text_does_not_hold():
    """Beside a search in the text, over random tokens: of overlapping words and of words that begin like themselves."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        required = [tuple(rng.integers(2, size=rng.integers(1, 5)).tolist()) for _ in range(rng.integers(1, 4))]
        tokens, state = [], unmet(required)
        for token in rng.integers(2, size=12).tolist():
            tokens, state = [*tokens, token], after(state, token)
            lacking = [ids for ids in required if not holds(tokens, ids)]
            assert [ids for ids, _ in state] == lacking
            ends = [max(n for n in range(len(ids)) if n == 0 or tuple(tokens[-n:]) == ids[:n]) for ids in lacking]
            assert missing(state) == sum(map(len, lacking)) - max(ends, default=0)


@pytest.mark.parametrize(
    "text, words",
    [
        ("The bank account .", ["Konto"]),
        ("A bank, a bank", ["Ufer"]),
        ("banks and embankments", []),
        ("用BERT模型", ["BERT-Modell"]),
        ("一个模型。", ["model"]),
        ("nothing", []),
    ],
)
def test_terms_are_found_as_whole_words_the_longest_first(text, words):
    terms = {"bank": "Ufer", "bank account": "Konto", "BERT": "BERT-Modell", "一个模型": "model", "模型": ""}
    found = Terms({term: words for term, words in terms.items() if words}).required(text)
    assert found == words
    assert Terms({}).required(text) == []
