"""What must stand beside a score, so that nobody takes it for what it is not: outputs that were cut, references longer
than any output, texts that were trained on, outputs that repeat themselves, a vocabulary too large for its texts.
Counted where texts are scored, kept in `results.json`. Needs no Paddle."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, compress, islice, pairwise
from typing import Any

from paddle_tfm.language import _, enumerated
from paddle_tfm.text_lengths import lengths
from paddle_tfm.units import AT

Pieces = Sequence[Hashable]

CUT_SHARE = 0.01  # of outputs that are cut where references fit: a sound model may have as many


@dataclass
class Reach:
    """How texts fit into what a model may read and write, counted in pieces.

    `cut`: outputs as long as an output may be; `beyond`: references longer than that, up to `longest` pieces.
    `by_search`: where, of these, the search has the narrower bound. `long`: texts that are read and longer than any in
    training. `most`: pieces of an output, by model.max_length.
    """

    texts: int = 0
    cut: int = 0
    beyond: int = 0
    longest: int = 0
    by_search: int = 0
    long: int = 0
    most: int = 0

    def add(
        self, source: int, limit: float = math.inf, output: int = 0, reference: int = 0, whole: bool = False
    ) -> None:
        """Count a text: the pieces of its source, of the longest output allowed, of output and reference where there
        are any, no end among them. `whole`: whether the output certainly is."""
        cut, beyond = output >= limit and not whole, reference > limit
        self.texts += 1
        self.cut += cut
        self.beyond += beyond
        self.longest = max(self.longest, reference)
        self.by_search += (cut or beyond) and limit < self.most
        self.long += source > self.most

    def sentences(self, test: str = "") -> list[str]:
        """None where all fits. `test`: the name of a further test, whose texts these are."""
        said = []
        numbers = {name: f"{number:,}" for name, number in asdict(self).items()}
        if self.cut or self.beyond:
            fits = _(
                "{cut} of {texts} outputs were cut at {limit}; each reference fits, so they found no end by themselves"
            )
            both = _(
                "{cut} of {texts} outputs were cut at {limit}; {beyond} of {texts} references have more, up to "
                "{longest}; {remedy}"
            )
            outputs = _("{cut} of {texts} outputs were cut at {limit}; {remedy}")
            references = _("{beyond} of {texts} references have more than {limit}, up to {longest}; {remedy}")
            text = (both if self.cut else references) if self.beyond else outputs if self._is_narrow else fits
            if self._is_narrow or self.cut >= CUT_SHARE * self.texts:
                said.append(text.format(**numbers, limit=self._limit(), remedy=self._remedy(test)))
        if self.long and not self.beyond:
            text = _(
                "{long} of {texts} texts have more than the {most} pieces that any text of training had "
                "(model.max_length)"
            )
            said.append(text.format(**numbers))
        return said

    @property
    def _is_narrow(self) -> bool:
        """Whether longer outputs would help; where there are no references, nobody knows."""
        return self.beyond > 0 or self.longest == 0

    def _limit(self) -> str:
        if self.by_search == 0:
            return _("{most} pieces (model.max_length − 1)").format(most=f"{self.most:,}")
        return _("the search's limit") if self._all_by_search() else _("the limit of search or model")

    def _remedy(self, test: str) -> str:
        if self._all_by_search():
            return _("raise the search's max_ratio, max_extra or max_length")
        if self.by_search:
            return _("raise the search's max_ratio, max_extra or max_length, and model.max_length")
        if not test:
            return _("raise model.max_length")
        text = _(
            "raise model.max_length, or set evaluate.tests.{test}.max_length if its encodings know positions beyond"
        )
        return text.format(test=test)

    def _all_by_search(self) -> bool:
        return self.by_search >= max(self.cut, self.beyond) > 0

    def __add__(self, other: Reach) -> Reach:
        """Of texts in two runs."""
        one, two = asdict(self), asdict(other)
        return Reach(**{
            name: max(one[name], two[name]) if name in ("longest", "most") else one[name] + two[name] for name in one
        })  # fmt: skip


FEW_PAIRS = 10_000  # up to so many pairs, the recipe few-pairs is the better beginning
BY_HEART = 100  # fewer pairs are there to be learned by heart
# Occurrences of a piece, on average. Of 2,000 pairs of Tatoeba one side has 8 with base.yaml (chrF 7) or with
# tatoeba-en-zh; with `few-pairs` 11 (chrF 11). No other recipe that ships has fewer than 28.
SELDOM = 10


def seldom(pairs: Iterable[tuple[Pieces, Pieces]]) -> list[str]:
    """A sentence where the pieces of a few training pairs occur too seldom to be learned (arXiv:2004.02334)."""
    few = [*islice(pairs, FEW_PAIRS + 1)]
    if not BY_HEART <= len(few) <= FEW_PAIRS:
        return []
    parts = []
    sides = (
        _("{number} different source pieces, {times} times each"),
        _("{number} different target pieces, {times} times each"),
    )
    for side, texts in zip(sides, zip(*few)):
        often = Counter(chain.from_iterable(texts))
        if often.total() < SELDOM * len(often):
            parts.append(side.format(number=f"{len(often):,}", times=f"{often.total() / len(often):.0f}"))
    text = _(
        "train has {pairs} pairs with {pieces} on average: too seldom to be learned. Fewer pieces occur oftener "
        "(tokenizer.size, vocabulary.min_frequency); the recipe `few-pairs` is made for up to {most} pairs"
    )
    return [text.format(pairs=f"{len(few):,}", pieces=enumerated(parts), most=f"{FEW_PAIRS:,}")] if parts else []


OFTENER = 5  # times as many outputs as references repeat themselves, before that is said
REPEATED = {  # kind → (share of the outputs from which on it is said, words)
    "empty": (0.5, "{share} of the outputs{where} are empty{few}"),
    "same": (0.5, "{share} of the outputs{where} are one and the same{few}"),
    "shared": (0.5, "{share} of the outputs{where} are written for several sources, word for word{few}"),
    "beginning": (0.5, "{share} of the outputs{where} begin with the same three {unit}{few}"),
    "ending": (0.5, "{share} of the outputs{where} end in the same three {unit}{few}"),
    "loops": (0.1, "{share} of the outputs{where} repeat the same pieces over and over{few}"),
}


def causes() -> str:
    """What stands behind the first sentence of outputs that repeat themselves."""
    text = _(
        ": little was learned yet. Likely too few pairs or steps, or a learning rate that does not fit; the recipe "
        "`few-pairs` is made for up to {most} pairs (docs/translate-your-own.md, “Few pairs” and “Troubleshooting”)"
    )
    return text.format(most=f"{FEW_PAIRS:,}")


def repetition(texts: Sequence[tuple[str, str]], pieces: Sequence[tuple[Pieces, Pieces]]) -> dict[str, int]:
    """How many of the wrong outputs repeat themselves, by kind (`REPEATED`), and how many `references_…` do, as some
    tasks have few different outputs that are right: for `repeats`.

    Args:
        texts: each output and its reference; pieces: the same, cut.
    """
    unit, _ = lengths([reference for _, reference in texts])
    cut = str.split if unit == "words" else (lambda text: [*"".join(text.split())])
    wrong = [output != reference for output, reference in texts]
    outputs, references = zip(*texts) if texts else ((), ())
    written, right = zip(*pieces) if pieces else ((), ())
    ours = _repeating([*map(cut, compress(outputs, wrong))], [*compress(written, wrong)])
    theirs = {f"references_{name}": number for name, number in _repeating([*map(cut, references)], right).items()}
    return {"texts": len(texts), unit: len(texts), **ours, **theirs}


def _repeating(texts: Sequence[Pieces], pieces: Sequence[Pieces]) -> dict[str, int]:
    whole = Counter(map(tuple, filter(None, texts)))
    long = [text for text in texts if len(text) > 3]
    beginnings, endings = (Counter(tuple(text[part]) for text in long) for part in (slice(3), slice(-3, None)))
    return {
        "empty": sum(not text for text in texts),
        "same": max(whole.values(), default=0),
        "shared": sum(number for number in whole.values() if number > 1),
        "beginning": max(beginnings.values(), default=0),
        "ending": max(endings.values(), default=0),
        "loops": sum(map(_loops, pieces)),
    }


def _loops(pieces: Pieces) -> bool:
    """Whether a piece comes three times in a row, or half of the pairs of neighbours came before."""
    pairs = [*pairwise(pieces)]
    in_a_row = any(one == two and one[0] == one[1] for one, two in pairwise(pairs))
    return in_a_row or (len(pairs) >= 3 and 2 * len(set(pairs)) <= len(pairs))


def repeats(runs: Sequence[Mapping[str, int]]) -> str:
    """That the outputs of runs, of which `repetition` counted, repeat themselves; "" where they do not."""
    for name, (share, words) in REPEATED.items():
        repeating = [counts for counts in runs if _is_repeated(counts, name, share)]
        if repeating:
            keys = ("texts", name, f"references_{name}")
            texts, number, of_references = (sum(counts.get(key, 0) for counts in repeating) for key in keys)
            where = _(" in {number} of {runs} runs").format(number=len(repeating), runs=len(runs))
            few = _(" (of the references {share})").format(share=f"{of_references / texts:.0%}")
            sentence = _(words).format(
                share=f"{number / texts:.0%}",
                where="" if len(repeating) == len(runs) else where,
                unit=_("words") if "words" in repeating[0] else _("characters"),
                few=few if of_references >= 0.02 * texts else "",
            )
            return f"{sentence}{causes()}"
    return ""


def _is_repeated(counts: Mapping[str, int], name: str, share: float) -> bool:
    texts, of_references = (counts.get(key, 0) for key in ("texts", f"references_{name}"))
    return texts > 0 and counts.get(name, 0) >= max(share * texts, OFTENER * max(of_references, 1))


def overlap(in_training: Mapping[str, Mapping[str, int]], even_none: bool = False) -> str:
    """How many sources and pairs were trained on; "" where none was, unless that is to be said.

    Args:
        in_training: split, or `test@name` → counts of its `texts`, and of the `sources` and `pairs` (of texts alone no
            pairs) that the training split has too.
    """
    parts = []
    of_pairs, of_texts = (
        _("{sources} of {texts} sources and {pairs} pairs of {split}"),
        _("{sources} of {texts} texts of {split}"),
    )
    for split, counts in in_training.items():
        numbers = {name: f"{counts.get(name, 0):,}" for name in ("sources", "texts", "pairs")}
        parts.append((of_pairs if "pairs" in counts else of_texts).format(**numbers, split=_(split)))
    is_none = not any(counts.get("sources") for counts in in_training.values())
    text = _("in the training split too: {parts}").format(parts=_("; ").join(parts))
    return "" if not parts or (is_none and not even_none) else text


CUT = {  # by what texts look cut → the mark, and what helps
    "subword-nmt": (r"\S@@ ", "@@ ", "`tokenizer: {name: space, separator: '@@'}` joins them"),
    "SentencePiece": (r"(^| )▁\w", "▁", "give the texts as they were before, with `tokenizer: sentencepiece`"),
    "WordPiece": (r" ##\w", "##", "give the texts as they were before, with `tokenizer: sentencepiece`"),
}
OFTEN = 0.2  # of texts that look cut


def looks_cut(targets: Sequence[str]) -> list[str]:
    """A sentence where texts, as they are scored, look like pieces of words."""
    for program, (pattern, mark, remedy) in CUT.items():
        number = sum(bool(re.search(pattern, text)) for text in targets)
        if number > OFTEN * len(targets):
            text = _(
                "{number} of the first {targets} targets of train hold “{mark}”: {program} seems to have cut them, and "
                "scores and outputs would be of pieces; {remedy}"
            )
            numbers = {"number": f"{number:,}", "targets": f"{len(targets):,}"}
            return [text.format(**numbers, mark=mark, program=program, remedy=_(remedy))]
    return []


def said(variants: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """What must stand beside the scores of runs.

    Args:
        variants: name → what `results.json` of each of its runs holds.
    """
    alike: dict[tuple, dict[str, list]] = {}  # texts, their limits, what is to be said but for its numbers → variants
    for variant, runs in variants.items():
        stored = [run.get("caveats") or {} for run in runs]
        for texts in dict.fromkeys(texts for each in stored for texts in each):
            here = [each[texts] for each in stored if texts in each]
            kind = re.sub(r"\d[\d.,]*", "", " ".join(_of_runs(here, texts)))
            limits = frozenset(each.get("reach", {}).get("most", 0) for each in here)
            alike.setdefault((texts, limits, kind), {})[variant] = here
    lines: dict[str, dict[str, list[str]]] = {}  # of which texts → sentence, of all of its variants → these
    for (texts, *_alike), of in alike.items():
        for sentence in _of_runs([each for here in of.values() for each in here], texts):
            lines.setdefault(texts, {}).setdefault(sentence, []).extend(of)
    if any("test" in (run.get("caveats") or {}) for runs in variants.values() for run in runs):
        lines.pop("valid", None)  # the scores are of the test

    def which(texts: str, names: Sequence[str]) -> str:
        each = _("each variant") if len(names) == len(variants) else enumerated(names)
        return _("{texts}, {variants}").format(texts=_(texts), variants=each) if len(variants) > 1 else texts

    notes = [beside(which(texts, names), text) for texts, here in lines.items() for text, names in here.items()]
    repeating = next((i for i, sentence in enumerate(notes) if sentence.endswith(causes())), None)
    notes = [sentence.removesuffix(causes()) for sentence in notes]
    if repeating is not None:  # the first tells the causes
        notes[repeating] += causes()
    return notes


def _of_runs(caveats: Sequence[Mapping[str, Any]], texts: str) -> list[str]:
    """What is to be said of runs together, scored on these texts."""
    reach = sum((Reach(**each.get("reach", {})) for each in caveats), Reach())
    counts = [each["repetition"] for each in caveats if "repetition" in each]
    return [*filter(None, [repeats(counts)]), *reach.sentences(texts.partition(AT)[2])]


def beside(which: str, sentence: str) -> str:
    """A sentence, with the texts that it is of."""
    return _("{which}: {sentence}").format(which=_(which), sentence=sentence)
