"""hugging_face: files of several kinds, made by the library itself; the copy in a run's folder; what is said."""

import json
import logging
import os
import random
import sys

import pytest

from paddle_tfm import UserError, create_registry
from paddle_tfm.components import Spec
from paddle_tfm_plugins.tokenizer import hugging_face
from paddle_tfm_plugins.tokenizer._growth import _growth, _rules
from paddle_tfm_plugins.tokenizer.hugging_face import HuggingFace

TEXTS = ["Zwei junge Männer sind im Freien.", "On March 5th it's 25°", "我们见面。 👍🏽", "a  b\tc <unk> ▁x", ""]


@pytest.fixture
def library():
    return pytest.importorskip("tokenizers", reason="the optional package tokenizers is not installed")


def byte_level(library):
    made = library.Tokenizer(library.models.BPE())
    made.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = library.decoders.ByteLevel()
    alphabet = library.pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(TEXTS, library.trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    return made


def word_piece(library):
    """What BERT's file has: the case lowered, special tokens, texts cut and padded, no way to write what is unknown."""
    made = library.Tokenizer(library.models.WordPiece(unk_token="[UNK]"))
    made.normalizer = library.normalizers.Lowercase()
    made.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    made.decoder = library.decoders.WordPiece(cleanup=False)
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    made.train_from_iterator(TEXTS[:2], library.trainers.WordPieceTrainer(vocab_size=200, special_tokens=special))
    made.post_processor = library.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    made.enable_truncation(4)
    made.enable_padding(length=50)
    return made


def test_what_comes_back(library, tmp_path, caplog):
    path = tmp_path / "mine.json"
    byte_level(library).save(str(path))
    tokenizer = HuggingFace(str(path))
    tokenizer.fit(iter(TEXTS))
    assert not caplog.records
    for text in TEXTS:
        pieces = tokenizer.tokenize(text)
        assert tokenizer.detokenize(pieces) == tokenizer.normalize(text) == " ".join(text.split())
    assert any(len(piece) > 1 for piece in tokenizer.tokenize(TEXTS[0]))


def replacing(library, part):
    """A normalizer, or a decoder, that makes 10¹¹ characters of a "1"."""
    made = byte_level(library)
    module = getattr(library, f"{part}s")
    setattr(made, part, module.Sequence([module.Replace("1", "1" * 10)] * 11))
    return made


def prepending(library, length):
    made = byte_level(library)
    made.normalizer = library.normalizers.Prepend("y" * length)
    return made


def with_piece(library, piece):
    return library.Tokenizer(library.models.WordLevel({piece: 0, "a": 1}, unk_token=piece))


def trying(library, characters):
    model = library.models.WordPiece({"[UNK]": 0}, unk_token="[UNK]", max_input_chars_per_word=characters)
    return library.Tokenizer(model)


def unknowing(library):
    return library.Tokenizer(library.models.WordLevel({"a": 0}, unk_token="[UNK]"))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda library: replacing(library, "normalizer"), "it makes 100,000,000,000 characters of one"),
        (lambda library: replacing(library, "decoder"), "its decoder makes 100,000,000,000 characters of one, and at"),
        (
            lambda library: prepending(library, 200_000),
            "it puts 200,000 characters before a text, and at most 100,000 are",
        ),
        (lambda library: with_piece(library, "u" * 2_000), "it has a piece of 2,000 characters, and at most 1,000 are"),
        (lambda library: with_piece(library, "u" * 200), "it marks pieces by 200 characters, and at most 100 are"),
        (lambda library: trying(library, 10**12), "its `max_input_chars_per_word` is 1,000,000,000,000, and at most"),
        (unknowing, "cannot encode a text: .*UNK"),
        (None, "it is no regular file"),
    ],
    ids=["normalizer", "decoder", "prefix", "piece", "mark", "beginnings", "no UNK", "a pipe"],
)
def test_what_the_library_cannot_do_is_a_sentence(library, make, sentence, tmp_path):
    path = tmp_path / "mine.json"
    if make is None:
        os.mkfifo(path)
    else:
        make(library).save(str(path))
    with pytest.raises(UserError, match=sentence):
        HuggingFace(str(path)).fit(iter(TEXTS))


def test_no_normalizer_makes_more_of_a_text_than_is_said(library):
    """Random rules on random texts; and rules that do not feed each other multiply nothing."""
    draw = random.Random(1)
    tight = 0
    for _ in range(400):
        rules = [_rule(library, draw) for _ in range(draw.randint(1, 6))]
        made = library.Tokenizer(library.models.BPE())
        made.normalizer = library.normalizers.Sequence(rules)
        of_one, added = _growth([*_rules(json.loads(made.to_str())["normalizer"])])
        for _ in range(5):
            text = "".join(draw.choice("abcABÅﬃﷺİ½") for _ in range(draw.randint(0, 9)))
            try:
                became = len(made.normalizer.normalize_str(text))
            except BaseException as error:  # a bug of the library, which it calls so
                assert type(error).__name__ == "PanicException"
                continue
            assert became <= of_one * len(text) + added, (made.to_str(), text)
            tight += became == of_one * len(text) + added
    assert tight > 50
    honest = ["ﬁ:fi", "ﬂ:fl", "ﬀ:ff", "ﬃ:ffi", "ﬄ:ffl", "…:...", "½:1/2", "¼:1/4", "¾:3/4", "™:TM", "℃:°C", "№:No"]
    rules = [{"type": "Replace", "pattern": {"String": each[0]}, "content": each[2:]} for each in honest]
    assert _growth(rules) == (3, 0)
    assert _growth([{"type": "Prepend", "prepend": "½a"}, *rules]) == (3, 4)
    several = [{"type": "Replace", "pattern": {"String": f" {mark}"}, "content": mark} for mark in ".,;:!?)]}%"]
    assert _growth([*several, *several]) == (1, 0)
    spread = {"type": "Replace", "pattern": {"String": " "}, "content": "\t" * 90}
    assert _growth([spread, {"type": "Nmt"}, spread, {"type": "Metaspace"}, spread])[0] == 90**3


