"""A formula that is known, tried without asking: of the installed components of its kind the nearest one."""

from __future__ import annotations

from collections.abc import Mapping

from paddle_tfm.component_source import docstring, papers
from paddle_tfm.components import Entry
from paddle_tfm.plugin_errors import summary
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.scene import default_dtype
from paddle_tfm.testing.reference.cases import CASES
from paddle_tfm.testing.reference.compared import Reference, probes, settings_of
from paddle_tfm.testing.reference.installed import Installed
from paddle_tfm.testing.reference.nearest import ROUGH, Likeness, nearest_of
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Result, Skip

SAME, ALIKE = 0.1, 0.6  # of the numbers that agree, and the cosine: from here on it is told what differs


@check(
    *CASES,
    invariant="the nearest formula that is installed, and in what this one differs from it",
    consequence="a known method under its own name computes something else",
    hint="where it is meant to be that formula: `--reference NAME`",
    information=True,
)
def known_formula(subject: ComponentUnderTest) -> Result:
    others = _others(subject)
    if not others:
        return Skip(f"no other plugin brings a {subject.kind}")
    try:
        return _difference(subject, others)
    except Exception as error:  # of anybody's code: the other checks say what is wrong with it
        return Skip(f"it cannot be called in float64 as others are: {summary(error)}")


def _difference(subject: ComponentUnderTest, others: list[Entry]) -> Result:
    with default_dtype("float64"):
        formula = _nearest(subject, others)
        if formula is None:
            return Skip(f"it is like none of the {len(others)} that are installed")
        reference = Reference.of(subject, formula)
        result = reference.compare(ROUGH)
        exact = isinstance(result, Failed) or reference.compare()
    if isinstance(result, Failed):
        differs = reference.cause or result.text
        rates = "; so look at the base and the exponent" if subject.kind == "position" and "channel" in differs else ""
        return Note(f"differs from {formula}: {differs}{rates}")
    if isinstance(exact, Failed):
        return Note(f"agrees with {formula} to {ROUGH:g} of the largest number: an approximation, or rounding")
    return Note(f"agrees with {formula}")


def _others(subject: ComponentUnderTest) -> list[Entry]:
    own = subject.registry.entry(subject.kind, subject.name).provider.plugin
    entries = [entry for entry in subject.registry if entry.kind == subject.kind and not entry.wrong_on_purpose]
    return [entry for entry in entries if entry.provider.plugin not in (own, "paddle_tfm")]


def _nearest(subject: ComponentUnderTest, others: list[Entry]) -> Installed | None:
    """What it agrees with; else, of those that it is named after, or that have most numbers in common, the nearest."""
    settings, first = settings_of(subject), probes(subject, last=False)
    by_name: dict[str, tuple[Likeness, Installed]] = {}
    for entry in others:
        if (near := nearest_of(subject.registry, entry, first, settings, usual=True, crossed=True)) is not None:
            by_name[entry.name] = near
    named = _named(subject, {name: formula.entry for name, (_likeness, formula) in by_name.items()})
    ranked = sorted(by_name, key=lambda name: (by_name[name][0].gap > ROUGH, name not in named, *_rank(by_name[name])))
    some = probes(subject)
    best: list[tuple[Likeness, Installed, bool]] = []
    for name in ranked[:3]:
        if (near := nearest_of(subject.registry, by_name[name][1].entry, some, settings, crossed=True)) is not None:
            if near[0].gap <= ROUGH:
                return near[1]
            best.append((*near, name in named))
    best = [each for each in best if each[2] or each[0].same >= SAME or each[0].cosine >= ALIKE]
    return min(best, key=lambda each: (not each[2], *_rank(each)))[1] if best else None


def _rank(near: tuple) -> tuple[float, str]:
    """Of those that are as near the one whose paper is older: the other has its formula."""
    likeness, formula = near[:2]
    return -round(likeness.same + likeness.cosine, 2), next(iter(papers(docstring(formula.entry.target))), "")


def _named(subject: ComponentUnderTest, entries: Mapping[str, Entry]) -> set[str]:
    """Those whose name is part of its name, or whose paper its docstring names."""
    called, cited = subject.cls.__name__.lower(), set(papers(docstring(subject.cls)))
    return {
        name
        for name, entry in entries.items()
        if name.replace("_", "") in called or cited & set(papers(docstring(entry.target))[:1])
    }
