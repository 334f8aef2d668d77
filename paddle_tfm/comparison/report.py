"""A comparison as files: numbers for programs, a table for a paper's draft, a page and a figure for people."""

from __future__ import annotations

from pathlib import Path

from paddle_tfm.comparison import claim_record
from paddle_tfm.comparison.figure import draw
from paddle_tfm.comparison.markdown import markdown
from paddle_tfm.comparison.page import page
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.files import json_text, write_whole
from paddle_tfm.plotting import image


def write(comparison: Comparison) -> dict[str, Path]:
    """Write `comparison.json`, `.md`, `.html` and `.png` into the comparison's folder, and `claims.json` where the
    recipe claims something. Returns where each is.

    The page is one file that needs no other, and no network.
    """
    folder = Path(comparison.folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = {"json": "json", "markdown": "md", "page": "html", "figure": "png"}
    files = {what: folder / f"comparison.{ending}" for what, ending in names.items()}
    figure = draw(comparison)
    png = image(figure, "png")
    write_whole(files["json"], json_text(comparison.data()))
    write_whole(files["markdown"], markdown(comparison))
    write_whole(files["page"], page(comparison))
    write_whole(files["figure"], png)
    if comparison.claims is not None:
        files["claims"] = folder / claim_record.FILE
        write_whole(files["claims"], json_text(claim_record.record(comparison, comparison.claims)))
    return files
