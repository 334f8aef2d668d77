"""No positions."""

from __future__ import annotations

from paddle_tfm.protocols import PositionalEncoding


class NoPosition(PositionalEncoding):
    """No positions: an encoder sees a bag of words, a causal decoder still counts (arXiv:2203.16634).

    Without it, self-attention without a causal mask is permutation-equivariant.
    """

    def __init__(self):
        super().__init__()
