"""What the datasets share: addresses of files in public repositories, and options that are one of several words."""

from __future__ import annotations

from collections.abc import Iterable

from paddle_tfm.errors import nearest


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
    shown = ", ".join(known) if len(known) <= 20 else f"{', '.join(known[:10])}, …"
    raise ValueError(f"`{option}` must be one of {shown}, but is '{value}'{nearest(value, known)}")
