"""What the datasets share: addresses of files in public repositories."""

from __future__ import annotations


def github(repository: str, reference: str, path: str) -> tuple[str, str]:
    """A file of a repository at a commit or branch: GitHub itself, then jsDelivr, a public mirror of it."""
    return (
        f"https://raw.githubusercontent.com/{repository}/{reference}/{path}",
        f"https://cdn.jsdelivr.net/gh/{repository}@{reference}/{path}",
    )
