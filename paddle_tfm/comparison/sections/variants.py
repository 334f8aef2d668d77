"""The table of variants."""

from __future__ import annotations

from html import escape

from paddle_tfm.comparison.columns import cells, header, notes
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.comparison.verdict import change


def html(comparison: Comparison) -> str:
    """The table, and what its columns mean."""
    remarks = "".join(f"<li>{escape(note)}</li>" for note in notes(comparison))
    return f'{_table(comparison)}\n<ul class="notes">{remarks}</ul>'


def _table(comparison: Comparison) -> str:
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in header(comparison))
    body = ""
    for row in comparison.rows:
        first, seeds, value, against, *rest = cells(comparison, row)
        if difference := row.difference:
            mean, interval = escape(change(comparison, difference)).split(
                " (" if difference.half_width is not None else ", "
            )
            against = f'{mean} <b class="{difference.verdict}">{difference.verdict}</b>'
            against += f"<small>{interval.rstrip(')')}</small>"
        others = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        body += f'<tr><th scope="row"><bdi>{escape(first)}</bdi></th><td>{escape(seeds)}</td>'
        body += f'<td class="deciding">{escape(value)}</td><td>{against}</td>{others}</tr>\n'
    return f'<div class="wide"><table>\n<thead><tr>{names}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>'
