"""sentencepiece: nothing is lost, sizes are exact, learning is quiet, bounded and the same each time."""

import random
import re

import pytest
import sentencepiece

from paddle_tfm import UserError, create_registry, load_recipe
from paddle_tfm.data.codec import Codec
from paddle_tfm.data.vocabulary import SPECIAL
from paddle_tfm.protocols import Example
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm_plugins.tokenizer.sentencepiece import FILE, SentencePiece

MODELS = ("unigram", "bpe")
SCRIPTS = [
    "Zwei junge weiße Männer sind im Freien, in der Nähe vieler Büsche.",
    "On March 5th, 2024 it's 25°—isn't it?  (Yes: 3/5!)",
    "我们 在2024年3月5日，见面。他说：「好！」",
    "日本語とカタカナ、ひらがな。ｶﾀｶﾅ 々 안녕하세요, 세계!",
    "สวัสดีครับ नमस्ते दुनिया שָׁלוֹם العَرَبِيَّة Ελληνικά Кириллица",
    "e\u0301te\u0301 👍🏽👩‍👩‍👧 1\ufe0f\u20e3 İstanbul ΑΣ ﬁ t͡ʃ ɑː ˈ",
    "a▁b ▁ ▁▁x under_score U+2585 ▅ and NUL \0 and \ufeff \u200b \ue000 \U0010ffff",
    "<unk> <s> </s> <pad> <bos> <eos> <0x41> x<0xE6>y <<0x0A>>",
    " \u3000 tabs\tand\nlines\x85\x1c here \u2028 ",
    "   ",
    "",
    "half \ud800 of a pair",
]


def pseudo_texts(count=600):
    """Texts of words that share parts, of letters with diacritics and of Chinese characters."""
    draw = random.Random(1)
    parts = ["".join(draw.choice("abdeilmnorstuäöüé") for _ in range(draw.randint(1, 4))) for _ in range(120)]
    endings = ["", "en", "ing", "ung", "s", "te"]
    for _ in range(count):
        words = ["".join(draw.choices(parts, k=draw.randint(1, 3))) + draw.choice(endings) for _ in range(8)]
        yield " ".join(words) + draw.choice(["", "。", " 2024!", " 我们见面，好吗？", " ひらがな"])


def random_texts(count):
    draw = random.Random(5)
    blocks = (0x20, 0xA0, 0x300, 0x590, 0x900, 0x1100, 0x2580, 0x3000, 0x4E00, 0xAC00, 0xD800, 0xFE00, 0x1F300, 0xE0000)
    favourites = "  \t\0▁▅<>/0x41AEsunkpd\u0301\u200d\ufe0fenß，。们"
    for _ in range(count):
        yield "".join(
            draw.choice(favourites) if draw.random() < 0.5 else chr(draw.choice(blocks) + draw.randrange(0x100))
            for _ in range(draw.randrange(30))
        )


@pytest.fixture(scope="module")
def fitted():
    """Learned once for each set of options."""
    known = {}

    def get(**options):
        options = {"size": 500, **options}
        key = repr(sorted(options.items()))
        if key not in known:
            known[key] = SentencePiece(**options)
            known[key].fit(pseudo_texts())
        return known[key]

    return get


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "options", [{}, {"byte_fallback": False}, {"lowercase": True}, {"split_digits": True}], ids=str
)
def test_nothing_is_lost_but_what_normalize_says(fitted, model, options):
    tokenizer = fitted(model=model, **options)
    for text in [*SCRIPTS, *random_texts(1000)]:
        expected = " ".join(text.split()).replace("▁", "_")
        expected = re.sub("[\ud800-\udfff]", "?", expected.lower() if "lowercase" in options else expected)
        pieces = tokenizer.tokenize(text)
        assert tokenizer.normalize(text) == expected == tokenizer.detokenize(pieces), (text, pieces)
        assert all(pieces) and all(isinstance(piece, str) for piece in pieces)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_size_is_the_number_of_pieces(fitted, model, byte_fallback):
    tokenizer = fitted(model=model, byte_fallback=byte_fallback)
    pieces = tokenizer.pieces()
    assert len(set(pieces)) == len(pieces) == tokenizer.size
    assert not set(pieces) & {*SPECIAL, "<s>", "</s>", " ", ""}
    assert sum(bool(re.fullmatch("<0x[0-9A-F]{2}>", piece)) for piece in pieces) == (256 if byte_fallback else 0)
    for text in pseudo_texts(50):
        assert set(tokenizer.tokenize(text)) <= set(pieces)


