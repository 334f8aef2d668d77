"""Corpora in bounded memory: what lies in a file is what lay in memory, and what is encoded anew is what was kept."""

import tracemalloc

import numpy as np
import pytest

from paddle_tfm import UserError, create_registry, load_recipe
from paddle_tfm.data import codec as codecs
from paddle_tfm.data import corpus
from paddle_tfm.data.batches import Stream
from paddle_tfm.data.codec import Codec, EncodedTexts
from paddle_tfm.data.corpus import Texts, load_corpus
from paddle_tfm.data.vocabulary import EOS, Vocabulary
from paddle_tfm.protocols import Example, Excerpt, Tokenizer
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.train.run import create

ODD = [
    Example("a\tb\nc", "ü\u2028 😀"),
    Example("", "x" * 5000, ("noun", "verb")),
    Example('\\n "quoted" \'', "\u0000\x1f", others=("\n", "\ud800")),
]


@pytest.mark.parametrize("memory", [1 << 20, 10])
def test_texts_come_back_as_they_were(monkeypatch, memory):
    monkeypatch.setattr(corpus, "MAX_BYTES_IN_MEMORY", memory)
    texts = Texts(ODD)
    assert list(texts) == ODD and len(texts) == 3
    assert [type(each) for each in Texts([Excerpt("", "a"), ODD[0]])] == [Excerpt, Example]
    assert [texts[i] for i in (2, 0, 1, -1)] == [ODD[2], ODD[0], ODD[1], ODD[2]]
    assert texts[1:] == ODD[1:] and texts[::-1] == ODD[::-1]
    texts.add(ODD[0])
    assert texts[3] == ODD[0] and texts[1] == ODD[1]
    with pytest.raises(IndexError):
        texts[4]


def test_memory_does_not_grow_with_the_texts(monkeypatch):
    monkeypatch.setattr(corpus, "MAX_BYTES_IN_MEMORY", 1 << 16)
    tracemalloc.start()
    texts = Texts(Example(f"{i} " + "word " * 200, "target " * 100) for i in range(20_000))  # 34 MB
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 << 20
    assert texts[12_345].source.startswith("12345 ")


@pytest.fixture
def texts():
    rng = np.random.default_rng(1)
    return [Example(" ".join(rng.choice(list("abcd"), n)), " ".join("x" * m)) for n, m in rng.integers(1, 12, (150, 2))]


def codec_of(texts, *overrides):
    return Codec.learn(planned(*overrides), texts)


def planned(*overrides):
    return plan_run(load_recipe("base", overrides).runs()[0], create_registry())


def batches_of(encoded, count=40):
    stream = Stream(encoded, 64, seed=1)
    return [next(stream) for _ in range(count)]


def test_what_is_not_kept_is_encoded_anew(texts, monkeypatch):
    codec = codec_of(texts)
    cached = batches_of(codec.encode_all(texts))
    monkeypatch.setattr(codecs, "MAX_CACHED_IDS", 50)
    few = codec.encode_all(texts)
    for one, other in zip(cached, batches_of(few), strict=True):
        np.testing.assert_array_equal(one.source, other.source)
        np.testing.assert_array_equal(one.target_out, other.target_out)
    assert 0 < len(few._cache) < 20


def test_slices_and_selections_are_views(texts):
    encoded = codec_of(texts).encode_all(texts)
    assert [e.example for e in encoded[10:14]] == texts[10:14]
    chosen = encoded.select([5, 3])
    assert [e.example for e in chosen] == [texts[5], texts[3]] and chosen[1:][0].example == texts[3]
    np.testing.assert_array_equal(chosen.lengths, encoded.lengths[[5, 3]])
    assert encoded.lengths.tolist() == [[len(e.source), len(e.target)] for e in encoded]


def make(tmp_path, texts, *overrides):
    rows = "".join(f"{e.source}\t{e.target}\n" for e in texts)
    (tmp_path / "pairs.tsv").write_text(rows)
    task = f"task={{name: parallel, train: {tmp_path}/pairs.tsv, valid: {tmp_path}/pairs.tsv}}"
    plan = planned(task, *overrides)
    return create(plan, tmp_path / "run", load_corpus(plan))


