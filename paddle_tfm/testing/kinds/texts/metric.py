"""What holds for a metric by itself: a function of predictions, or of the likelihood of references."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from paddle_tfm.protocols import Likelihood, Metric, Prediction
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip, difference

PAIRS = (  # reference, output of as many words with mistakes in it
    ("the cat sat on the mat .", "the cat lay on a mat ."),
    ("two young men are outside near many bushes .", "two young men are inside near some bushes ."),
    ("die Katze schläft", "die Katze schlief"),
    ("他 昨天 去 了 北京 。", "他 今天 去 了 上海 。"),
    ("a dog runs", "a dog runs"),
)
REFERENCES = [reference for reference, _ in PAIRS]
OUTPUTS = [output for _, output in PAIRS]
MANY = 151  # predictions: no number of examples that a batch may have divides it, nor its double but 2
EVERY_WORD = " ".join(dict.fromkeys(" ".join(REFERENCES).split()))
TWICE = Likelihood(20.0, 16, 20, 80)
RECUT = Likelihood(10.0, 3, 5, 40)  # as likely a text as LIKELY, in half as many pieces
LIKELY, UNLIKELY = Likelihood(10.0, 8, 10, 40), Likelihood(30.0, 5, 10, 40)
CLOSE = 1e-9
EXAMPLES = 20  # of a task
ONLY_LIKELIHOOD = "it looks at the likelihood of references, and at no output"


def predictions(outputs: Iterable[str], references: Iterable[str] = REFERENCES) -> list[Prediction]:
    """An output for each reference; a piece is a word."""
    return [
        Prediction(f"source {i}", reference, output, tuple(reference.split()), tuple(output.split()))
        for i, (reference, output) in enumerate(zip(references, outputs))
    ]


def many(count: int = MANY) -> list[Prediction]:
    """Predictions of several lengths, the first half without mistakes."""
    texts = [" ".join([PAIRS[i % 5][i > count // 2]] * (1 + i % 3)) for i in range(count)]
    return predictions(texts, [" ".join([PAIRS[i % 5][0]] * (1 + i % 3)) for i in range(count)])


def _better(metric: Metric, one: float, other: float) -> bool:
    """Whether `one` is better than `other` by more than rounding."""
    if abs(one - other) <= CLOSE * max(1.0, abs(one), abs(other)):
        return False
    return (one > other) == metric.higher_is_better


@check(
    "metric",
    invariant="the reference scores best: no other output, and no likelier text, gets a better value",
    consequence="it rewards something else, and the best checkpoint is not the best",
    hint="`higher_is_better`; which text is the reference; what is divided by what",
)
def prefers_the_reference(subject: ComponentUnderTest) -> Result:
    metric = subject.build()
    if not metric.needs_search:
        worse, better = (float(metric.compute([], likelihood)) for likelihood in (UNLIKELY, LIKELY))
        if not _better(metric, better, worse):
            return Failed(f"a likelier text gets {better:.4g}, a less likely one {worse:.4g}")
        return Passed()
    texts = _texts_that_tell(subject)
    exact = texts.value(metric, texts.references)
    others = {
        "outputs with mistakes": texts.outputs,
        "empty outputs": [""] * len(texts.references),
        "outputs that belong to other references": _of_others(texts.references),
    }
    values = {what: texts.value(metric, outputs) for what, outputs in others.items()}
    for what, value in values.items():
        if not math.isfinite(value):
            return Failed(f"{what} get {value}")
        if _better(metric, value, exact):
            return Failed(f"the references themselves get {exact:.4g}, {what} {value:.4g}")
    if not any(_better(metric, exact, value) for value in values.values()):
        return Failed(f"the references themselves get {exact:.4g}, and so do {', '.join(values)}")
    return Note(f"of ordinary sentences all get the same; looked at: {texts.name}") if texts.name else Passed()


class _Texts(NamedTuple):
    """References and as many outputs with mistakes. `name`: "" of ordinary sentences."""

    name: str
    references: Sequence[str]
    outputs: Sequence[str]

    def value(self, metric: Metric, outputs: Sequence[str]) -> float:
        return float(metric.compute(predictions(outputs, self.references), LIKELY))


USUAL = _Texts("", REFERENCES, OUTPUTS)


def _of_others(references: Sequence[str]) -> list[str]:
    return [*references[1:], references[0]]


def _texts_that_tell(subject: ComponentUnderTest) -> _Texts:
    """Ordinary sentences; where a metric gives all of them the same, the texts of one task that it reads, if there are
    any: numbers, dates, or the targets of an installed task that needs no options."""
    metric = subject.build()

    def tells(texts: _Texts) -> bool:
        others = (texts.outputs, _of_others(texts.references))
        return any(texts.value(metric, texts.references) != texts.value(metric, each) for each in others)

    def of_tasks() -> Iterator[tuple[str, Iterable[str]]]:
        yield "numbers", ["12", "305", "7", "48", "2024"]
        yield "dates", ["2024-05-01", "1999-12-31", "2010-07-20"]
        for name in subject.registry.names("task"):
            with contextlib.suppress(Exception):  # one that needs options, or data that is not here
                task = subject.registry.build("task", name)
                yield f"task {name}", [each.target for each in islice(task.examples("test"), EXAMPLES)]

    if tells(USUAL):
        return USUAL
    candidates = ((name, list(dict.fromkeys(targets))) for name, targets in of_tasks())
    texts = (_Texts(name, references, _of_others(references)) for name, references in candidates if references)
    return next((each for each in texts if tells(each)), USUAL)


@check(
    "metric",
    invariant="output that is repeated, continues beyond the reference or stops halfway scores worse, not better",
    consequence="a model that never stops, or stops too early, looks better than a correct one",
    hint="a division by the length of the outputs (precision) or a penalty of length; recall alone rewards every word, "
    "precision alone a single sure one",
)
def length_is_no_merit(subject: ComponentUnderTest) -> Result:
    metric = subject.build()
    if not metric.needs_search:
        return Skip(ONLY_LIKELIHOOD)
    texts = _texts_that_tell(subject)
    for kind, outputs in (("references", texts.references), ("outputs with mistakes", texts.outputs)):
        value = texts.value(metric, outputs)
        longer = {"repeated": [f"{text} {text}" for text in outputs],
                  "followed by every word there is": [f"{text} {EVERY_WORD}" for text in outputs]}  # fmt: skip
        for how, long_outputs in longer.items():
            long = texts.value(metric, long_outputs)
            if _better(metric, long, value) or (kind == "references" and not _better(metric, value, long)):
                return Failed(f"the {kind} get {value:.4g}, and {how} {long:.4g}")
    halves = [" ".join(text.split()[: len(text.split()) // 2]) for text in texts.references]
    exact, half = (texts.value(metric, outputs) for outputs in (texts.references, halves))
    if not _better(metric, exact, half):
        return Failed(f"the references get {exact:.4g}, and their first halves {half:.4g}")
    return Passed()


@check(
    "metric",
    invariant="neither the order nor the number of examples matters: every example twice gives the same",
    consequence="the same outputs get two scores; a larger test set gets another one",
    hint="weights by an example's number; a mean of the means of batches; state that one example leaves to the next, "
    "as a cache by the output alone does; a sum where a mean is meant",
)
def order(subject: ComponentUnderTest) -> Result:
    metric = subject.build()
    if not metric.needs_search:
        return Skip(ONLY_LIKELIHOOD)
    for whole in (predictions(OUTPUTS), many()):
        usual, again, reordered = (float(metric.compute(each, LIKELY)) for each in (whole, whole, whole[::-1]))
        if not _same(usual, again):
            return Failed(f"the same examples get {usual:.6g}, and once more {again:.6g}")
        if not _same(usual, reordered):
            return Failed(f"the same {len(whole)} examples in another order get {reordered:.6g} instead of {usual:.6g}")
        twice = float(metric.compute(whole + whole, TWICE))
        if not _same(usual, twice):
            return Failed(f"each of {len(whole)} examples twice gets {twice:.6g} instead of {usual:.6g}")
    used = subject.build()
    for outputs in ([*OUTPUTS[1:], OUTPUTS[0]], REFERENCES):  # the same texts, each beside another one first
        USUAL.value(used, outputs)
    fresh, after = USUAL.value(subject.build(), OUTPUTS), USUAL.value(used, OUTPUTS)
    if not _same(fresh, after):
        return Failed(f"after other examples the same ones get {after:.6g} instead of {fresh:.6g}")
    return Passed()


@check(
    "metric",
    invariant="sums over parts equal the whole: a row of `statistics` depends on its prediction alone, and `value` of "
    "their sum is the metric",
    consequence="resampled test sets, and the intervals of a comparison, belong to another metric",
    hint="`statistics` counts, and `value` divides; means and roots of one example's numbers belong to neither",
)
def sums(subject: ComponentUnderTest) -> Result:
    metric = subject.build()
    if not metric.needs_search:
        values = [float(metric.compute([], likelihood)) for likelihood in (LIKELY, TWICE)]
        if not _same(*values):
            return Failed(f"a split gets {values[0]:.6g}, the same split twice {values[1]:.6g}")
        return Passed()
    if type(metric).statistics is Metric.statistics:
        return Skip("it has no `statistics`: it cannot be resampled, so a comparison pairs seeds only")
    whole = [*predictions(OUTPUTS), *many()]
    rows = np.asarray(metric.statistics(whole))
    if rows.ndim != 2 or len(rows) != len(whole):
        return Failed(f"`statistics` of {len(whole)} predictions must be [{len(whole)}, K], but is {list(rows.shape)}")
    alone = np.concatenate([np.asarray(metric.statistics([each])) for each in whole])
    if failed := difference(rows, alone, "rows of all predictions, and of each alone", CLOSE):
        return failed
    value, computed = float(metric.value(rows.sum(0))), float(metric.compute(whole, LIKELY))
    if not _same(value, computed):
        return Failed(f"`value` of the sums is {value:.6g}, and `compute` {computed:.6g}")
    return Passed()


@check(
    "metric",
    invariant="it declares what it reads: pieces by `needs_pieces`, outputs by `needs_search`, other references by "
    "`several_references`, and `per_piece` if other pieces of the same texts change it",
    consequence="scores of a file, or of an evaluation without a search, are wrong; models are compared that cannot be",
    hint="`needs_pieces`, `needs_search`, `several_references`, `per_piece`",
)
def asks(subject: ComponentUnderTest) -> Result:
    metric = subject.build()
    bare = [Prediction(each.source, each.reference, each.hypothesis) for each in predictions(OUTPUTS)]
    letters = [
        each._replace(reference_pieces=tuple(each.reference), hypothesis_pieces=tuple(each.hypothesis)) for each in bare
    ]
    beside = [each._replace(others=(each.hypothesis,)) for each in predictions(OUTPUTS)]
    value = USUAL.value(metric, OUTPUTS)
    if not metric.needs_search:
        likely = metric.compute([], LIKELY)
        if not _same(value, likely):
            return Failed(f"without outputs {likely:.6g}, with them {value:.6g}")
        recut = float(metric.compute([], RECUT))
    elif metric.several_references != _better(metric, float(metric.compute(beside, LIKELY)), value):
        takes = "takes no" if metric.several_references else "takes"
        return Failed(f"it {takes} other references, but says `several_references = {metric.several_references}`")
    elif not metric.needs_pieces:
        without, other = (float(metric.compute(each, LIKELY)) for each in (bare, letters))
        return Passed() if _same(without, other) else Failed(f"without pieces {without:.6g}, with them {other:.6g}")
    else:
        recut = float(metric.compute(letters, RECUT))
    if not _same(value, recut) and not metric.per_piece:
        return Failed(f"{value:.6g}, and of the same texts in other pieces {recut:.6g}: set `per_piece = True`")
    return Passed()


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
