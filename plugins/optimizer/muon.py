"""Orthogonalized momentum for matrices."""

from __future__ import annotations

import math

import paddle
from paddle import Tensor

from paddle_tfm.protocols import maps
from paddle_tfm.validators import between, not_negative, positive
from paddle_tfm_plugins.optimizer._update_rule import State, UpdateRule, decay_weights, update_moments

STACK_PREFIXES = ("encoder.layers.", "decoder.layers.")  # of the names of parameters in the layers
# a, b, c of Jordan's polynomial: small singular values grow fastest, and end near 1, not at it.
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
ADAM_RMS = 0.2  # about the root mean square of Adam's updates (arXiv:2502.16982)


class Muon(UpdateRule):
    """Muon: orthogonalized momentum for matrices, AdamW for the rest (Jordan 2024; Liu 2025, arXiv:2502.16982).

    For a matrix [n, m] of the stacks' layers: M = momentum · M + g, O = orthogonalize(g + momentum · M) (of M without
    `nesterov`), w -= rate · (0.2 sqrt(max(n, m)) · O + weight_decay · w). O comes from Newton-Schulz steps, X = a X +
    (b X Xᵀ + c (X Xᵀ)²) X from X = M / ‖M‖, (a, b, c) = (3.4445, −4.7750, 2.0315), which leave the singular vectors
    unchanged; five of them bring singular values above ‖M‖ / 100 to between 0.68 and 1.14, and none above 1.21. With
    the second paper's 0.2 sqrt(max(n, m)) an update is about as large as Adam's, so that one rate and one decay serve
    all parameters.

    Embeddings, heads, encodings, vectors, what is marked as no linear map (mixers, kernels), and whatever has not
    exactly two dimensions of 2 or more, go by AdamW. Names, which are paths in the model, say which parameters belong
    to the stacks; AdamW updates a parameter without such a name. Parameters of one dimension and those marked by
    `no_decay` are exempt from the decay. The authors compute the steps in bfloat16; here they are in the precision of
    the parameters.

    Options:
        momentum: of the matrices. nesterov: see above. iterations: of Newton-Schulz.
        beta1, beta2, epsilon: AdamW's. weight_decay: for both.

    Raises:
        ValueError: momentum, beta1 or beta2 is not in [0, 1); iterations is not in [1, 100]; epsilon is not positive;
            weight_decay is negative.
    """

    def __init__(
        self,
        momentum: float = 0.95,
        nesterov: bool = True,
        iterations: int = 5,
        beta1: float = 0.9,
        beta2: float = 0.98,
        epsilon: float = 1e-9,
        weight_decay: float = 0.01,
    ):
        between("[0, 1)", momentum=momentum, beta1=beta1, beta2=beta2)
        positive(epsilon=epsilon)
        not_negative(weight_decay=weight_decay)
        between("[1, 100]", iterations=iterations)
        self.momentum, self.nesterov, self.iterations = momentum, nesterov, iterations
        self.beta1, self.beta2, self.epsilon, self.weight_decay = beta1, beta2, epsilon, weight_decay

    def start(self, parameter: Tensor) -> State:
        if is_hidden_matrix(parameter):
            return {"momentum": paddle.zeros_like(parameter)}
        return super().start(parameter)

    def update(self, parameter: Tensor, gradient: Tensor, state: State, t: int, rate: float) -> None:
        if "momentum" in state:
            momentum = state["momentum"].scale_(self.momentum).add_(gradient)
            ahead = gradient + self.momentum * momentum if self.nesterov else momentum
            step = self.direction(ahead, state) * rate
        else:
            update_moments(state, gradient, self.beta1, self.beta2)
            root = paddle.sqrt(state["second"] / (1.0 - self.beta2**t)) + self.epsilon
            step = state["first"] * (rate / (1.0 - self.beta1**t)) / root
        decay_weights(parameter, rate, self.weight_decay)
        parameter.subtract_(step)

    def direction(self, ahead: Tensor, state: State) -> Tensor:
        """What a matrix of this momentum moves by at a rate of 1."""
        return orthogonalize(ahead, self.iterations) * (ADAM_RMS * math.sqrt(max(ahead.shape)))


def is_hidden_matrix(parameter: Tensor) -> bool:
    """Whether it is the matrix of a linear map in a stack's layer, and not a vector, a mixer or a kernel stored as
    one."""
    is_map = parameter.ndim == 2 and min(parameter.shape) > 1 and maps(parameter) is not None
    return is_map and parameter.name.startswith(STACK_PREFIXES)


def orthogonalize(matrix: Tensor, iterations: int) -> Tensor:
    """The matrix with its singular values near 1, by Newton-Schulz steps over its shorter side."""
    a, b, c = NEWTON_SCHULZ
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.transpose([1, 0]) if tall else matrix
    flat = x.flatten()
    x = x / (math.sqrt(float(paddle.matmul(flat, flat))) + 1e-7)  # Frobenius norm 1: no singular value above it
    for _ in range(iterations):
        gram = paddle.matmul(x, x, transpose_y=True)
        x = a * x + paddle.matmul(b * gram + c * paddle.matmul(gram, gram), x)
    return x.transpose([1, 0]) if tall else x
