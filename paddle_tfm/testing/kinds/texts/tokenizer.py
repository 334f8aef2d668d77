"""What holds for a tokenizer by itself: texts of several scripts, there and back."""

from __future__ import annotations

import tempfile
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from paddle_tfm.data.vocabulary import Vocabulary
from paddle_tfm.protocols import Tokenizer
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.other_process import as_in_another_process
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip

SENTENCES = (
    "Two young, White males are outside near many bushes.", "A man in a blue shirt is standing on a ladder.",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.", "Größere Straßen führen über die Brücke.",
    "我们 昨天在北京见面。", "今天天气很好，我们去公园吧！", "東京は日本の首都です。", "カタカナとひらがなを書く。",
    "나는 어제 서울에서 친구를 만났다.", "Молодые люди стоят на улице.", "Οι άνθρωποι περπατούν στην πόλη.",
    "ذهبت إلى المدرسة صباح اليوم.", "मैं कल दिल्ली गया था।", "ฉันไปโรงเรียนทุกวัน",
)  # fmt: skip
TRAINING = SENTENCES * 20
UNSEEN = (
    "", "a", "It's 25°, isn't it? (No: 3.14 or 1,000.)", "the quick brown fox jumps over the lazy dog",
    "völlig unbekannte Wörter: Donaudampfschifffahrt", "鑫森淼焱垚", "Привет, мир! 你好 hello", "👍🏽 👩‍👩‍👧 e\u0301",
    "hyphen-ated under_score a/b @ # <unk> <pad>", "  two  spaces,\ta tab\nand a line  ", "t͡ʃ ɪ p ˈs",
    "McDonald's iPhone, O'Neill of NASA and eBay: LaTeX v2.0B A4", "GROẞE STRASSE, große Straße, ΟΔΟΣ οδός İzmir ǅ",
)  # fmt: skip
DRAWS = 8


def learned(subject: ComponentUnderTest) -> Tokenizer:
    """The tokenizer, after it learned from texts that can be gone through once."""
    tokenizer = subject.build()
    tokenizer.fit(iter(TRAINING))
    return tokenizer


def cut(tokenizer: Tokenizer, texts: Iterable[str]) -> dict[str, list[str]]:
    """The pieces of each text."""
    return {text: list(tokenizer.tokenize(text)) for text in texts}


def reloaded(subject: ComponentUnderTest, tokenizer: Tokenizer) -> Tokenizer:
    """Another one, which loads what the tokenizer saves."""
    loaded = subject.build()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(Path(folder))
        loaded.load(Path(folder))
    return loaded


def differs(one: dict[str, list[str]], other: dict[str, list[str]], what: str) -> Failed | None:
    """Failed with the first text that is not cut alike."""
    for text, pieces in one.items():
        if pieces != other[text]:
            return Failed(f"{text!r} is {pieces[:12]}, {what} {other[text][:12]}")
    return None


@check(
    "tokenizer",
    invariant="detokenize(tokenize(text)) is normalize(text), in every script",
    consequence="translations of a correct model lack letters, spaces or accents",
    hint="where a piece remembers the space before it; characters that no rule expects; what is lost on purpose "
    "belongs in `normalize`",
)
def round_trip(subject: ComponentUnderTest) -> Result:
    tokenizer = learned(subject)
    for text in (*SENTENCES, *UNSEEN):
        normal, back = tokenizer.normalize(text), tokenizer.detokenize(list(tokenizer.tokenize(text)))
        if back != normal:
            return Failed(f"{text!r} comes back as {back!r}, and `normalize` gives {normal!r}")
        if tokenizer.normalize(normal) != normal:
            return Failed(f"`normalize` changes what it gave: {normal!r} to {tokenizer.normalize(normal)!r}")
    return Passed()


@check(
    "tokenizer",
    invariant="`normalize` keeps the text: different sentences stay different, and none becomes empty",
    consequence="the round trip only succeeds because `normalize` removes what would be lost",
    hint="`normalize` removes what `tokenize` cannot cut; it is for runs of spaces, case, and such; without accents by "
    "design: declare it in `expected_failures`",
)
def keeps_text(subject: ComponentUnderTest) -> Result:
    tokenizer = learned(subject)
    texts = [*SENTENCES, *(text for text in UNSEEN if text)]
    normal: dict[str, str] = {}
    for text in texts:
        key = tokenizer.normalize(text)
        if not key.strip():
            return Failed(f"`normalize` leaves nothing of {text!r}")
        if key in normal:
            return Failed(f"{text!r} and {normal[key]!r} both become {key!r}")
        normal[key] = text
    for text in texts:
        plain = "".join(letter for letter in unicodedata.normalize("NFD", text) if unicodedata.category(letter) != "Mn")
        if plain != unicodedata.normalize("NFD", text) and tokenizer.normalize(plain) == tokenizer.normalize(text):
            return Failed(f"{text!r} and {plain!r} both become {tokenizer.normalize(text)!r}")
    changed = [text for text in texts if tokenizer.normalize(text) != " ".join(text.split())]
    if changed:
        return Note(f"{len(changed)} of {len(texts)} texts change by more than white space, such as {changed[0]!r} to "
                    f"{tokenizer.normalize(changed[0])!r}")  # fmt: skip
    return Passed()


