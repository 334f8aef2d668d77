"""A comparison as files: numbers for programs, a page and a figure for people, and each table and figure of the page by
itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from paddle_tfm.comparison.claims import values as claim_values
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.section_output import Part, parts
from paddle_tfm.comparison.report.sections.scores import overview
from paddle_tfm.comparison.runs.finished import grouped
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.comparison.verdict import question, verdict
from paddle_tfm.files import json_text, write_whole
from paddle_tfm.language import _, english
from paddle_tfm.pages.document import Section, document
from paddle_tfm.plotting import image
from paddle_tfm.registry import Registry
from paddle_tfm.runs.sweep_files import COMMAND_FILE, write_look
from paddle_tfm.units import visible


class Report:
    """What is said of a comparison.

    Args:
        registry: has the sections. warn: takes a sentence for each section that failed. slow: also sections that take
            long. files: also every table as CSV and LaTeX, and every figure as SVG and PDF. chosen: texts on which
            attention is shown, instead of some of the test's.
    """

    def __init__(
        self,
        comparison: Comparison,
        registry: Registry,
        warn: Callable[[str], None],
        slow: bool = False,
        files: bool = False,
        chosen: Sequence[str] = (),
    ):
        self.comparison, self.registry, self.warn, self.slow, self.files = comparison, registry, warn, slow, files
        self.facts = Facts(comparison, registry, chosen)

    @cached_property
    def parts(self) -> list[Part]:
        """What each section says."""
        return parts(self.facts, self.registry, self.warn, self.slow, self.files)

    def data(self) -> dict[str, Any]:
        """What `comparison.json` holds."""
        with english():
            sections = {part.name: part.data for part in self.parts if part.data}
            return {**self.comparison.data(), "sections": sections}

    def lines(self) -> list[str]:
        """What the sections say on a terminal."""
        return [line for part in self.parts for line in part.lines]

    def page(self) -> str:
        """The HTML page: question, verdict and figure; folded below, all else."""
        comparison = self.comparison
        return document(
            f"{comparison.name} · {_('comparison')}",
            _("Comparison"),
            comparison.name,
            question(comparison),
            verdict(comparison),
            f'<p class="compared">{escape(self.facts.sentence())}</p>',
            [Section(part.heading, part.html + _links(part), part.summary, part.folded) for part in self.parts],
        )

    def write(self) -> dict[str, Path]:
        """Write `comparison.json`, `.html` and `.png` into the comparison's folder, `claims.json` where the
        recipe claims something, and with `files` every table and figure into `comparison/` there. Returns where each
        is, but for the last.

        The page is one file that needs no other, and no network.
        """
        keep_look(self.comparison)
        folder = Path(self.comparison.folder)
        folder.mkdir(parents=True, exist_ok=True)
        names = {"json": "json", "page": "html", "figure": "png"}
        paths = {what: folder / f"comparison.{ending}" for what, ending in names.items()}
        for part in self.parts:
            for name, content in part.files.items():
                (folder / FILES).mkdir(exist_ok=True)
                content = visible(content) if isinstance(content, str) else content
                write_whole(folder / FILES / name, content, shared=True)
        write_whole(paths["json"], json_text(self.data()), shared=True)
        write_whole(paths["page"], visible(self.page()), shared=True)
        with english():
            write_whole(paths["figure"], image(overview(self.facts), "png"), shared=True)
        if self.comparison.claims is not None:
            paths["claims"] = folder / claim_values.FILE
            claims = claim_values.record(self.comparison, self.comparison.claims)
            write_whole(paths["claims"], json_text(claims), shared=True)
        return paths


def keep_look(comparison: Comparison) -> None:
    """Of listed seeds: with each sweep that these runs are of, that somebody saw them compared, which counts where more
    seeds are listed. A sweep in a folder for reading only gets none."""
    seen = {row.variant for row in comparison.rows if row.difference}
    if comparison.question.plan is not None or not seen:
        return
    sweeps: dict[Path, list[str]] = {}
    for variant, runs in grouped(comparison.runs).items():
        for folder in (run.folder.resolve() for run in runs if variant in (*seen, comparison.baseline)):
            sweeps.setdefault(folder.parent.parent, []).append(f"{folder.parent.name}/{folder.name}")
    for sweep, names in sweeps.items():
        if (sweep / COMMAND_FILE).exists():
            with suppress(OSError):
                write_look(sweep, names)


KINDS = {"csv": "CSV", "tex": "LaTeX", "svg": "SVG", "pdf": "PDF"}  # ending → what a link says
FILES = "comparison"  # the folder of tables and figures, beside the page


def _links(part: Part) -> str:
    """The tables and figures of a section, as files for a paper."""
    kinds = []
    for name, files in groupby(part.files, key=lambda file: file.partition(".")[0]):
        links = " ".join(f'<a href="{FILES}/{file}">{KINDS[file.partition(".")[2]]}</a>' for file in files)
        kinds.append(f"{name} {links}")
    return f'\n<p class="note files">{_("For a paper:")} {" · ".join(kinds)}</p>' if kinds else ""
