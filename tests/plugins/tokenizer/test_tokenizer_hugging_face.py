"""hugging_face: files of several kinds, made by the library itself; the copy in a run's folder; what is said."""

import json
import sys

import pytest

from paddle_tfm import UserError, create_registry
from paddle_tfm.components import Spec
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


def test_what_comes_back(library, tmp_path):
    path = tmp_path / "mine.json"
    byte_level(library).save(str(path))
    tokenizer = HuggingFace(str(path))
    tokenizer.fit(iter(TEXTS))
    assert tokenizer.remarks() == []
    for text in TEXTS:
        pieces = tokenizer.tokenize(text)
        assert tokenizer.detokenize(pieces) == tokenizer.normalize(text) == " ".join(text.split())
    assert any(len(piece) > 1 for piece in tokenizer.tokenize(TEXTS[0]))
    assert {*tokenizer.tokenize("鑫 ж")} <= {*tokenizer.pieces()}  # bytes that no text showed are in the vocabulary


def test_what_the_library_cannot_do_is_a_sentence(library, tmp_path):
    path = tmp_path / "mine.json"
    library.Tokenizer(library.models.WordLevel({"a": 0}, unk_token="[UNK]")).save(str(path))
    with pytest.raises(UserError, match=r"cannot encode a text: .*UNK"):
        HuggingFace(str(path)).fit(iter(TEXTS))


def test_what_does_not_come_back_is_said(library, tmp_path):
    path = tmp_path / "mine.json"
    word_piece(library).save(str(path))
    tokenizer = HuggingFace(str(path))
    tokenizer.fit(TEXTS[:3])
    (remark,) = tokenizer.remarks()
    assert remark.startswith(f"{path}: of 3 texts, 3 do not come back as they are: '{TEXTS[0]}' becomes 'zwei")
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


@pytest.mark.parametrize("content", [None, json.dumps({"model": {"type": "none"}}), b"\xff"], ids=repr)
def test_a_file_that_is_none(library, tmp_path, content):
    path = tmp_path / "mine.json"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=r"mine\.json: (cannot be read: no tokenizer|no such file)"):
        HuggingFace(str(path)).fit(TEXTS)


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setattr("paddle_tfm_plugins.tokenizer.hugging_face.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install tokenizers"):
        create_registry().build("tokenizer", Spec("hugging_face", {"file": "x.json"}), "tokenizer")
