"""Lines, vocabulary, codec and batches."""

import bz2
import gzip
import io
import itertools
import lzma

import numpy as np
import pytest

from paddle_tfm import UserError, create_registry, load_recipe
from paddle_tfm.data.batches import Stream, collate, in_order
from paddle_tfm.data.codec import Codec
from paddle_tfm.data.lines import raw_lines
from paddle_tfm.data.vocabulary import BOS, EOS, PAD, UNKNOWN, Vocabulary
from paddle_tfm.protocols import Example
from paddle_tfm.recipe.plan import plan_run

PAIRS = [Example("a b c", "x y"), Example("b c", "y"), Example("c", "x c z"), Example("a a a a", "z")]


def planned(*overrides):
    return plan_run(load_recipe("base", overrides).runs()[0], create_registry())


@pytest.mark.parametrize(
    ("head", "program"),
    [
        (bz2.compress(b"1 2"), "bzip2"),
        (gzip.compress(b"1 2", mtime=0), "gzip"),
        (lzma.compress(b"1 2"), "xz"),
        (b"PK\3\4", "zip"),
        (bytes.fromhex("28b52ffd04582100003120320a"), "zstd"),  # RFC 8878
    ],
)
def test_what_is_packed_is_told_by_its_head(head, program):
    with pytest.raises(UserError, match=f"^texts: holds what is packed by {program}; unpack that first"):
        list(raw_lines(io.BytesIO(head).readline, "texts"))
    assert list(raw_lines(io.BytesIO(b"BZh begins a text").readline, "texts")) == [b"BZh begins a text"]


@pytest.fixture
def codec():
    return Codec.learn(planned("tokenizer=word"), PAIRS)


def test_vocabulary_orders_by_frequency_and_obeys_its_limits():
    texts = [["b", "a", "b"], ["c", "b", "a", "<pad>"]]
    assert Vocabulary.learn(texts).pieces[4:] == ["b", "a", "c"]
    assert Vocabulary.learn(texts, min_frequency=2).pieces[4:] == ["b", "a"]
    assert Vocabulary.learn(texts, max_size=5).pieces[4:] == ["b"]
    assert Vocabulary.learn(texts, always=["z", "b"]).pieces[4:] == ["b", "a", "c", "z"]
    assert Vocabulary.learn(texts, min_frequency=3, always=["z"]).pieces[4:] == ["b", "z"]
    assert Vocabulary.learn(texts, max_size=6, always=["z"]).pieces[4:] == ["b", "z"]
    vocabulary = Vocabulary(["b", "a"])
    assert vocabulary.encode(["a", "?", "b"]) == [5, UNKNOWN, 4]
    assert vocabulary.decode([5, 4, 6], extra=("copied",)) == ["a", "b", "copied"]


def test_a_word_that_looks_like_padding_is_not_padding(codec):
    encoded = codec.encode(Example("<pad> a", "x"))
    assert PAD not in encoded.source


def test_sources_copy_into_the_extended_target_vocabulary(codec):
    encoded = codec.encode(Example("c q r q", "q c s"))
    size = len(codec.target_vocabulary)
    known = codec.target_vocabulary.ids["▁c"]
    assert encoded.extra == ("▁q", "▁r")
    assert encoded.copy == [known, size, size + 1, size, EOS]
    assert encoded.target == [UNKNOWN, known, UNKNOWN, EOS]
    assert encoded.target_copy == [size, known, UNKNOWN, EOS]
    assert codec.text(codec.pieces([size, known, size + 1], encoded.extra)) == "q c r"


def test_codec_is_saved_and_loaded(codec, tmp_path):
    codec.save(tmp_path)
    loaded = Codec.load(planned("tokenizer=word"), tmp_path)
    assert loaded.encode(PAIRS[0]) == codec.encode(PAIRS[0])
    (tmp_path / "target" / "vocabulary.json").write_text("{}")
    with pytest.raises(UserError, match="must hold a list of pieces"):
        Codec.load(planned("tokenizer=word"), tmp_path)


def test_shared_and_separate_tokenizers():
    one = Codec.learn(planned("tokenizer=char", "vocabulary.shared=true"), PAIRS)
    assert one.source is one.target and one.source_vocabulary is one.target_vocabulary
    two = Codec.learn(planned("tokenizer={source: char, target: word}"), PAIRS)
    assert two.source.tokenize("ab c") == ["a", "b", " ", "c"]
    assert two.target.tokenize("ab c") == ["▁ab", "▁c"]


def test_rows_of_a_batch_keep_their_padding(codec):
    batch = collate([codec.encode(pair) for pair in PAIRS], [7, 5, 2, 9])
    part = batch.rows(1, 3)
    assert part.tokens == 2 + 4 and part.index.tolist() == [5, 2]  # the end tokens counted
    for name in ("source", "source_valid", "copy_ids", "target_in", "target_out", "target_copy", "target_valid"):
        np.testing.assert_array_equal(getattr(part, name), getattr(batch, name)[1:3], err_msg=name)


