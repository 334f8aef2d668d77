"""Opening a dataset: its files fetched and checked, its splits read."""

from __future__ import annotations

from collections.abc import Iterator

from paddle_tfm.data import cache
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.protocols import SPLITS, Dataset, Example


def examples(dataset: Dataset, split: str) -> Iterator[Example]:
    """The examples of a split, one at a time, the same at every call and in the same order. Files that are not here yet
    are fetched.

    Raises:
        UserError: a file can neither be found nor fetched, is not what it should be, or cannot be read.
    """
    if split not in SPLITS:
        raise UserError(unknown("split", split, SPLITS))
    return dataset.read(split, cache.ensure(dataset))
