"""Dropout, norm and residual in any order, a letter each."""

from __future__ import annotations

from collections.abc import Sequence

import paddle
from paddle import Tensor, nn

from paddle_tfm.language import _
from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import LayerSite, Norm, NormFactory, Placement, Sublayer, TokenInfo

DROPOUT, NORM, SUM = "dna"


class Steps(Placement):
    """Dropout, norm and residual in any order, as letters: the placements of Marian (arXiv:1804.00344).

    y = after(f(before(x))). A sequence of letters is done from left to right: d is dropout, n the norm, a adds x, which
    is what the sublayer was given before `before`. So `post` is after=dan, `pre` is before=n, after=da, top=n, and
    `res_post` is after=nda, top=n. Each sublayer has a norm of its own in either sequence, if there is an n in it.
    Without an a there is no residual. x [B, T, C]; between layers, where `top` adds, [B, T, 2, C].

    Options:
        before, after: a sublayer; before has no a. self_before: before self-attention; None: as before.
        embedding: what is done with what enters the stack, after positions; it has no a.
        top: what is done with what leaves it; a adds what entered it, before `embedding`.

    Raises:
        ValueError: a sequence has another letter.
    """

    def __init__(
        self,
        *,
        sites: Sequence[LayerSite],
        norm: NormFactory,
        d_model: int,
        dropout: float,
        before: str = "",
        after: str = "dan",
        self_before: str | None = None,
        embedding: str = "",
        top: str = "",
    ):
        for name, letters, allowed in (
            ("before", before, "dn"),
            ("after", after, "dan"),
            ("self_before", self_before or "", "dn"),
            ("embedding", embedding, "dn"),
            ("top", top, "dan"),
        ):
            if wrong := letters.strip(allowed):
                raise ValueError(
                    _("`{name}` may hold the letters {allowed}, but '{letters}' has {wrong}").format(
                        name=name, allowed=", ".join(allowed), letters=letters, wrong=wrong[0]
                    )
                )
        super().__init__(sites=sites if NORM in after else (), norm=norm, d_model=d_model, dropout=dropout)
        self.after, self.embedding, self.top = after, embedding, top
        self.before = [before] * len(sites) if self_before is None else [self_before, *[before] * (len(sites) - 1)]
        self.drops = nn.LayerList([Dropout(dropout) for _ in sites])
        normed = {str(i): norm(site, d_model) for i, site in enumerate(sites) if NORM in self.before[i]}
        self.before_norms = nn.LayerDict(normed)
        self.before_drops = nn.LayerList([Dropout(dropout) for _ in sites])
        is_top, is_bottom = sites[0].layer == sites[0].depth - 1, sites[0].layer == 0
        self.embedding_norm = norm(sites[0], d_model) if is_bottom and NORM in embedding else None
        self.top_norm = norm(sites[-1], d_model) if is_top and NORM in top else None
        self.embedding_drop, self.top_drop = Dropout(dropout), Dropout(dropout)

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        before = self.before_norms[str(i)] if NORM in self.before[i] else None
        after = self.norms[i] if NORM in self.after else None
        y = sublayer(_done(self.before[i], x, x, self.before_drops[i], before, info))
        return _done(self.after, y, x, self.drops[i], after, info)

    def enter(self, x: Tensor, info: TokenInfo) -> Tensor:
        y = _done(self.embedding, x, x, self.embedding_drop, self.embedding_norm, info)
        return paddle.stack([y, x], 2) if SUM in self.top else y  # [B, T, 2, C]: and what entered

    def forward(self, x: Tensor, sublayers: Sequence[Sublayer], info: TokenInfo) -> Tensor:
        if SUM not in self.top:
            return super().forward(x, sublayers, info)
        x, entered = x.unbind(2)
        return paddle.stack([super().forward(x, sublayers, info), entered], 2)

    def leave(self, x: Tensor, info: TokenInfo) -> Tensor:
        x, entered = x.unbind(2) if SUM in self.top else (x, x)
        return _done(self.top, x, entered, self.top_drop, self.top_norm, info)


def _done(letters: str, y: Tensor, x: Tensor, drop: Dropout, norm: Norm | None, info: TokenInfo) -> Tensor:
    """y after the steps; `x` is what an a adds."""
    for letter in letters:
        if letter == DROPOUT:
            y = drop(y)
        elif letter == SUM:
            y = y + x
        elif norm is not None:
            y = norm(y, info.valid, info.positions)
    return y
