"""char, word and mixed: what they change, and the pieces of known texts."""

import random

import pytest

from paddle_tfm_plugins.tokenizer.char import Char
from paddle_tfm_plugins.tokenizer.mixed import Mixed
from paddle_tfm_plugins.tokenizer.word import Word

TOKENIZERS = {
    "char": Char,
    "word": Word,
    "word lowercase": lambda: Word(lowercase=True),
    "mixed": Mixed,
    "mixed lowercase": lambda: Mixed(lowercase=True),
}
SENTENCES = [
    "Two young, White males are outside near many bushes.",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "On March 5th, 2024 it's 25°—isn't it?  (Yes: 3/5!)",
    "2024年3月5日星期二，我们见面。",
    "我叫 Anna，我 25 岁。Tom叫我2次",
    "日本語とカタカナ、ひらがな。ｶﾀｶﾅ 々",
    "안녕하세요, 세계!",
    "สวัสดีครับ नमस्ते दुनिया שָׁלוֹם العَرَبِيَّة",
    "under_score __init__ a▁b ▁ ▁▁x",
    "e\u0301te\u0301 👍🏽👩‍👩‍👧 1\ufe0f\u20e3 İstanbul ΑΣ ﬁ",
    "\u3000 tabs\tand\nlines\x85\x1c here \u2028 ",
]
FAVOURITES = "  \t\n\u3000\u2028▁▁__aAbZßİΣé\u0301\u093f09٣½²,.'-日本語カなー한々。、《\u200d\ufe0f👍"


def random_texts(count):
    draw = random.Random(5)
    for _ in range(count):
        length = draw.randrange(25)
        yield "".join(
            draw.choice(FAVOURITES) if draw.random() < 0.8 else chr(draw.choice([0x250, 0x3000, 0x10000, 0x20000]) + draw.randrange(0x3000))
            for _ in range(length)
        )  # fmt: skip


@pytest.mark.parametrize("name", TOKENIZERS)
def test_what_normalize_changes(name):
    tokenizer = TOKENIZERS[name]()
    for text in [*SENTENCES, *random_texts(500)]:
        expected = " ".join(text.split())
        if name != "char":
            expected = expected.replace("▁", "_")
        if "lowercase" in name:
            expected = expected.lower()
        assert tokenizer.normalize(text) == expected


def test_char():
    assert Char().tokenize(" a  bß日") == ["a", " ", "b", "ß", "日"]


@pytest.mark.parametrize("text", [*SENTENCES, " a  b\n\n c", ""])
def test_exact_characters_are_the_text_itself(text):
    exact = Char(exact=True)
    assert exact.normalize(text) == text
    assert exact.tokenize(text) == list(text) and exact.detokenize(list(text)) == text


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello, world!", "▁Hello , ▁world !"),
        ("It's 25°, Anna", "▁It ' s ▁25 ° , ▁Anna"),
        ("Tuesday, March 5th, 2024", "▁Tuesday , ▁March ▁5 th , ▁2024"),
        ("2024-03-05", "▁2024 - 03 - 05"),
        ("a_b ▁c", "▁a _ b ▁_ c"),
        ("( x )", "▁( ▁x ▁)"),
        ("e\u0301te\u0301!", "▁e\u0301te\u0301 !"),
        ("नमस्ते", "▁नमस्ते"),
        ("5\u0301a", "▁5 \u0301 a"),
        ("2024年3月", "▁2024 年 3 月"),
        ("我们见面。", "▁我们见面 。"),
    ],
)
def test_word(text, pieces):
    assert Word().tokenize(text) == pieces.split(" ")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("我是 Anna。", "我 是 ▁Anna 。"),
        ("Tom叫我2次 吗", "▁Tom 叫 我 2 次 ▁吗"),
        ("2024年3月5日星期二", "▁2024 年 3 月 5 日 星 期 二"),
        ("ひらがなカナー", "ひ ら が な カ ナ ー"),
        ("안녕 세계", "안 녕 ▁세 계"),
        ("《书》", "▁《 书 》"),
        ("Hello, world!", "▁Hello , ▁world !"),
        ("𠀀𠀁", "𠀀 𠀁"),
    ],
)
def test_mixed(text, pieces):
    assert Mixed().tokenize(text) == pieces.split(" ")