@check(
    "tokenizer",
    invariant="pieces are texts, none empty; `pieces()` lists each piece that always belongs in the vocabulary once",
    consequence="an id for an empty piece in each sentence, or two ids for one piece",
    hint="`pieces()` is for pieces that the training texts may lack; theirs are in the vocabulary anyway",
)
def vocabulary(subject: ComponentUnderTest) -> Result:
    tokenizer = learned(subject)
    if not isinstance(pieces := tokenizer.tokenize(SENTENCES[0]), (list, tuple)):
        return Failed(f"`tokenize` must return a list, which is read twice, but returns a {type(pieces).__name__}")
    seen = cut(tokenizer, (*SENTENCES, *UNSEEN))
    for text, pieces in seen.items():
        if wrong := [piece for piece in pieces if not isinstance(piece, str) or not piece]:
            return Failed(f"{text!r}: a piece is {wrong[0]!r}")
    always = tokenizer.pieces()
    if len(always) != len(set(always)):
        return Failed(f"`pieces()` names {len(always) - len(set(always))} pieces twice")
    known = Vocabulary.learn((seen[text] for text in SENTENCES), always=always)
    unknown = [piece for text in UNSEEN for piece in seen[text] if piece not in known.ids]
    total = sum(len(seen[text]) for text in UNSEEN)
    return Note(
        f"{len(known):,} pieces; {100 * len(unknown) / max(total, 1):.0f}% of the pieces of new texts are unknown"
    )


@check(
    "tokenizer",
    invariant="pieces depend on the text and on what was learned, not on the order or number of calls",
    consequence="the same sentence is cut in two ways, and the model learned only one of them",
    hint="caches keyed by too little; counters; random draws in `tokenize` instead of `sample`; `hash` of a text and "
    "the order of a set, which are others in each process",
)
def same_pieces(subject: ComponentUnderTest) -> Result:
    tokenizer, texts = learned(subject), (*SENTENCES, *UNSEEN)
    first = cut(tokenizer, texts)
    if failed := differs(first, cut(tokenizer, texts[::-1]), "and in another order"):
        return failed
    with as_in_another_process():
        again = learned(subject)
        if failed := differs(first, cut(again, texts), "and learned again, by another process,"):
            return failed
    if list(tokenizer.pieces()) != list(again.pieces()):
        return Failed("learned again from the same texts, `pieces()` differ")
    if (other_order := subject.in_another_order()) is not None:
        other_order.fit(iter(TRAINING))
        if failed := differs(first, cut(other_order, texts), "and with sets in the order of another process"):
            return failed
        if list(tokenizer.pieces()) != list(other_order.pieces()):
            return Failed("with sets in the order of another process, `pieces()` are in another order")
    of_a_list = subject.build()
    of_a_list.fit(list(TRAINING))
    return differs(first, cut(of_a_list, texts), "and learned from a list, which can be read twice,") or Passed()


@check(
    "tokenizer",
    invariant="saved and loaded, it gives the same pieces",
    consequence="a finished run translates with other ids than it was trained with",
    hint="`save` and `load`: all that `fit` learned; what the constructor sets, it sets again",
)
def saved(subject: ComponentUnderTest) -> Result:
    tokenizer, texts = learned(subject), (*SENTENCES, *UNSEEN)
    loaded = reloaded(subject, tokenizer)
    if failed := differs(cut(tokenizer, texts), cut(loaded, texts), "and loaded"):
        return failed
    for text, pieces in cut(tokenizer, texts).items():
        if loaded.detokenize(pieces) != tokenizer.detokenize(pieces):
            return Failed(f"loaded, it joins {pieces[:12]} to {loaded.detokenize(pieces)!r} instead of {text!r}")
    if list(tokenizer.pieces()) != list(loaded.pieces()):
        return Failed(
            f"`pieces()`: {len(tokenizer.pieces())} before, {len(loaded.pieces())} loaded, or in another order"
        )
    return Passed()


@check(
    "tokenizer",
    invariant="a random segmentation joins to the same text, and is a function of the text and of `rng`",
    consequence="training on other texts than those of the corpus; a resumed run is another run",
    hint="`sample` draws from `rng` and from nothing else",
    name="sample",
)
def sampled(subject: ComponentUnderTest) -> Result:
    tokenizer, texts = learned(subject), (*SENTENCES, *UNSEEN)
    other, cuts = False, set()
    for text in texts:
        usual = list(tokenizer.tokenize(text))
        for seed in range(DRAWS):
            one, two = (list(tokenizer.sample(text, np.random.default_rng(seed))) for _ in range(2))
            if one != two:
                return Failed(f"{text!r}, drawn twice with the same `rng`, is {one[:12]} and {two[:12]}")
            if tokenizer.detokenize(one) != tokenizer.detokenize(usual):
                return Failed(f"{text!r}: {one[:12]} joins to {tokenizer.detokenize(one)!r}")
            other = other or one != usual
            cuts.add((text, *one))
    if other and not tokenizer.sampling:
        return Failed("`sample` draws, but `sampling` is False: its cuts are kept for all epochs")
    if tokenizer.sampling and len(cuts) == len(texts):
        return Failed(f"`sampling` is True, but each text is cut in one way only, in {DRAWS} draws")
    return Passed() if tokenizer.sampling else Skip("it draws nothing (`sampling` is False)")
