"""space: what is cut, and what is joined."""

import random
import re

import pytest

from paddle_tfm_plugins.tokenizer.space import Space

TEXTS = ["t͡ʃ ɪ p ˈs", " ɑː  ɑ˞\tma˧˥ ", "a.b x|y a‿b <unk> ▁ _", "", " \u3000\n", "e\u0301 k̚ n̩ t͈ 👩‍👩‍👧"]


@pytest.mark.parametrize("text", TEXTS)
def test_cut_at_spaces_and_nowhere_else(text):
    pieces = Space().tokenize(text)
    assert pieces == [
        piece for piece in text.replace("\t", " ").replace("\n", " ").replace("\u3000", " ").split(" ") if piece
    ]
    assert Space().detokenize(pieces) == Space().normalize(text)


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