def test_collate_shifts_and_pads(codec):
    encoded = codec.encode_all(PAIRS)
    batch = collate(encoded)
    assert batch.target_in[:, 0].tolist() == [BOS] * 4
    for i, example in enumerate(encoded):
        length = len(example.target)
        assert batch.target_out[i, :length].tolist() == example.target
        assert batch.target_in[i, 1:length].tolist() == example.target[:-1]
        assert not batch.target_out[i, length:].any() and not batch.target_in[i, length:].any()
        assert batch.target_valid[i].sum() == length
        assert batch.source_valid[i].sum() == len(example.source)
    assert batch.tokens == sum(len(example.target) for example in encoded)


def examples(count=200, seed=0):
    rng = np.random.default_rng(seed)
    texts = [Example(" ".join("a" * n), " ".join("b" * m)) for n, m in rng.integers(1, 12, (count, 2))]
    return Codec.learn(planned(), texts).encode_all(texts)


def test_every_epoch_has_every_example_once_within_the_budget():
    encoded = examples()
    stream = Stream(encoded, max_tokens=64, seed=1)
    orders = []
    for epoch in range(3):
        numbers = []
        while True:
            batch = next(stream)
            assert batch.source.size <= 64 and batch.target_out.size <= 64
            numbers += batch.index.tolist()
            if len(numbers) == len(encoded):
                break
        assert sorted(numbers) == list(range(len(encoded)))
        assert stream.epoch == epoch
        orders.append(numbers)
    assert orders[0] != orders[1] != orders[2]


def test_padding_is_little():
    batches, stream = [], Stream(examples(1000), max_tokens=256, seed=1)
    while not batches or (stream.epoch == 0 and sum(len(b.index) for b in batches) < 1000):
        batches.append(next(stream))
    longest = [np.maximum(b.source_valid.sum(1), b.target_valid.sum(1)) for b in batches]
    assert sum(length.sum() for length in longest) / sum(len(length) * length.max() for length in longest) > 0.9


def test_mixed_batches_are_random_samples_within_the_budget():
    """The mean length of a batch is that of the corpus but for chance; by length it is far off. Their padding is what
    their masks say."""
    encoded, spread = examples(2000), {}
    for batches in ("by_length", "mixed"):
        stream, epoch = Stream(encoded, 512, seed=1, batches=batches), []
        while stream.epoch == 0:
            epoch.append(next(stream))
        epoch.pop()  # of the second
        assert sorted(i for batch in epoch for i in batch.index) == list(range(2000))
        assert all(max(batch.source.size, batch.target_out.size) <= 512 for batch in epoch)
        spread[batches] = np.std([batch.source_valid.sum(1).mean() for batch in epoch])
        padding = [mask for batch in epoch for mask in (batch.source_valid, batch.target_valid)]
        padded = sum(mask.size for mask in padding)
        assert stream.padding() == pytest.approx(1 - sum(mask.sum() for mask in padding) / padded)
    deviation = encoded.lengths[:, 0].std() / np.sqrt(512 / 12)
    assert 0.5 * deviation < spread["mixed"] < 1.5 * deviation < 0.5 * spread["by_length"]


@pytest.mark.parametrize("batches", ["by_length", "mixed"])
def test_planned_tokens_are_those_of_the_batches_over_several_epochs(batches):
    encoded = examples()
    stream = Stream(encoded, 64, seed=1, batches=batches)
    taken = [next(stream).tokens for _ in range(150)]
    assert stream.epoch > 1 and np.std(taken) > 0
    planned_tokens = Stream(encoded, 64, seed=1, batches=batches).planned_tokens()
    assert list(itertools.islice(planned_tokens, 150)) == taken
    assert (encoded.lengths[:, 0] != encoded.lengths[:, 1]).any()


@pytest.mark.parametrize("batches", ["by_length", "mixed"])
def test_a_stream_goes_on_from_where_it_stood(batches):
    encoded = examples()
    whole = Stream(encoded, 64, seed=1, batches=batches)
    expected = [next(whole).index.tolist() for _ in range(60)]
    for stop in (1, 17, 30):
        first = Stream(encoded, 64, seed=1, batches=batches)
        for _ in range(stop):
            next(first)
        second = Stream(encoded, 64, seed=1, batches=batches)
        second.epoch, second.position = first.epoch, first.position
        assert [next(second).index.tolist() for _ in range(60 - stop)] == expected[stop:]


def test_an_example_over_the_budget_is_a_batch_of_its_own():
    encoded = examples(20)
    batches = list(in_order(encoded, max_tokens=2))
    assert sorted(i for batch in batches for i in batch.index) == list(range(20))
    assert all(len(batch.index) == 1 for batch in batches)


def test_evaluation_order_is_longest_first():
    lengths = [batch.source.shape[1] for batch in in_order(examples(), 64)]
    assert lengths == sorted(lengths, reverse=True)
