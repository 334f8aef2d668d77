"""Orthogonalized momentum, each neuron's part of about one size."""

from __future__ import annotations

import math

import paddle
from paddle import Tensor

from paddle_tfm.validators import between
from paddle_tfm_plugins.optimizer._update_rule import State
from paddle_tfm_plugins.optimizer.muon import ADAM_RMS, Muon, orthogonalize

EPSILON = 1e-10  # added to a root mean square and a norm


class NorMuon(Muon):
    """NorMuon: `muon` whose update is divided by each neuron's running size (Li 2025, arXiv:2510.05491).

    For a matrix [n, m] of the stacks' layers, with O the orthogonalized momentum of `muon`: v = neuron_beta · v +
    (1 − neuron_beta) · mean(O²), the mean over a neuron's n inputs, v [m] from 0; Ô = O / sqrt(v);
    w -= rate · (0.2 sqrt(n m) / ‖Ô‖ · Ô + weight_decay · w). The singular values of Muon's updates are about equal, but
    some neurons' parts are many times as long as others'. The factor before Ô makes an update about as large as Adam's.
    All other parameters go by AdamW; `muon` says which these are.

    Options:
        neuron_beta: of v.
        momentum: of the matrices. nesterov: as in `muon`. iterations: of Newton-Schulz.
        beta1, beta2, epsilon: AdamW's. weight_decay: for both.

    Raises:
        ValueError: neuron_beta is not in [0, 1); what `muon` raises.
    """

    def __init__(self, *, neuron_beta: float = 0.95, **parent):
        super().__init__(**parent)
        between("[0, 1)", neuron_beta=neuron_beta)
        self.neuron_beta = neuron_beta

    def start(self, parameter: Tensor) -> State:
        state = super().start(parameter)
        if "momentum" in state:
            state["size"] = paddle.zeros([1, parameter.shape[1]], parameter.dtype)
        return state

    def direction(self, ahead: Tensor, state: State) -> Tensor:
        beta, o = self.neuron_beta, orthogonalize(ahead, self.iterations)
        state["size"].scale_(beta).add_(paddle.square(o).mean(0, keepdim=True) * (1.0 - beta))  # [n, m] -> [1, m]
        o = o / (paddle.sqrt(state["size"]) + EPSILON)
        flat = o.flatten()
        return o * (ADAM_RMS * math.sqrt(o.size) / (math.sqrt(float(paddle.matmul(flat, flat))) + EPSILON))
