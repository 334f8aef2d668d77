"""The figure, as vectors or as a picture."""

from __future__ import annotations

import base64
import re
from html import escape

from paddle_tfm import units
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.plotting import FAINT, INK


def html(comparison: Comparison, png: bytes, svg: str) -> str:
    """The figure as `svg`, or as `png` where that is smaller."""
    name = units.metric_name(comparison.metric)
    text = f"Validation {name} against training steps, and its value at the end, for each variant"
    encoded = base64.b64encode(png).decode("ascii")
    drawing = re.sub(r"<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL).strip()
    if len(encoded) < len(drawing.encode("utf-8")):
        inner = f'<img alt="{escape(text)}" src="data:image/png;base64,{encoded}">'
    else:
        drawing = drawing.replace(f": {INK}", ": var(--ink)").replace(f": {FAINT}", ": var(--line)")
        inner = drawing.replace("<svg", f'<svg role="img" aria-label="{escape(text)}"', 1)
    return f'<figure class="wide">{inner}</figure>'
