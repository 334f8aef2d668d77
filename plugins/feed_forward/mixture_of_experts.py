"""Several feed-forward networks, of which each token goes through a few."""

from __future__ import annotations

from typing import ClassVar

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.layers import Linear
from paddle_tfm.protocols import FeedForward, Tap, TokenInfo, maps_as
from paddle_tfm.ranks import sum_over_ranks
from paddle_tfm.validators import between, not_negative
from paddle_tfm_plugins.feed_forward._experts import affinities, through_experts, top
from paddle_tfm_plugins.feed_forward.relu import ReLU


class MixtureOfExperts(FeedForward):
    """Mixture of experts: each token goes through its top_k of several ReLU networks (Shazeer 2017, arXiv:1701.06538).

    p = softmax(x W_r) over N experts; out = Σ_e g_e E_e(x) over the top_k of p, g being p divided by its sum over them
    (for top_k 1, p itself, as in the Switch Transformer, arXiv:2101.03961: divided, the router would get no gradient).
    No expert has a limit of tokens, so that none is dropped and a token's output is free of its neighbours: decoding
    step by step equals the full pass. Padding goes to no expert and comes out as zero. The router is computed in
    float32 where the rest is in half precision, as in the Switch Transformer: rounded scores choose other experts.

    What is left out of the paper: its noise on the scores before the top_k are chosen (an output would depend on a
    draw, and the balance loss evens out the load by itself, as later models show), and its second loss, for the load.

    In training the loss gets balance_weight · N Σ_e f_e P_e, f_e the share of the choices that fell on e and P_e the
    mean of p_e, over real tokens: balance_weight where all is even, N times that where one expert gets all.

    x [B, T, C] → [B, T, C].

    Options:
        experts: N. top_k: how many each token goes through. balance_weight: of the loss above; 0: none.
        bias: whether the experts' matrices have one. inner_dropout: dropout on the hidden layers.

    Raises:
        ValueError: experts is not in [1, 10000]; top_k is not in [1, experts]; balance_weight is negative;
            inner_dropout is not in [0, 1).
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "trains *experts*": "an expert learns from the tokens that chose it: one that no token of a batch chose "
        "gets no gradient",
    }

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        experts: int = 4,
        top_k: int = 2,
        balance_weight: float = 0.01,
        bias: bool = True,
        inner_dropout: float = 0.0,
    ):
        super().__init__()
        between("[1, 10000]", experts=experts)
        between(f"[1, {experts}]", top_k=top_k)
        not_negative(balance_weight=balance_weight)
        self.top_k, self.balance_weight = top_k, balance_weight
        self.router = Linear(d_model, experts, bias=False)
        maps_as(self.router.weight, "output")
        self.experts = nn.LayerList(
            [ReLU(d_model, d_ff, bias=bias, inner_dropout=inner_dropout) for _ in range(experts)]
        )

    def forward(self, x: Tensor, info: TokenInfo, tap: Tap) -> Tensor:
        batch, length, width = x.shape
        tokens = x.reshape([-1, width])  # [B, T, C] -> [B·T, C]
        valid = info.valid.reshape([-1, 1])  # [B·T, 1]
        p = affinities(tokens, self.router, F.softmax)  # [B·T, N]
        gates, selected = self._route(p, valid)
        tap.record("router", p)
        if self.training and self.balance_weight:
            tap.add_aux_loss("balance", self.balance_weight * _balance(p, selected, valid))
        return through_experts(self.experts, tokens, gates, selected, info, tap).reshape([batch, length, width])

    def _route(self, p: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """p [B·T, N] → gates of the selected experts (others unused) and bool, which are selected, both [B·T, N]."""
        selected = top(p, self.top_k)
        gates = p / (p * selected.astype(p.dtype)).sum(-1, keepdim=True) if self.top_k > 1 else p
        return gates, paddle.logical_and(selected, valid)

    def branch_weights(self) -> list[Tensor]:
        return [weight for expert in self.experts for weight in expert.branch_weights()]


def _balance(p: Tensor, selected: Tensor, valid: Tensor) -> Tensor:
    """N Σ_e f_e P_e over valid tokens; 0 if there is none."""
    choices = sum_over_ranks(selected.astype(p.dtype).sum(0))  # [N]; padding selected none
    f = choices / choices.sum().clip(min=1.0)
    tokens = sum_over_ranks(valid.astype(p.dtype).sum()).clip(min=1.0)
    mean = sum_over_ranks((p * valid.astype(p.dtype)).sum(0)) / tokens  # [N]
    return p.shape[-1] * (f * mean).sum()
