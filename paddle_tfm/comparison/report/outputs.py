"""What runs wrote, beside what they should have written: examples that say most, on a page and for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from html import escape
from itertools import pairwise
from typing import NamedTuple

from paddle_tfm.comparison.runs.finished import grouped
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.language import _
from paddle_tfm.pages import document
from paddle_tfm.predictions import is_right, of_same_texts, predictions_of
from paddle_tfm.protocols import Prediction

MAX_PREDICTIONS = 2000  # of a run, among which examples are chosen
MAX_CHARACTERS = 2000  # of a text that a page shows
DIFFERING = 8  # on which variants differ, that a page shows
MAX_SAMPLES = 3  # right ones, and wrong ones, that a terminal shows
Sample = tuple[str, Prediction]  # a variant, and what it wrote


def samples(comparison: Comparison) -> tuple[list[Sample], list[Sample]]:
    """Right and wrong predictions of the best variant's first seed; wrong ones of the next variants if it has none."""
    groups = grouped(comparison.runs)
    good: list[Sample] = []
    for row in comparison.rows:
        whole = [run for run in groups[row.variant] if not run.results.get("diverged")]
        runs = (predictions_of(run.folder) for run in sorted(whole, key=lambda run: run.seed))
        written = [(row.variant, item) for item in next(filter(None, runs), [])]
        good = good or [sample for sample in written if is_right(sample[1])][:MAX_SAMPLES]
        if bad := [sample for sample in written if not is_right(sample[1])][:MAX_SAMPLES]:
            return good, bad
    return good, []


class SideBySide(NamedTuple):
    """A source, its references, what each variant wrote, and why it was chosen."""

    why: str
    source: str
    references: tuple[str, ...]
    outputs: dict[str, str]
    seed: int | None


def side_by_side(comparison: Comparison) -> list[SideBySide]:
    """Outputs of the same seed, that of which most variants have any, for sources that say most."""
    groups = grouped(comparison.runs)
    chosen: dict[str, Sequence[Prediction]] = {}
    for seed in sorted({run.seed for run in comparison.runs}):
        of_seed: dict[str, Sequence[Prediction]] = {}
        for row in comparison.rows:
            for run in groups[row.variant]:
                if run.seed == seed and not run.results.get("diverged"):
                    of_seed[row.variant] = predictions_of(run.folder)[:MAX_PREDICTIONS]
        of_seed = of_same_texts(of_seed)
        if len(of_seed) > len(chosen):
            chosen, chosen_seed = of_seed, seed
    return choose(chosen, chosen_seed) if chosen else []


def choose(predictions: Mapping[str, Sequence[Prediction]], seed: int | None = None) -> list[SideBySide]:
    """Of the predictions of each variant for the same sources those that say most: where they differ most, the hardest,
    and the one in the middle. Of a single variant: the hardest, the middle and the best."""
    unique: dict[tuple, Sequence[Prediction]] = {}  # the split may have a source several times
    for outputs in zip(*predictions.values()):
        unique.setdefault((outputs[0].source, outputs[0].references), outputs)
    rows = list(unique.values())
    likeness = [[max(similarity(each, item.hypothesis) for each in item.references) for item in row] for row in rows]
    return [
        SideBySide(
            why,
            rows[i][0].source,
            rows[i][0].references,
            {variant: item.hypothesis for variant, item in zip(predictions, rows[i])},
            seed,
        )
        for why, i in _choose(likeness)
    ]