def test_an_unknown_character():
    for model in MODELS:
        plain, spelt = (SentencePiece(500, model, byte_fallback=on) for on in (False, True))
        for tokenizer in (plain, spelt):
            tokenizer.fit(pseudo_texts())
        assert plain.tokenize("語👍")[1:] == ["語👍"]
        assert spelt.tokenize("語")[1:] == ["<0xE8>", "<0xAA>", "<0x9E>"]
        assert spelt.detokenize(["▁a", "<0xE8>", "<0xAA>", "▁b", "<0x41>"]) == "a\ufffd bA"  # a character broken off
        assert plain.detokenize(["▁a", "<0x41>"]) == "a<0x41>"


@pytest.mark.parametrize("model", MODELS)
def test_words_one_by_one_are_cut_as_whole_texts(fitted, model):
    """The library given whole texts: an independent way, without our cache by word."""
    tokenizer = fitted(model=model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer._proto)
    for text in [*pseudo_texts(300), *SCRIPTS]:
        assert tokenizer.tokenize(text) == processor.encode(tokenizer.normalize(text), out_type=str)


@pytest.mark.parametrize("model", MODELS)
def test_options_reach_the_library(fitted, model):
    for split in (True, False):
        tokenizer = SentencePiece({"unigram": 10, "bpe": 14}[model], model, byte_fallback=False, split_digits=split)
        tokenizer.fit(["2024 abcabc", "2025 abc abcabc"] * 100)
        assert any(re.search(r"\d\d", piece) for piece in tokenizer.pieces()) is not split
    assert not any(piece != piece.lower() for piece in fitted(model=model, lowercase=True).pieces()[256:])
    texts = [*["abcd efgh"] * 5000, "ab語cd"]
    for coverage, known in ((1.0, True), (0.999, False)):
        tokenizer = SentencePiece(11, model, byte_fallback=False, character_coverage=coverage)
        tokenizer.fit(texts)
        assert ("語" in tokenizer.pieces()) is known


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("size", "byte_fallback"), [(1, True), (100, True), (30_000, True), (1, False), (30_000, False)]
)
def test_a_size_that_cannot_be(model, size, byte_fallback, capfd):
    """The sentence gives the nearest size that can: it is tried, and one beyond it."""
    texts = list(pseudo_texts(10))
    with pytest.raises(
        UserError, match=rf"`size` must be at (most|least) \d+ for these texts, but is {size}: "
    ) as caught:
        SentencePiece(size, model, byte_fallback).fit(texts)
    side, limit = re.search(r"at (most|least) (\d+)", str(caught.value)).groups()
    SentencePiece(int(limit), model, byte_fallback).fit(texts)
    with pytest.raises(UserError, match="`size` must be"):
        SentencePiece(int(limit) + (1 if side == "most" else -1), model, byte_fallback).fit(texts)
    assert capfd.readouterr() == ("", "")


CHARACTERS = "".join(chr(code) for code in range(0x4E00, 0x4E00 + 1200))


def chinese(number):
    """Texts of common and rare characters: each of 1,200 at least once."""
    draw = random.Random(5)
    common = [CHARACTERS[i : i + 8] for i in range(0, 1200, 8)]
    return [draw.choice(common) + "".join(draw.choices(CHARACTERS[:300], k=12)) for _ in range(number)]


