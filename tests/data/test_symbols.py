"""Symbols of one's own, in every tokenizer; and vocabularies from files."""

import json

import pytest

from paddle_tfm import UserError, create_registry, load_recipe
from paddle_tfm.data.codec import Codec
from paddle_tfm.data.symbols import JOIN, WithSymbols
from paddle_tfm.data.vocabulary import UNKNOWN
from paddle_tfm.data.vocabulary_file import read_pieces
from paddle_tfm.protocols import Example
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm_plugins.tokenizer.char import Char
from paddle_tfm_plugins.tokenizer.mixed import Mixed
from paddle_tfm_plugins.tokenizer.sentencepiece import SentencePiece
from paddle_tfm_plugins.tokenizer.space import Space
from paddle_tfm_plugins.tokenizer.word import Word

SYMBOLS = ["<2en>", "<2en-GB>", "<num>", "<n", "@名"]
TEXTS = [
    "<2en> It costs $<num>.<num>, or <num> .",
    "@名给我<num><num>个。<2en-GB>",
    "<num>",
    " <2en>  a <2fr> b<nx",
    "no",
    "",
]
TOKENIZERS = [
    Char(),
    Char(exact=True),
    Word(),
    Mixed(),
    Space(),
    SentencePiece(),
    SentencePiece(sampling=0.5),
]


@pytest.mark.parametrize("inner", TOKENIZERS, ids=lambda each: type(each).__name__)
def test_symbols_stay_whole_and_come_back(inner):
    tokenizer = WithSymbols(inner, SYMBOLS)
    tokenizer.fit([*TEXTS, "plain words, and 我们见面。"] * 9)
    assert not tokenizer.unseen
    for text in TEXTS:
        pieces = tokenizer.tokenize(text)
        assert tokenizer.detokenize(pieces) == (
            text.strip() if getattr(inner, "exact", False) else " ".join(text.split())
        )
        assert [piece for piece in pieces if piece in SYMBOLS] == tokenizer._symbol.findall(text)
        assert tokenizer.joined(text) == text
    assert not any("num" in piece for piece in inner.pieces())  # nothing is learned of what they are spelled with
    assert tokenizer.tokenize("<2en> a") == ["<2en>", *inner.tokenize("a")]
    assert JOIN not in tokenizer.tokenize("a <num> b") and JOIN in tokenizer.tokenize("a<num>")


def learned(*overrides, pairs):
    return Codec.learn(plan_run(load_recipe("base", overrides).runs()[0], create_registry()), pairs)


def test_a_recipe_names_symbols_and_hears_of_those_that_no_text_has(tmp_path):
    pairs = [Example("<2en> a <num> b", "x <num>"), Example("<2de> a", "y")]
    settings = ["tokenizer=char", "vocabulary.symbols=[<2en>,<2de>,<num>,<2fr>]"]
    codec = learned(*settings, pairs=pairs)
    assert codec.remarks() == ["vocabulary.symbols: <2fr> stands in no training text"]
    codec.save(tmp_path)
    loaded = Codec.load(plan_run(load_recipe("base", settings).runs()[0], create_registry()), tmp_path)
    assert loaded.vocabulary_hash() == codec.vocabulary_hash() and loaded.remarks() == []
    encoded = loaded.encode(Example("<2de> b<num>", "<num>x"))
    assert UNKNOWN not in encoded.source + encoded.target
    assert loaded.text(loaded.pieces(encoded.target[:-1])) == "<num>x"
    with pytest.raises(UserError, match="<unk> is a piece of every vocabulary"):
        learned("vocabulary.symbols=[<unk>]", pairs=pairs)


@pytest.mark.parametrize(
    "content",
    ["<unk>\na\n▁b\nc\n\n", "<pad> 0\na 1\n▁b 2\nc 3\n", "<unk>\t0\na\t-1.5\n▁b\t-2\r\nc\t-3e-05\n", ["<unk>", "a", "▁b", "c"],
     {"▁b": 2, "c": 3, "a": 1, "<unk>": 0}],
)  # fmt: skip
def test_lists_of_pieces(tmp_path, content):
    file = tmp_path / ("list.txt" if isinstance(content, str) else "list.json")
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    assert read_pieces(str(file)) == ["a", "▁b", "c"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "no such file"),
        ("a\nb\na\n", "line 3: the piece 'a' stands in line 1 already"),
        ("the 12\nof\n", "line 2: must hold a piece, alone or .* but is 'of'"),
        ("a sentence of words\n", "line 1: must hold a piece"),
        ("\1\2\n", "line 1: holds control characters"),
        ("\n", "no piece in it"),
    ],
)
def test_what_is_no_list_of_pieces_is_a_sentence(tmp_path, content, sentence):
    file = tmp_path / "list.txt"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=f"list.txt[:,] {sentence}"):
        read_pieces(str(file))


def test_a_vocabulary_is_that_of_its_file(tmp_path):
    (tmp_path / "source.txt").write_text("▁b\n▁a\n▁unused\n")
    (tmp_path / "target.txt").write_text("▁y 3\n▁x 2\n")
    files = f"vocabulary.file=[{tmp_path}/source.txt,{tmp_path}/target.txt]"
    pairs = [Example("a b a b c", "x"), Example("a", "y y z")]
    codec = learned("tokenizer=word", files, "vocabulary.symbols=[<num>]", pairs=pairs)
    assert codec.source_vocabulary.pieces[4:] == ["▁b", "▁a", "▁unused", "<num>", JOIN]
    assert codec.target_vocabulary.pieces[4:] == ["▁y", "▁x", "<num>", JOIN]
    assert codec.encode(pairs[0]).source[:5] == [5, 4, 5, 4, UNKNOWN]
    with pytest.raises(
        UserError, match=r"source.txt: 100% of the pieces of the training texts are not in it, such as 'a'"
    ):
        learned("tokenizer=space", files, pairs=pairs)
