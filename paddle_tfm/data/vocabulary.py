"""Pieces ↔ ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

PAD, BOS, EOS, UNKNOWN = 0, 1, 2, 3
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")


class Vocabulary:
    """An ordered set of pieces; the first four are padding, begin, end and unknown."""

    def __init__(self, pieces: Sequence[str]):
        self.pieces = [*SPECIAL, *pieces]
        self.ids = {piece: i for i, piece in enumerate(self.pieces) if i >= len(SPECIAL)}

    @classmethod
    def learn(
        cls,
        texts: Iterable[Sequence[str]],
        min_frequency: int = 1,
        max_size: int | None = None,
        always: Iterable[str] = (),
    ) -> Vocabulary:
        """The pieces that occur at least `min_frequency` times, the most frequent first, at most `max_size` with the
        special ones; those of `always` in any case."""
        counts = Counter(chain.from_iterable(texts))
        required = set(always)
        counts.update(dict.fromkeys(required, 0))
        for special in SPECIAL:
            counts.pop(special, None)
        ranked = sorted(counts, key=lambda piece: (-counts[piece], piece))
        limit = len(ranked) if max_size is None else max(0, max_size - len(SPECIAL) - len(required))
        frequent = [piece for piece in ranked if piece not in required and counts[piece] >= min_frequency][:limit]
        members = required.union(frequent)
        return cls([piece for piece in ranked if piece in members])

    def __len__(self) -> int:
        return len(self.pieces)

    def encode(self, pieces: Iterable[str]) -> list[int]:
        """Ids, `UNKNOWN` for a piece that is not in the vocabulary."""
        return [self.ids.get(piece, UNKNOWN) for piece in pieces]

    def decode(self, ids: Iterable[int], extra: Sequence[str] = ()) -> list[str]:
        """Pieces of `ids`; an id beyond the vocabulary is a piece of `extra`, copied from the source."""
        size = len(self.pieces)
        return [self.pieces[i] if i < size else extra[i - size] for i in ids]
