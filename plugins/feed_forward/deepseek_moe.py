"""Shared and routed experts whose load is balanced by biases."""

from __future__ import annotations

from typing import ClassVar

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm import randomness
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import FeedForward, Tap, TokenInfo, maps_as
from paddle_tfm.ranks import sum_over_ranks
from paddle_tfm.validators import between, not_negative
from paddle_tfm_plugins.feed_forward._experts import affinities, through_experts, top
from paddle_tfm_plugins.feed_forward.swiglu import SwiGLU


class DeepSeekMoE(FeedForward):
    """Shared experts for all tokens, and routed ones whose load biases keep even (DeepSeek-V3, arXiv:2412.19437).

    out = Σ_s S_s(x) + Σ_e g_e E_e(x), all experts SwiGLU networks of width d_ff: `shared` ones S, through which each
    token goes (arXiv:2401.06066), and top_k of `experts` routed ones E. s_e = sigmoid(x · w_e) is a token's affinity to
    each; selected are the experts with the highest s_e + b_e, and g is s divided by its sum over them (for top_k 1, s
    itself: divided, the router would get no gradient). So b, a number for each expert, decides who is selected, and not
    how much he counts.

    After each training step b_e ← b_e + bias_rate · sign(mean(c) − c_e), c_e being the number of the step's real tokens
    that selected e (arXiv:2408.15664): who got more than the mean is selected less. b starts at zero, is no parameter
    but a buffer, saved with the weights, and stays as it is in evaluation and in passes without gradients. The batches
    of a step (`train.accumulate`) all see one b; outside of the trainer each training pass is a step.

    In training the loss gets sequence_balance_weight · Σ_e f_e P_e, the mean over sentences (V3's guard against extreme
    imbalance within one): over the T real tokens of a sentence, f_e is experts / (top_k T) times the number for whom
    s_e is among the top_k highest, and P_e the mean of s_e / Σ s. It is sequence_balance_weight where all is even.

    Padding goes to no routed expert. Scores are computed in float32 where the model is in half precision. Left out are
    V3's limit on the machines on which a token's experts stand, and its released code's factor 2.5 on the second sum.

    x [B, T, C] → [B, T, C].

    Options:
        experts: number of routed experts (V3 has 256). top_k: how many each token goes through (V3: 8).
        shared: number of shared experts; 0: none. A token goes through (shared + top_k) · d_ff hidden units: for the
            work of one network, set `d_ff` here to that of the network divided by shared + top_k.
        bias_rate: of b; 0: no bias. sequence_balance_weight: of the loss above; 0: none.
        bias: whether the experts' matrices have one. inner_dropout: dropout on the hidden layers.

    Raises:
        ValueError: experts is not in [1, 10000], or shared in [0, 10000]; top_k is not in [1, experts]; bias_rate or
            sequence_balance_weight is negative; inner_dropout is not in [0, 1).
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "trains *experts*": "an expert learns from the tokens that chose it: one that no token of a batch chose "
        "gets no gradient",
        "padding_in_training": "b moves with each training pass, so that a second pass may select other experts; with "
        "the option bias_rate=0 nothing differs",
        "gradients": "b moves with each training pass, so that the loss is measured with other experts than the "
        "gradient; with the option bias_rate=0 both agree",
    }

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        experts: int = 8,
        top_k: int = 2,
        shared: int = 1,
        bias_rate: float = 0.001,
        sequence_balance_weight: float = 0.0001,
        bias: bool = False,
        inner_dropout: float = 0.0,
    ):
        super().__init__()
        between("[1, 10000]", experts=experts)
        between("[0, 10000]", shared=shared)
        between(f"[1, {experts}]", top_k=top_k)
        not_negative(bias_rate=bias_rate, sequence_balance_weight=sequence_balance_weight)
        self.top_k, self.bias_rate, self.sequence_balance_weight = top_k, bias_rate, sequence_balance_weight

        def network(width: int) -> SwiGLU:
            return SwiGLU(d_model=d_model, d_ff=width, bias=bias, inner_dropout=inner_dropout)

        self.router = Linear(d_model, experts, bias=False)
        maps_as(self.router.weight, "output")
        self.experts = nn.LayerList([network(d_ff) for _ in range(experts)])
        self.shared = network(shared * d_ff) if shared else None  # as one: the sum of networks side by side
        zeros = paddle.zeros([experts], paddle.get_default_dtype())
        self.register_buffer("balance", zeros)  # b
        # Within a step of several batches: b before it, and how many tokens have selected each expert so far.
        self.register_buffer("before", zeros.clone(), persistable=False)
        self.register_buffer("load", zeros.clone(), persistable=False)

    def forward(self, x: Tensor, info: TokenInfo, tap: Tap) -> Tensor:
        tokens, valid = x.reshape([-1, x.shape[-1]]), info.valid.reshape([-1, 1])  # [B·T, C], [B·T, 1]
        s = affinities(tokens, self.router, F.sigmoid)  # [B·T, N] in (0, 1)
        bias = self._bias_of_step() if self.training else self.balance
        selected = paddle.logical_and(top(s.detach() + bias.astype(s.dtype), self.top_k), valid)
        gates = s / ((s * selected.astype(s.dtype)).sum(-1, keepdim=True) + 1e-20) if self.top_k > 1 else s
        tap.record("router", s)
        if self.training and self.sequence_balance_weight:
            loss = self._sequence_balance(s.reshape([*x.shape[:2], -1]), info.valid)
            tap.add_aux_loss("sequence_balance", self.sequence_balance_weight * loss)
        out = through_experts(self.experts, tokens, gates, selected, info, tap).reshape(x.shape)
        if self.training and paddle.is_grad_enabled():
            self._rebalance(selected)
        return out if self.shared is None else out + self.shared(x, info, tap)

    def _bias_of_step(self) -> Tensor:
        """b as it was before the first batch of this step. A pass without gradients, as norms re-estimate their
        statistics by, is of no step."""
        context = randomness.current_context()
        is_first = context is None or context.micro_batch == 0
        return self.balance if is_first or not paddle.is_grad_enabled() else self.before

    @paddle.no_grad()
    def _rebalance(self, selected: Tensor) -> None:
        """Move b, from where it was before this step, against the load of all of the step's tokens so far; those of
        this batch are `selected`, bool [B·T, N]."""
        load = sum_over_ranks(selected.astype(self.balance.dtype).sum(0))
        context = randomness.current_context()
        if context is None or context.micro_batch == 0:
            paddle.assign(self.balance, output=self.before)
        else:
            load = load + self.load
        paddle.assign(load, output=self.load)
        paddle.assign(self.before + self.bias_rate * paddle.sign(load.mean() - load), output=self.balance)

    def _sequence_balance(self, s: Tensor, valid: Tensor) -> Tensor:
        """The mean over sentences of Σ_e f_e P_e: s [B, T, N], valid [B, T]."""
        real = valid.astype(s.dtype).unsqueeze(-1)  # [B, T, 1]
        length = real.sum(1).clip(min=1.0)  # [B, 1]
        chosen = top(s.detach().reshape([-1, s.shape[-1]]), self.top_k).reshape(s.shape)
        f = (chosen.astype(s.dtype) * real).sum(1) * (s.shape[-1] / self.top_k) / length  # [B, N]
        mean = (s / (s.sum(-1, keepdim=True) + 1e-20) * real).sum(1) / length  # all may be 0
        sentences = paddle.full([], s.shape[0], s.dtype)
        return sum_over_ranks((f * mean).sum(-1).mean() * (sentences / sum_over_ranks(sentences)))

    def branch_weights(self) -> list[Tensor]:
        networks = [*self.experts] if self.shared is None else [self.shared, *self.experts]
        return [weight for network in networks for weight in network.branch_weights()]
