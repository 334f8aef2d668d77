"""The runs, and where their folders are."""

from __future__ import annotations

import os
import shlex
from html import escape
from pathlib import Path

from paddle_tfm.comparison.table import Comparison, grouped


def html(comparison: Comparison) -> str:
    """A table of the runs, and how to see all of their curves."""
    top = _above(comparison)
    board = escape(f"paddle-tfm board {shlex.quote(str(top))}")
    return f"{_table(comparison, top)}\n<p>Every curve, run beside run: <code>{board}</code></p>"


def _table(comparison: Comparison, top: Path) -> str:
    rows = ""
    for variant, group in grouped(comparison.runs).items():
        for run in sorted(group, key=lambda run: run.seed):
            results = run.results
            end = f"diverged: {results['diverged']}" if results.get("diverged") else "finished"
            cells = [str(run.seed), f"{results['steps']:,}", f"{results['best_step']:,}", end]
            rows += f'<tr><th scope="row"><bdi>{escape(variant)}</bdi></th>'
            rows += "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            rows += f'<td class="path"><code>{escape(os.path.relpath(run.folder, top))}</code></td></tr>\n'
    names = ("variant", "seed", "steps", "best step", "end", f"folder in {top}")
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    return f'<div class="wide"><table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>'


def _above(comparison: Comparison) -> Path:
    """The folder that all runs are in, as short as the user would type it."""
    top = Path(comparison.folder).resolve()
    folders = [run.folder.resolve() for run in comparison.runs]
    if not all(folder.is_relative_to(top) for folder in folders):
        top = Path(os.path.commonpath(folders))
    return top.relative_to(Path.cwd()) if top.is_relative_to(Path.cwd()) else top
