"""What components of all kinds have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class Component:
    """What all kinds have in common; the page of a kind says what it adds.

    Givens: none, so that every parameter of the constructor is an option of the recipe.
    Expected failures: `expected_failures` names checks that the variant, done right, does not pass, each with a reason.
    Raises: ValueError in the constructor, where an option is out of range.
    """

    kind: ClassVar[str]
    givens: ClassVar[frozenset[str]] = frozenset()
    """Constructor parameters that the engine fills. Every other parameter is an option of the recipe."""
    settable: ClassVar[frozenset[str]] = frozenset()
    """Givens that a recipe may set nevertheless, where it makes sense that they differ by site."""
    expected_failures: ClassVar[Mapping[str, str]] = {}
    """Check of the conformance kit -> why this variant, done right, does not pass it: the reason is shown to users."""
    ends_at_max_length: ClassVar[bool] = False
    """Whether it knows positions below the given `max_length` only, as a table with a row for each does: a further test
    may have longer texts, and then refuses it by name."""
    fixed_options: ClassVar[frozenset[str]] = frozenset()
    """Of a class whose constructor ends with ``**parent``: the superclass' parameters that it sets itself. Such a
    constructor takes, besides its own parameters, those of its superclass, so that it need not type them again:
    ``def __init__(self, *, window: int = 16, **parent)``, which calls ``super().__init__(**parent)``. A recipe may set
    the options of both. The name `parent` is the mark: behind another, such as ``**kwargs``, no option is looked
    for."""
