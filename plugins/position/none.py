"""No positions."""

from __future__ import annotations

from typing import ClassVar

from paddle_tfm.protocols import PositionalEncoding


class NoPosition(PositionalEncoding):
    """No positions: an encoder sees a bag of words, a causal decoder still counts (arXiv:2203.16634).

    Without it, self-attention without a causal mask is permutation-equivariant.
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "positions_differ": "it tells no positions",
        "order_matters": "it tells no positions: to an encoder a sentence is a bag of words",
        "direction": "it tells no positions",
    }

    def __init__(self):
        super().__init__()