def _rule(library, draw):
    kinds, content = library.normalizers, "".join(draw.choice("abcAﬃ") for _ in range(draw.randint(0, 4)))
    return draw.choice(
        [
            lambda: kinds.Replace(draw.choice("abcAÅ"), content),
            lambda: kinds.Replace(draw.choice(["ab", "ca", "aa"]), content),
            lambda: kinds.Replace(library.Regex(draw.choice(["[ab]+", "a|b", "b*a?", "", "$"])), content),
            lambda: kinds.Prepend(content or "a"),
            kinds.NFKC, kinds.NFKD, kinds.NFD, kinds.NFC, kinds.Lowercase, kinds.StripAccents,
            kinds.BertNormalizer, kinds.ByteLevel, kinds.Nmt, kinds.Strip,
        ]
    )()  # fmt: skip


def test_a_text_that_becomes_too_long_is_refused_before_it_is(library, tmp_path, monkeypatch):
    made = byte_level(library)
    made.normalizer = library.normalizers.Replace("1", "1" * 1000)
    made.save(str(tmp_path / "mine.json"))
    tokenizer = HuggingFace(str(tmp_path / "mine.json"))
    tokenizer.fit(TEXTS)
    monkeypatch.setattr(hugging_face, "LONGEST_TEXT", 20_000)
    assert len("".join(tokenizer.tokenize("1 2 3"))) > 1000 and tokenizer.tokenize("a" * 19_000)
    with pytest.raises(UserError, match=r"one of 30 characters becomes longer than 20,000, which is the most"):
        tokenizer.tokenize("1" * 30)


def test_pieces_that_would_become_too_long_a_text_are_not_decoded(library, tmp_path):
    made = library.Tokenizer(library.models.WordLevel({"u": 0, "a": 1}, unk_token="u"))
    made.decoder = library.decoders.Replace("u", "u" * 9_000)
    made.save(str(tmp_path / "mine.json"))
    tokenizer = HuggingFace(str(tmp_path / "mine.json"))
    tokenizer.fit(["a"])
    assert len(tokenizer.detokenize(["u"] * 100)) == 900_000 + 0
    with pytest.raises(UserError, match=r"may make 2,700,000 characters of 300 pieces, and at most 2,000,000 are"):
        tokenizer.detokenize(["u"] * 300)


def test_what_does_not_come_back_is_said(library, tmp_path, caplog):
    path = tmp_path / "mine.json"
    word_piece(library).save(str(path))
    tokenizer = HuggingFace(str(path))
    with caplog.at_level(logging.WARNING):
        tokenizer.fit(TEXTS[:3])
    (record,) = caplog.records
    assert record.getMessage().startswith(
        f"{path}: of 3 texts, 3 do not come back as they are: '{TEXTS[0]}' becomes 'zwei"
    )
    pieces = tokenizer.tokenize(TEXTS[0])
    assert not {"[CLS]", "[SEP]", "[PAD]"} & set(pieces) and len(pieces) > 4  # nothing added, nothing cut
    assert tokenizer.detokenize(pieces) == tokenizer.normalize(TEXTS[0]) == "zwei junge männer sind im freien ."
    assert tokenizer.normalize("我") == "[UNK]"


def test_a_file_without_a_decoder(library, tmp_path):
    made = library.Tokenizer(library.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    made.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
    made.save(str(tmp_path / "mine.json"))
    tokenizer = HuggingFace(str(tmp_path / "mine.json"))
    tokenizer.fit(["a b"])
    assert tokenizer.tokenize("a  b c") == ["a", "b", "?"] and tokenizer.normalize("a  b c") == "a b ?"


def test_the_run_keeps_a_copy(library, tmp_path):
    path = tmp_path / "mine.json"
    byte_level(library).save(str(path))
    tokenizer = HuggingFace(str(path))
    tokenizer.fit(TEXTS)
    folder = tmp_path / "run"
    folder.mkdir()
    tokenizer.save(folder)
    path.unlink()
    again = HuggingFace(str(path))
    again.load(folder)
    assert [again.tokenize(text) for text in TEXTS] == [tokenizer.tokenize(text) for text in TEXTS]
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match="no tokenizer"):
        again.load(folder)


@pytest.mark.parametrize("content", [None, "", "[]", json.dumps({"model": {"type": "none"}}), b"\xff"], ids=repr)
def test_a_file_that_is_none(library, tmp_path, content):
    path = tmp_path / "mine.json"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=r"mine\.json: cannot be read: (no tokenizer|.*No such file)"):
        HuggingFace(str(path)).fit(TEXTS)


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setattr("paddle_tfm_plugins.tokenizer.hugging_face.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install tokenizers"):
        create_registry().build("tokenizer", Spec("hugging_face", {"file": "x.json"}), "tokenizer")
