"""Text and tables as LaTeX, for a paper: every character as it was, and tables that fit a page."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import chain

from rich.cells import cell_len

# What LaTeX takes for a command, and signs that not every font of it has.
CHARACTERS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
    "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "→": r"$\rightarrow$", "←": r"$\leftarrow$", "≤": r"$\leq$", "≥": r"$\geq$", "≈": r"$\approx$", "≠": r"$\neq$",
    "∞": r"$\infty$", "‖": r"$\|$", "½": r"$\frac{1}{2}$", "√": r"$\surd$", "∝": r"$\propto$",
    "°": r"$^{\circ}$", "“": "``", "”": "''", "’": "'", "‘": "`", "–": "--", "—": "---", "…": r"\ldots{}",
    "\u00a0": "~", "⟨": r"$\langle$", "⟩": r"$\rangle$",
    "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}",
    "œ": r"\oe{}", "Œ": r"\OE{}", "ı": r"\i{}",
}  # fmt: skip
ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c", "\u0328": "k",
}  # fmt: skip
GREEK = {  # what LaTeX has a command for; the others look like Latin letters
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu"),
    *("xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
    *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega"),
}
NEEDS = r"% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}"
# Seen by pdfLaTeX alone: it would say of each such character that it is not set up.
OTHER_SCRIPT = r"""\ifdefined\XeTeXversion\else\ifdefined\directlua\else
\errmessage{This table has letters that pdfLaTeX does not know, as of Chinese, Japanese or Korean:
compile with xelatex or lualatex, and \string\usepackage{ctex}}
\fi\fi"""

# In \small letters, on a page of the class article in 10 pt, in one column.
PAGE_WIDTH, PAGE_LINES = 74, 40  # letters, lines below a caption
HEAD_LINES = 5  # what stands around the rows
GAP = 2  # letters between columns
PROSE_WIDTH = 26  # letters of a column of longer texts
BREAKS = "/_=,-.:@"  # after which a long word may continue in the next line


class Bold(str):
    """A cell in bold."""


def escape(text: str) -> str:
    """`text` as LaTeX prints it, on one line. Letters of other scripts stay as they are (`is_other_script`)."""
    return "".join(map(_character, " ".join(text.split())))


def _character(character: str) -> str:
    if character in CHARACTERS:
        return CHARACTERS[character]
    if character.isascii() and character.isprintable():
        return character
    if not character.isprintable():
        return "?"
    kind, *parts = unicodedata.decomposition(character).split() or [""]
    if kind in ("<super>", "<sub>"):
        return f"${'^' if kind == '<super>' else '_'}{{{_of(parts).replace('−', '-')}}}$"
    letters = "" if not parts or kind.startswith("<") else _of([kind, *parts])
    if letters[1:] in ACCENTS and letters[0].isascii():
        return rf"{{\{ACCENTS[letters[1:]]}{{{letters[0]}}}}}"  # in braces, or BibTeX takes ~ for a space
    name = unicodedata.name(character, "")
    script, _, letter = name.replace("LAMDA", "LAMBDA").partition(" LETTER ")
    letter = letter.lower() if script == "GREEK SMALL" else letter.capitalize()
    return rf"$\{letter}$" if script.startswith("GREEK ") and letter in GREEK else character


def _of(codes: Sequence[str]) -> str:
    return "".join(chr(int(code, 16)) for code in codes)


def is_other_script(text: str) -> bool:
    """Whether `text`, escaped, has letters that pdfLaTeX has no command for."""
    return not escape(text).isascii()


def table(name: str, caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    r"""A `table` with its caption and the label ``tab:NAME``, to be taken in by ``\input``. Columns that a page has no
    room for stand below the others, beside the first column again; where a page has no room for all of these, each
    is a table of its own.

    Args:
        header, rows: plain text. right: of each column, whether it is aligned right.
    """
    widths = [_width(heading, [row[i] for row in rows]) for i, heading in enumerate(header)]
    tabulars = [[*_tabular(panel, header, rows, right)] for panel in _panels(widths)]
    whole = sum(map(_height, rows), HEAD_LINES) * len(tabulars) <= PAGE_LINES
    floats = [[*chain(*((*lines, r"\par\medskip") for lines in tabulars))]] if whole else tabulars
    other = any(map(is_other_script, [caption, *header, *(cell for row in rows for cell in row)]))
    lines = [NEEDS, *([OTHER_SCRIPT] if other else [])]
    for number, inner in enumerate(floats):
        lines += [r"\begin{table}", r"\centering", r"\small"]
        lines += [rf"\caption{{{escape(caption)}}}", rf"\label{{tab:{name}}}"] if number == 0 else []
        lines += [rf"Table~\ref{{tab:{name}}}, continued"] if number else []
        lines += [r"\par\medskip\setlength{\tabcolsep}{0.4em}", *inner, r"\end{table}"]
        lines += [r"\clearpage"] if len(floats) > 1 else []  # LaTeX keeps few that wait for a page
    return "\n".join(lines) + "\n"


def _letters(text: str) -> int:
    """How many digits are as wide as a text; a capital is as wide as two."""
    return cell_len(text) + sum(map(str.isupper, text))


def _width(heading: str, cells: Sequence[str]) -> int:
    """Letters that a column takes: its texts, but for the longest ones, and the words of its heading."""
    return max([*map(_letters, heading.split(" ")), *(min(_letters(cell), PROSE_WIDTH) for cell in cells)])


def _height(row: Sequence[str]) -> int:
    """Lines of a row: what is broken fills two thirds of its lines or more."""
    longest = max(map(_letters, row), default=0)
    return 1 if longest <= PROSE_WIDTH else math.ceil(1.5 * longest / PROSE_WIDTH)


def _panels(widths: Sequence[int]) -> Iterator[list[int]]:
    """The columns that stand side by side: as many as there is room for, each time beside the first."""
    panel = [0]
    for i in range(1, len(widths)):
        if len(panel) > 1 and sum(widths[j] + GAP for j in (*panel, i)) > PAGE_WIDTH:
            yield panel
            panel = [0]
        panel.append(i)
    yield panel


def _tabular(
    panel: Sequence[int], header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]
) -> Iterator[str]:
    yield rf"\begin{{tabular}}{{{''.join('r' if right[i] else 'l' for i in panel)}}}"
    yield r"\toprule"
    yield " & ".join(_heading(header[i], right[i], [row[i] for row in rows]) for i in panel) + r" \\"
    yield r"\midrule"
    for row in rows:
        yield " & ".join(_cell(row[i]) for i in panel) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _heading(text: str, right: bool, cells: Sequence[str]) -> str:
    """A heading, broken between words where it is wider than its column."""
    width, lines = _width(text, cells), [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        lines[-1:] = [longer] if _letters(longer) <= width else [*filter(None, lines[-1:]), word]
    broken, side = r"\\".join(map(escape, lines)), "r" if right else "l"
    return broken if len(lines) == 1 else rf"\shortstack[{side}]{{{broken}}}"


def _cell(text: str) -> str:
    """A text, in several lines where it is longer than its column. A long word is broken after one of `BREAKS`, or
    where the column ends."""
    if _letters(text) <= PROSE_WIDTH:
        return rf"\textbf{{{escape(text)}}}" if isinstance(text, Bold) else escape(text)
    parts, unbroken = [], 0
    for character in " ".join(text.split()):
        parts.append(escape(character) if character != " " else " ")
        unbroken = 0 if character == " " or character in BREAKS else unbroken + _letters(character)
        if (unbroken == 0 and character != " ") or unbroken >= PROSE_WIDTH - 4:
            parts.append(r"\allowbreak{}")
            unbroken = 0
    return rf"\parbox[t]{{{PROSE_WIDTH / 2:g}em}}{{\raggedright {''.join(parts)}\strut}}"
