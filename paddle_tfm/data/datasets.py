"""Opening a dataset: its files fetched and checked, its splits read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddle_tfm.data import cache
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.protocols import SPLITS, Dataset, Example

if TYPE_CHECKING:
    from paddle_tfm.recipe.plan import Plan


def examples(dataset: Dataset, split: str) -> Iterator[Example]:
    """The examples of a split, one at a time, the same at every call and in the same order. Missing files are
    fetched.

    Raises:
        UserError: a file is missing and cannot be fetched, has another hash than it should, or cannot be read.
    """
    if split not in SPLITS:
        raise UserError(unknown("split", split, SPLITS))
    return dataset.read(split, cache.ensure(dataset))


def fetch_all(plan: Plan) -> None:
    """Fetch and check the files of every dataset that a run names, for a process that starts others on the same files.

    Raises:
        UserError: a file is missing and cannot be fetched, or has another hash than it should.
    """
    for dataset in _datasets(plan):
        cache.ensure(dataset)


def missing(plan: Plan) -> list[str]:
    """The folders of the datasets that a run names and that are not on disk, or not whole."""
    return [each.folder for each in _datasets(plan) if len(cache.present(each, each.files())) < len(each.files())]


def _datasets(plan: Plan) -> list[Dataset]:
    parts = [part for component in plan.components.values() for part in component.walk()]
    return [part.build() for part in parts if part.kind == "dataset"]