@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_an_automatic_size(model):
    """45 √n, within what characters and bytes need, and what the texts hold: both limits are those of the sentences."""
    many = SentencePiece(model=model)
    many.fit(pseudo_texts(4000))
    few = SentencePiece(model=model)
    few.fit(texts := list(pseudo_texts(300)))
    with pytest.raises(UserError, match="at most") as caught:
        SentencePiece(100_000, model).fit(texts)
    most = int(re.search(r"at most (\d+)", str(caught.value))[1])
    assert len(few.pieces()) == min(round(45 * 300**0.5), int(0.7 * most))
    script = SentencePiece(model=model)
    script.fit(texts := chinese(400))
    with pytest.raises(UserError, match="at least") as caught:
        SentencePiece(900, model).fit(texts)
    least = int(re.search(r"at least (\d+)", str(caught.value))[1])
    assert least > 45 * 400**0.5  # the rule alone would be refused
    # The unigram model has no more to learn from words drawn at random than their characters.
    assert len(script.pieces()) == (int(1.25 * least) if model == "bpe" else least)
    assert script.detokenize(script.tokenize(texts[0])) == texts[0]


@pytest.mark.parametrize("texts", [[], ["", "  ", "\t\n\u3000"], ["\0", "▅ ▅"]], ids=repr)
def test_nothing_to_learn_from(texts):
    with pytest.raises(UserError, match="'sentencepiece' has nothing to learn from: all texts are empty"):
        SentencePiece().fit(texts)


def test_learns_from_a_sample_of_bounded_size_drawn_from_all_texts():
    """Of 20,000 texts, at most 500 are held at a time; what is learned comes from beginning, middle and end alike."""
    alive, most, born = set(), 0, 0

    class Kept(str):
        def __init__(self, _):
            nonlocal most, born
            born += 1
            alive.add(id(self))
            most = max(most, len(alive))

        def __del__(self):
            alive.discard(id(self))

    letters = "abcdefghij"
    tokenizer = SentencePiece(30, "bpe", byte_fallback=False, character_coverage=1.0, max_sentences=500)
    tokenizer.fit(Kept(f"{letters[i // 2000] * 3} xyz") for i in range(20_000))
    assert born == 20_000 and most <= 502
    assert set(letters) <= set("".join(tokenizer.pieces()))


@pytest.mark.parametrize("text", ["lorem ", "好"])
def test_long_texts_and_odd_characters_are_learned_from_too(text):
    """The library passes over texts of more than 4,192 bytes, and over those with NUL or U+2585, in silence."""
    for odd in (text * 5000, f"{text}\0", f"▅{text}"):
        tokenizer = SentencePiece(len(set(text)) + 1, byte_fallback=False, character_coverage=1.0)
        tokenizer.fit([odd] * 3)
        assert set(text.strip()) <= set("".join(tokenizer.pieces()))


SPEC = "{name: sentencepiece, size: 500}"


def learned(tokenizer):
    plan = plan_run(load_recipe("base", [f"tokenizer={tokenizer}"]).runs()[0], create_registry())
    texts = list(pseudo_texts())
    examples = [Example(source, target) for source, target in zip(texts[:300], texts[300:])]
    return plan, examples, Codec.learn(plan, examples)


def test_one_tokenizer_serves_both_sides_or_one_each(tmp_path):
    plan, examples, codec = learned(SPEC)
    assert codec.source is codec.target
    only_sources = SentencePiece(500)
    only_sources.fit(example.source for example in examples)
    assert codec.source._proto != only_sources._proto
    codec.save(tmp_path)
    again = Codec.load(plan, tmp_path)
    assert again.source is again.target
    for example in examples[:50]:
        assert again.encode(example) == codec.encode(example)

    _, _, apart = learned(f"{{source: {SPEC}, target: char}}")
    assert apart.source._proto == only_sources._proto
    text = examples[0].target
    assert apart.target.tokenize(text) == list(text)


def test_the_sentence_names_the_side_and_the_way_out():
    with pytest.raises(UserError, match=r"^both sides of the training split: tokenizer .*; `size: auto` chooses one$"):
        learned("{name: sentencepiece, size: 100000}")
    with pytest.raises(UserError, match=r"^the target side of the training split: "):
        learned("{source: {name: sentencepiece, size: 400}, target: {name: sentencepiece, size: 100000}}")


def test_a_damaged_file_is_a_sentence(tmp_path):
    (tmp_path / FILE).write_bytes(b"x")
    with pytest.raises(ValueError, match=r"sentencepiece\.model is damaged"):
        SentencePiece().load(tmp_path)
