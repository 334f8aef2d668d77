"""What the searches share: the longest output that they write."""

from __future__ import annotations

import math

from paddle_tfm.protocols import Search


class Bounded(Search):
    """Outputs of at most max_ratio · source length + max_extra tokens."""

    def __init__(self, max_ratio: float = 2.0, max_extra: int = 20):
        if not 0 <= max_ratio < math.inf:
            raise ValueError(f"`max_ratio` must be a number from 0 on, but is {max_ratio}")
        if max_extra < 0:
            raise ValueError(f"`max_extra` must not be negative, but is {max_extra}")
        if max_ratio == max_extra == 0:
            raise ValueError("`max_ratio` and `max_extra` must not both be 0: no output could have a token")
        self.max_ratio, self.max_extra = max_ratio, max_extra

    def limit(self, source_length: int) -> int:
        return max(1, int(self.max_ratio * source_length + self.max_extra))
