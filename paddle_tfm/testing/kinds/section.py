"""What holds for a section of the report, tried on small comparisons: of many runs, of one, of runs that diverged, and
of folders that lack what can be lacking."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddle_tfm.files import sha256
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result

if TYPE_CHECKING:  # what reports are written with takes a second to load, and no other kind needs it
    from paddle_tfm.comparison.report.section_output import Part
    from paddle_tfm.plotting import Picture
    from paddle_tfm.testing.trials.comparison import Trial

VOID = {"img", "br", "hr", "input", "wbr", "col"}
RUNS_CODE = {"script", "iframe", "object", "embed"}
ADDRESSES = ("src", "href", "xlink:href", "srcset", "poster", "data", "action")


class Elements(HTMLParser):
    """The elements of a piece of a page, and the first thing that is wrong with it."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.wrong = ""
        self.feed(html)
        self.close()
        if self.open:
            self._note(f"<{self.open[-1]}> is not closed")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag in RUNS_CODE or any(name.startswith("on") for name, _ in attrs):
            self._note(f"<{tag}> runs code")
        for name, value in attrs:
            link = tag == "a" and (value or "").startswith("https://")  # to be followed, and not loaded
            if name in ADDRESSES and not link and not (value or "#").startswith(("#", "data:image/", "comparison/")):
                self._note(f"<{tag} {name}> needs {value}")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self._note(f"</{tag}> closes nothing")

    def _note(self, sentence: str) -> None:
        self.wrong = self.wrong or sentence


def _trials(subject: ComponentUnderTest) -> AbstractContextManager[Sequence[Trial]]:
    from paddle_tfm.testing.trials.comparison import trials

    return trials(subject.registry)


def _part(subject: ComponentUnderTest, trial: Trial, formats: Sequence[Picture]) -> Part | None:
    """What it says of a trial, with its tables and figures as files, unless only the page is looked at; None where it
    does not apply."""
    from paddle_tfm.comparison.report.section_output import part

    section = subject.build()
    applies = section.applies(trial.facts)
    if not isinstance(applies, bool):
        raise TypeError(f"`applies` must return a bool, but returns {applies!r}")
    return part(subject.name, section, trial.facts, formats) if applies else None


@check(
    "section",
    invariant="for any finished runs it has content or does not apply: nothing raises, and tables and figures can"
    " be written",
    consequence="it is left out of the report, whenever a run lacks what it expects",
    hint="the error; what a run may lack: predictions, logs, a recipe, a second seed, a value that is a number",
    decisive=True,
)
def renders(subject: ComponentUnderTest) -> Result:
    from paddle_tfm.comparison.report.section_output import FORMATS

    said = 0
    with _trials(subject) as all_trials:
        for trial in all_trials:
            try:
                result = _part(subject, trial, FORMATS)
            except Exception as error:  # the section's own
                return Failed(f"of {trial.what} it raises {type(error).__name__}: {error}", raised=True)
            said += result is not None
            if result and (lines := [line for line in result.lines if len(line.splitlines()) != 1]):
                return Failed(f"`text` must return lines, but one of them is {lines[0]!r}")
            if result and not result.html.strip():
                return Failed(f"of {trial.what} it applies, and has nothing below its heading")
    if not subject.cls.heading:
        return Failed("it has no `heading`")
    return Note(f"it applies to {said} of {len(all_trials)} small comparisons")


@check(
    "section",
    invariant="its HTML is well-formed, runs no script and needs no other file",
    consequence="the page breaks after it, or shows nothing without a network",
    hint="tags that are not closed; pictures as inline SVG (`paddle_tfm.plotting.page_figure`)",
)
def sound_page(subject: ComponentUnderTest) -> Result:
    return _each_page(subject, lambda elements: elements.wrong)


@check(
    "section",
    invariant="users' texts are shown as text: HTML in a variant's name creates no element",
    consequence="a name with < or & breaks the page, or runs a script in it",
    hint="`html.escape` around names, texts and settings; in a figure `$` as `\\$`",
)
def users_text(subject: ComponentUnderTest) -> Result:
    from paddle_tfm.testing.trials.comparison import TAG

    return _each_page(subject, lambda elements: "a name became an element" if TAG in elements.tags else "")


def _each_page(subject: ComponentUnderTest, wrong: Callable[[Elements], str]) -> Result:
    """Failed with what is `wrong` with the first page of which anything is."""
    with _trials(subject) as all_trials:
        pages = [(trial, _part(subject, trial, ())) for trial in all_trials]
    for trial, result in pages:
        if result and (sentence := wrong(Elements(result.html))):
            return Failed(f"of {trial.what}: {sentence}")
    return Passed()


@check(
    "section",
    invariant="the same runs give the same section, and it changes nothing of them",
    consequence="a report that was written twice differs, or the next section sees other runs",
    hint="clocks and random numbers; rows that it sorts in place; files that it writes itself",
)
def same_again(subject: ComponentUnderTest) -> Result:
    with _trials(subject) as all_trials:
        for trial in all_trials:
            before = _state(trial)
            first = _part(subject, trial, ("svg",))  # a PDF, drawn of the same figure, takes ten times as long
            if _state(trial) != before:
                return Failed(f"of {trial.what}: it changes the comparison, or a file of its runs")
            if first != (second := _part(subject, trial, ("svg",))):
                what = next(name for name, value in vars(first).items() if value != getattr(second, name, None))
                return Failed(f"of {trial.what}: asked again, it gives other `{what}`")
    return Passed()


def _state(trial: Trial) -> tuple[str, Mapping[Path, str]]:
    """What no section may change."""
    comparison: Any = trial.facts.comparison
    folder = Path(comparison.folder)
    files = {file: sha256(file) for file in sorted(folder.rglob("*")) if file.is_file()}
    return json.dumps(comparison.data(), default=str), files