def test_filters_count_what_they_drop(tmp_path):
    texts = [Example("a b", "x y"), Example("a " * 9, "x"), Example("a", "x " * 30), Example("a b c", "x y z")]
    run = make(tmp_path, texts, "model.max_length=20", "train.max_ratio=3")
    assert run.dropped == {"model.max_length=20": 1, "train.max_ratio=3.0": 1}
    assert [e.example.target for e in run.encoded["train"]] == ["x y", "x y z"]
    assert len(run.encoded["valid"]) == 4, "what is scored is never filtered"
    assert make(tmp_path, texts).dropped == {}
    with pytest.raises(UserError, match=r"all 4 training examples exceed model\.max_length=2; raise the bound"):
        make(tmp_path, texts, "model.max_length=2")


class Drawn(Tokenizer):
    """Letters; `sample` glues some of them."""

    sampling = True

    def tokenize(self, text):
        return list(text)

    def sample(self, text, rng):
        pieces = []
        for letter in text:
            if pieces and rng.random() < 0.5:
                pieces[-1] += letter
            else:
                pieces.append(letter)
        return pieces

    def detokenize(self, pieces):
        return "".join(pieces)


def test_segmentations_are_drawn_anew_each_epoch_and_depend_on_nothing_else():
    texts = [Example("abab", "baba"), Example("aabb", "ab")]
    pieces = sorted({a + b for a in ("", "a", "b", "ab", "ba") for b in ("", "a", "b")} - {""})
    vocabulary = Vocabulary([*pieces, "aba", "bab", "abab", "baba", "aab", "abb", "bb", "aabb"])
    encoded = EncodedTexts(Codec(Drawn(), Drawn(), vocabulary, vocabulary), texts)
    assert encoded.sampling

    def epoch(number, seed=1):
        stream = Stream(encoded, 100, seed)
        stream.epoch = number
        batch = next(stream)
        return {int(i): row[row > EOS].tolist() for i, row in zip(batch.index, batch.source)}

    assert epoch(0) == epoch(0) != epoch(1) != epoch(0, seed=2)
    drawn = {tuple(epoch(number)[0]) for number in range(40)}
    assert len(drawn) > 3
    assert all("".join(vocabulary.decode(ids)) == "abab" for ids in drawn)


def test_a_drawn_segmentation_never_exceeds_the_longest_allowed():
    texts = [Example("ab" * 10, "ba" * 10)]

    class Longer(Drawn):
        def tokenize(self, text):
            return [text[i : i + 4] for i in range(0, len(text), 4)]

    pieces = sorted({text[i : i + n] for text in ("ab" * 10, "ba" * 10) for i in range(20) for n in range(1, 21)})
    encoded = EncodedTexts(Codec(Longer(), Longer(), Vocabulary(pieces), Vocabulary(pieces)), texts)
    for limit, longest in ((None, 8), (8, 8), (6, 6)):
        stream = Stream(encoded, 100, 1, limit)
        lengths = [max(batch.source.shape[1], batch.target_out.shape[1]) for batch in (next(stream) for _ in range(30))]
        assert (max(lengths) <= longest) is (limit is not None)


def test_runs_that_agree_about_pieces_share_codec_and_ids():
    task = "task={name: reverse, symbols: 5, train: 30, valid: 5, test: 5}"
    plain, small = planned(task), planned(task, "vocabulary.max_size=6")
    texts = load_corpus(plain)
    codec, encoded = texts.encoded(plain)
    again = planned(task, "model.norm=rms", "seeds=[7]")
    assert texts.encoded(again)[0] is codec
    assert texts.encoded(again)[1]["train"][3] is encoded["train"][3]
    other, ids = texts.encoded(small)
    assert len(other.source_vocabulary) == 6 < len(codec.source_vocabulary)
    assert max(max(example.source) for example in ids["train"]) < 6
    assert texts.encoded(plain)[0].source_vocabulary.pieces == codec.source_vocabulary.pieces
