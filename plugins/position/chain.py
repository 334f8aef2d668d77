"""Several encodings at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from paddle import Tensor, nn

from paddle_tfm.language import _
from paddle_tfm.protocols import PositionalEncoding


class Chain(PositionalEncoding):
    """Several encodings at once, applied in turn: for instance sinusoidal positions and ALiBi (arXiv:2108.12409).

    embed, query, key and remap: the output of one is the input of the next. bias, scores and values: the sum. It uses
    what any of its parts uses. A part with a table for each layer (`shaw`) has one here too, and all others one for the
    stack.

    Options: `parts` is the list of encodings.

    Raises:
        ValueError: `parts` is empty; one makes queries and keys wider (`pope`), and another turns them or adds to their
            scores.
    """

    def __init__(self, parts: list[PositionalEncoding]):
        super().__init__()
        if not parts:
            raise ValueError(_("`parts` must hold at least one encoding, but is empty"))
        acting = [part for part in parts if part.uses() & {"rotate", "scores"}]
        wide = next((type(part).__name__ for part in acting if part.widens), "")
        if wide and len(acting) > 1:
            text = _("{wide} makes queries and keys wider, so that no other part may turn them or add to their scores")
            raise ValueError(text.format(wide=wide))
        self.parts = nn.LayerList(parts)
        self.shared: dict[int, PositionalEncoding] = {}  # index → that of the lowest layer, to which it belongs
        self.per_layer = any(part.per_layer for part in parts)

    def share(self, lowest: PositionalEncoding) -> None:
        for i, (part, below) in enumerate(zip(self.parts, lowest.parts)):
            if part.per_layer:
                part.share(below)
            else:
                self.shared[i], self.parts[i] = below, PositionalEncoding()

    def encodings(self) -> Iterator[PositionalEncoding]:
        """Its parts, in order; of those that are not made for each layer, the lowest layer's."""
        return (self.shared.get(i, part) for i, part in enumerate(self.parts))

    def uses(self) -> frozenset[str]:
        return frozenset().union(*(part.uses() for part in self.encodings()))

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        for part in self.encodings():
            x = part.embed(x, positions)
        return x

    def query(self, q: Tensor, positions: Tensor) -> Tensor:
        for part in self.encodings():
            q = part.query(q, positions)
        return q

    def key(self, k: Tensor, positions: Tensor) -> Tensor:
        for part in self.encodings():
            k = part.key(k, positions)
        return k

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        return _sum(part.bias(q_positions, k_positions) for part in self.encodings())

    def scores(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        return _sum(part.scores(q, k, q_positions, k_positions) for part in self.encodings())

    def values(self, weights: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        return _sum(part.values(weights, q_positions, k_positions) for part in self.encodings())

    def remap(self, positions: Tensor, draw: Callable[[], object] | None) -> Tensor:
        for part in self.encodings():
            positions = part.remap(positions, draw)
        return positions


def _sum(terms) -> Tensor | None:
    """The sum of those that are not None; None if all are."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total
