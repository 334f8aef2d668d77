"""The runs, and where their folders are."""

from __future__ import annotations

import os
from collections.abc import Callable

from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.finished import Result
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table


class Runs(Section):
    """How each run ended, and where its folder is."""

    heading = "Runs"
    place = 700

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each run."""
        top = facts.top()
        rows = [(variant, run) for variant, group in facts.groups.items() for run in sorted(group, key=_seed)]
        columns = [
            _column("variant", lambda variant, run: variant, right=False),
            _column("seed", lambda variant, run: run.seed),
            _column("steps", lambda variant, run: run.results["steps"]),
            _column("best step", lambda variant, run: run.results["best_step"]),
            _column("end", lambda variant, run: _end(run), right=False),
            _column("folder", lambda variant, run: os.path.relpath(run.folder, top), right=False),
        ]
        return {"runs": Table(columns, rows, f"Folders are in {top}")}


def _seed(run: Result) -> int:
    return run.seed


def _end(run: Result) -> str:
    diverged = run.results.get("diverged")
    return f"diverged: {diverged}" if diverged else "finished"


def _column(name: str, value: Callable[[str, Result], object], right: bool = True) -> Column[tuple[str, Result]]:
    def text(row: tuple[str, Result]) -> str:
        cell = value(*row)
        return f"{cell:,}" if isinstance(cell, int) and name != "seed" else str(cell)

    return Column(name, text, lambda row: {name.replace(" ", "_"): value(*row)}, right=right)
