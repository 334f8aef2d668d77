"""Tables as LaTeX, for a paper: booktabs, and every character as it was."""

from __future__ import annotations

from collections.abc import Sequence

# What LaTeX takes for a command, and signs that not every font of it has.
CHARACTERS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
    "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "→": r"$\rightarrow$", "≤": r"$\leq$", "≥": r"$\geq$", "“": "``", "”": "''", "’": "'", "‘": "`", "–": "--",
    "—": "---", "…": r"\ldots{}", "\u00a0": "~", "⟨": r"$\langle$", "⟩": r"$\rangle$",
}  # fmt: skip
NEEDS = r"% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}"
OTHER_SCRIPT = "; its Chinese, Japanese or Korean needs XeLaTeX or LuaLaTeX, and \\usepackage{ctex}"


def escape(text: str) -> str:
    """`text` as LaTeX prints it, on one line."""
    return "".join(CHARACTERS.get(character, character) for character in " ".join(text.split()))


def table(name: str, caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    r"""A `table` with its caption and the label ``tab:NAME``, to be taken in by ``\input``.

    Args:
        header, rows: plain text. right: of each column, whether it is aligned right.
    """
    body = [" & ".join(map(escape, row)) + r" \\" for row in rows]
    characters = "".join([caption, *header, *(cell for row in rows for cell in row)])
    other = any("\u2e80" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7ff" for character in characters)
    lines = [
        NEEDS + (OTHER_SCRIPT if other else ""),
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{tab:{name}}}",
        rf"\begin{{tabular}}{{{''.join('r' if each else 'l' for each in right)}}}",
        r"\toprule",
        " & ".join(map(escape, header)) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"
