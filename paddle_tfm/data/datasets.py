"""Opening a dataset: its files fetched and checked, its splits read."""

from __future__ import annotations

from collections.abc import Iterator

from paddle_tfm.data import cache
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.protocols import SPLITS, Dataset, Example


def examples(dataset: Dataset, split: str) -> Iterator[Example]:
    """The examples of a split, one at a time, the same at every call and in the same order. Missing files are
    fetched.

    Raises:
        UserError: a file is missing and cannot be fetched, has another hash than it should, or cannot be read.
    """
    if split not in SPLITS:
        raise UserError(unknown("split", split, SPLITS))
    return dataset.read(split, cache.ensure(dataset))