def _choose(likeness: Sequence[Sequence[float]]) -> list[tuple[str, int]]:
    """Reasons and numbers of examples, each once."""
    numbers, means = range(len(likeness)), [sum(row) / len(row) for row in likeness]
    by_mean = sorted(numbers, key=lambda i: means[i])
    wide = sorted(numbers, key=lambda i: min(likeness[i]) - max(likeness[i]))
    wide = [i for i in wide if max(likeness[i]) > min(likeness[i])][:DIFFERING]
    single = len(likeness[0]) == 1
    reasons = [(_("the variants differ most here"), i) for i in wide]
    hardest = by_mean[: 3 if single else 1]
    reasons += [
        (_("among the least like their references") if single else _("the least like its reference"), i)
        for i in hardest
    ]
    reasons.append((_("in the middle"), by_mean[len(by_mean) // 2]))
    reasons += [(_("among the most like their references"), i) for i in by_mean[-2:]] if single else []
    return list({i: (why, i) for why, i in reversed(reasons)}.values())[::-1]


def similarity(reference: str, hypothesis: str) -> float:
    """2 |A ∩ B| / (|A| + |B|) of the texts' characters and pairs of neighbouring characters, as multisets (Dice): 1
    where they are equal, 0 where they share none. It chooses examples and decides nothing."""
    if reference == hypothesis:
        return 1.0
    one, other = _bigrams(reference), _bigrams(hypothesis)
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _bigrams(text: str) -> Counter[str]:
    return Counter(text) + Counter(first + second for first, second in pairwise(text))


# ------------------------------------------------------------------------------------------------------------- a page

NOTHING = "None were recorded: there is no test split, no metric needs outputs, or no run finished."


def examples(chosen: Sequence[SideBySide], numbers: Mapping[str, int]) -> str:
    """A block for each source: its references, and below them what each variant wrote. `numbers`: of their colours."""
    if not chosen:
        return f"<p>{_(NOTHING)}</p>"
    several = len(chosen[0].outputs) > 1
    which = _("those on which the variants differ most, the hardest and a typical one")
    which = which if several else _("the hardest, a typical one and the best")
    whose = "" if chosen[0].seed is None else _(" of seed {number}").format(number=chosen[0].seed)
    note = _("Outputs{whose}: {which}. Marked in an output is what the reference does not have.")
    note = note.format(whose=whose, which=which)
    return document.notes([note]) + "".join(_example(item, numbers) for item in chosen)


def _example(item: SideBySide, numbers: Mapping[str, int]) -> str:
    single = len(item.outputs) == 1
    texts = {_("source"): escape(item.source[:MAX_CHARACTERS])}
    for number, reference in enumerate(item.references, 1):
        name = _("reference") if number == 1 else f"{_('reference')} {number}"
        is_marked = single and len(item.references) == 1
        shown = escape(reference[:MAX_CHARACTERS])
        texts[name] = marked(reference, *item.outputs.values())[0] if is_marked else shown
    outputs = {
        document.named(numbers[variant], variant): f"✓ {escape(hypothesis[:MAX_CHARACTERS])}"
        if hypothesis in item.references
        else marked(max(item.references, key=lambda each: similarity(each, hypothesis)), hypothesis)[1]
        for variant, hypothesis in item.outputs.items()
    }
    return (
        f'<div class="example"><h3>{escape(item.why)}</h3>{_pairs(texts, "outputs texts")}'
        f"{_pairs(outputs, 'outputs')}</div>\n"
    )


def _pairs(texts: Mapping[str, str], kind: str) -> str:
    rows = "".join(f'<div><dt>{name}</dt><dd dir="auto">{text}</dd></div>' for name, text in texts.items() if text)
    return f'<dl class="{kind}">{rows}</dl>'


def marked(reference: str, hypothesis: str) -> tuple[str, str]:
    """Both texts as HTML: what the hypothesis lacks is marked in the reference, what it has too much in itself."""
    first, second = reference[:MAX_CHARACTERS], hypothesis[:MAX_CHARACTERS]
    left, right = "", ""
    for kind, i, j, k, m in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        a, b = escape(first[i:j]), escape(second[k:m])
        left += a if kind == "equal" or not a else f'<mark class="missing">{a}</mark>'
        right += b if kind == "equal" or not b else f'<mark class="extra">{b}</mark>'
    return left, right or "<i>nothing</i>"
