"""What a user wants of `paddle-tfm plugin check`: its argument and options, and what contradicts among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paddle_tfm.errors import UserError

REFERENCE = "reference"  # the check that --reference adds


@dataclass(frozen=True)
class Request:
    """The argument and the options of `plugin check`, by their names; its help says what each means."""

    target: str | None
    as_kind: str | None
    options: Mapping[str, object]
    mask: str | None
    pad_id: int | None
    only: Sequence[str]
    reference: str | None
    kind: str | None
    with_wrong: bool
    brief: bool
    as_json: bool

    def require_sound(self) -> None:
        """Raises UserError where an option of one way to call an ordinary layer stands beside another."""
        beside = "without --as" if self.as_kind is None else f"beside --as {self.as_kind}"
        for option, value, its_kind in (
            ("--mask", self.mask, "attention"),
            ("--pad-id", self.pad_id, "encoder-decoder"),
        ):
            if value is not None and self.as_kind != its_kind:
                raise UserError(f"{option} belongs to --as {its_kind}, and says nothing {beside}")

    def require_class(self, as_kind: str) -> str:
        """The class that --as is about. Raises UserError: there is none, or an option is of components only."""
        if self.target is None:
            raise UserError(f"--as {as_kind}: name a class, as in --as {as_kind} my_transformer.py:MyClass")
        if self.reference is not None:
            raise UserError("--reference compares components of paddle_tfm, but --as names an ordinary layer")
        if self.kind is not None:
            raise UserError(
                f"--kind chooses among components of paddle_tfm, but --as {as_kind} names an ordinary layer"
            )
        if REFERENCE in self.only:
            raise UserError(
                f"--only {REFERENCE}: there is none with --as {as_kind}, but only of components of paddle_tfm"
            )
        return self.target
