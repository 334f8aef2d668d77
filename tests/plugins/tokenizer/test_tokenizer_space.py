"""space, and which tokenizers fit phones."""

import os
import random
import re
from pathlib import Path

import pytest

from paddle_tfm_plugins.tokenizer.char import Char
from paddle_tfm_plugins.tokenizer.space import Space

TEXTS = ["t͡ʃ ɪ p ˈs", " ɑː  ɑ˞\tma˧˥ ", "a.b x|y a‿b <unk> ▁ _", "", " \u3000\n", "e\u0301 k̚ n̩ t͈ 👩‍👩‍👧"]


@pytest.mark.parametrize("text", TEXTS)
def test_cut_at_spaces_and_nowhere_else(text):
    pieces = Space().tokenize(text)
    assert pieces == [
        piece for piece in text.replace("\t", " ").replace("\n", " ").replace("\u3000", " ").split(" ") if piece
    ]
    assert Space().detokenize(pieces) == Space().normalize(text)


def test_nothing_is_lost_but_runs_of_white_space():
    draw = random.Random(3)
    for _ in range(2000):
        text = "".join(draw.choice("  \t\u2028aɑ˞˧͡ː.▁👍") for _ in range(draw.randrange(20)))
        assert Space().detokenize(Space().tokenize(text)) == " ".join(text.split()) == Space().normalize(text)


def test_what_subword_nmt_has_cut_is_joined_as_its_authors_do():
    """sed -r 's/(@@ )|(@@ ?$)//g' (README of subword-nmt)."""
    draw, space = random.Random(5), Space(separator="@@")
    for _ in range(2000):
        pieces = [
            draw.choice(["a", "bc", "d.", "x@y", "@"]) + draw.choice(["", "@@"]) for _ in range(draw.randrange(9))
        ]
        text = " ".join(pieces)
        joined = re.sub(r"(@@ )|(@@ ?$)", "", text)
        assert space.tokenize(text) == pieces
        assert space.detokenize(pieces) == space.joined(text) == joined == space.normalize(text)
        assert Space().joined(text) == text
    assert Space(separator="￭").joined("he￭ llo  wor￭\u3000ld") == "hello world"
    for wrong in ("", " ", "@ @"):
        with pytest.raises(ValueError, match="`separator` must be what ends a piece, without white space"):
            Space(separator=wrong)


@pytest.mark.skipif("PADDLE_TFM_DATA" not in os.environ, reason="PADDLE_TFM_DATA does not say where real words are")
def test_graphemes_and_phones():
    """SIGMORPHON 2020: a word is its letters, a pronunciation its phones."""
    folder = Path(os.environ["PADDLE_TFM_DATA"], "sigmorphon2020-g2p")
    rows = [line.split("\t") for path in folder.glob("*_train.tsv") for line in path.read_text("utf-8").splitlines()]
    assert len(rows) > 1000
    for word, phones in rows:
        assert Char().tokenize(word) == list(word)
        assert Space().tokenize(phones) == phones.split(" ")
