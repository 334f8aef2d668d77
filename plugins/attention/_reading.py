"""What the attentions share whose past is a state of fixed size: tokens are read once what was before is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paddle import Tensor

State = tuple[Tensor, ...]  # [B, …] each


@dataclass(frozen=True)
class Read:
    """The newest tokens, read: what came out [B, …], and the state at their end."""

    outputs: Tensor
    last: State

    def read(self) -> Read:
        return self

    def extend(self, new: Unread) -> Read:
        return new.read(self.last)

    def select(self, rows: Tensor) -> Read:
        outputs, *last = (part.index_select(rows, 0) for part in (self.outputs, *self.last))
        return Read(outputs, tuple(last))


@dataclass(frozen=True)
class Unread:
    """Tokens [B, T, C] with their validity [B, T], which `reader` reads: (x, valid, the state before them or None)."""

    reader: Callable[[Tensor, Tensor, State | None], Read]
    x: Tensor
    valid: Tensor

    def read(self, after: State | None = None) -> Read:
        return self.reader(self.x, self.valid, after)

    def extend(self, new: Unread) -> Read:
        return self.read().extend(new)

    def select(self, rows: Tensor) -> Unread:
        return Unread(self.reader, self.x.index_select(rows, 0), self.valid.index_select(rows, 0))
