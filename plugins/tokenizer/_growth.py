"""How much a tokenizer.json, which may come from anyone, makes of a text: a small file and a short text must not fill
the memory."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator

MOST = 10_000  # characters that normalizers make of one
MOST_ADDED = 100_000  # characters that they put before a text
LONGEST_PIECE = 1_000
LONGEST_MARK = 100  # of what stands for an unknown word, or before or behind the pieces of one
LONGEST_WORD = 1_000  # characters of which WordPiece tries all beginnings
# Characters that a normalizer makes of one, at most; the others make none longer.
OF_ONE = {"NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18, "Lowercase": 3, "BertNormalizer": 12, "ByteLevel": 4}
MARKS = ("unk_token", "continuing_subword_prefix", "end_of_word_suffix")


def require_bounded(tokenizer: dict) -> tuple[int, int]:
    """How many characters its normalizers, and its decoders, make of one, at most.

    Raises:
        ValueError: that, or anything else of it, would be more than any tokenizer needs.
    """
    of_one, added = _growth([*_rules(tokenizer.get("normalizer"))])
    decoded, put = _growth([*_rules(tokenizer.get("decoder"))])
    model = tokenizer.get("model") or {}
    pieces = [*_pieces(model), *(str(each.get("content", "")) for each in tokenizer.get("added_tokens") or [])]
    for number, most, what in (
        (of_one, MOST, "it makes {} characters of one"),
        (decoded, MOST, "its decoder makes {} characters of one"),
        (added + put, MOST_ADDED, "it puts {} characters before a text"),
        (max(map(len, pieces), default=0), LONGEST_PIECE, "it has a piece of {} characters"),
        (max(len(str(model.get(mark) or "")) for mark in MARKS), LONGEST_MARK, "it marks pieces by {} characters"),
        (model.get("max_input_chars_per_word") or 0, LONGEST_WORD, "its `max_input_chars_per_word` is {}"),
    ):
        if number > most:
            raise ValueError(f"{what.format(f'{number:,}')}, and at most {most:,} are allowed")
    return of_one, decoded


def _rules(part: object) -> Iterator[dict]:
    """The normalizers, or the decoders, in their order."""
    if isinstance(part, dict) and part.get("type") == "Sequence":
        for each in part.get("normalizers") or part.get("decoders") or []:
            yield from _rules(each)
    elif isinstance(part, dict):
        yield part


def _growth(rules: list[dict]) -> tuple[int, int]:
    """How many characters all rules together make of one at most, and how many they add to a text. Worked out from the
    last to the first: what a rule writes is only rewritten by those behind it."""
    known: dict[str, int] = {}  # characters that a rule replaces → how many become of one
    other, added = 1, 0
    for rule in reversed(rules):
        kind = rule.get("type")
        if kind == "Replace":
            pattern, content = rule.get("pattern") or {}, str(rule.get("content", ""))
            written = sum(known.get(character, other) for character in content)
            literal = pattern.get("String") if isinstance(pattern, dict) else None
            if isinstance(literal, str) and len(literal) == 1:
                known[literal] = written
            elif literal:  # in the place of several characters
                most = math.ceil(written / len(str(literal)))
                known, other = {each: max(number, most) for each, number in known.items()}, max(other, most)
            else:  # it may match anywhere, even between two characters
                known = {character: number + written for character, number in known.items()}
                other, added = other + written, added + written
        elif kind == "Prepend":
            added += sum(known.get(character, other) for character in str(rule.get("prepend", "")))
        else:
            longest = _longest_of(rule) if kind == "Precompiled" else OF_ONE.get(str(kind), 1)
            known, other = {}, longest * max([other, *known.values()])  # one may become any other
        if max(other, added) > 10**12:
            break  # it is refused, and further products would have thousands of digits
    return max([other, *known.values()]), added


def _longest_of(rule: dict) -> int:
    """The longest text that a table of sentencepiece writes for a character: behind the size of a trie and the trie,
    texts that end with a zero."""
    table = base64.b64decode(str(rule.get("precompiled_charsmap") or ""))
    if len(table) < 4:
        return 1
    (size,) = struct.unpack("<I", table[:4])
    return max(1, *(len(text.decode("utf-8", "replace")) for text in table[4 + size :].split(b"\0")))


def _pieces(model: dict) -> Iterator[str]:
    vocabulary = model.get("vocab") or {}
    for each in vocabulary:
        yield str(each if isinstance(vocabulary, dict) else each[0])
