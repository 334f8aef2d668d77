"""What the datasets share: addresses of files in public repositories, and options that are one of several words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def github(repository: str, reference: str, path: str) -> tuple[str, str]:
    """A file of a repository at a commit or branch: GitHub itself, then jsDelivr, a public mirror of it."""
    return (
        f"https://raw.githubusercontent.com/{repository}/{reference}/{path}",
        f"https://cdn.jsdelivr.net/gh/{repository}@{reference}/{path}",
    )


def one_of(option: str, value: str, known: Iterable[str]) -> str:
    """`value`, if it is one of `known`.

    Raises:
        ValueError: it is not; the nearest is named.
    """
    known = list(known)
    if value in known:
        return value
    near = difflib.get_close_matches(str(value), known, n=1, cutoff=0.55)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    shown = ", ".join(known) if len(known) <= 20 else f"{', '.join(known[:10])}, …"
    raise ValueError(f"`{option}` must be one of {shown}, but is '{value}'{hint}")
