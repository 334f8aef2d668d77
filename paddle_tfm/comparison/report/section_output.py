"""What the sections say of a comparison: each asked once, and one that raises left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddle_tfm import plotting
from paddle_tfm.comparison.report.paper import caption, figure_caption
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.errors import UserError
from paddle_tfm.files import json_text
from paddle_tfm.language import _, english
from paddle_tfm.plotting import Picture
from paddle_tfm.protocols import Section
from paddle_tfm.registry import Registry

FORMATS: tuple[Picture, ...] = ("svg", "pdf")  # of a figure, for a paper


@dataclass(frozen=True)
class Part:
    """What one section says. `files`: name → content, of its tables and figures."""

    name: str
    heading: str
    summary: str
    folded: bool
    html: str
    lines: tuple[str, ...]
    data: Mapping[str, Any]
    files: Mapping[str, str | bytes]


def parts(
    facts: Facts, registry: Registry, report: Callable[[str], None], slow: bool = False, files: bool = False
) -> list[Part]:
    """What all sections say that apply, in the order of the page. One that raises is reported, and nothing else is
    lost. slow: also those that take long; files: with their tables and figures as files, a third of a second each."""
    results: list[Part] = []
    for name, section in _sections(registry, report):
        try:
            if (section.slow and not slow) or not section.applies(facts):
                continue
            result = part(name, section, facts, FORMATS if files else ())
            if taken := {file for other in results for file in other.files} & set(result.files):
                raise ValueError(f"another section writes {sorted(taken)[0]} already")
            results.append(result)
        except Exception as error:  # a plugin's code: anything may happen
            report(_sentence(name, error))
    return results


def _sentence(name: str, error: Exception) -> str:
    """What is said of a section that failed."""
    what = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    return f"section '{name}' failed and is left out of the report: {what}"


def _sections(registry: Registry, report: Callable[[str], None]) -> list[tuple[str, Section]]:
    """Every section by its name, in the order of the page."""
    sections = []
    for name in registry.names("section"):
        plan = registry.resolve("section", name, name)
        try:
            if plan.cls is None:
                raise UserError("; ".join(problem.message for problem in plan.problems))
            sections.append((name, plan.cls()))
        except Exception as error:  # a plugin's code
            report(_sentence(name, error))
    return sorted(sections, key=lambda item: (item[1].place, item[0]))


def part(name: str, section: Section, facts: Facts, formats: Sequence[Picture]) -> Part:
    """What a section says, with its tables and figures as files, the figures in `formats`; without any, no file.

    Raises:
        Exception: whatever the section raises; ValueError or TypeError where its data are no JSON.
    """
    with english():  # what programs and papers read
        data, written = section.data(facts), _files(section, facts, formats) if formats else {}
    json_text(data)
    html, lines = section.html(facts), tuple(section.text(facts))
    return Part(name, _(section.heading) or name, _(section.summary), section.folded, html, lines, data, written)


def _files(section: Section, facts: Facts, formats: Sequence[Picture]) -> dict[str, str | bytes]:
    """Raises: whatever the section raises; ValueError for a name that no file has."""
    files: dict[str, str | bytes] = {}
    for key, table in section.tables(facts).items():
        files |= {f"{key}.csv": table.csv(), f"{key}.tex": table.latex(key, caption(facts, table))}
    for key, figure in section.figures(facts).items():
        plotting.caption(figure, figure_caption(facts, section))
        files |= {f"{key}.{kind}": plotting.image(figure, kind, crop=True) for kind in formats}
    for file in files:
        if not re.fullmatch(r"\w[\w-]*\.\w+", file):
            raise ValueError(f"a table or figure is called by letters, digits, - and _, and not {file!r}")
    return files
