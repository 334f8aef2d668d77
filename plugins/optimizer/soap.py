"""Adam in the eigenbasis of Shampoo's preconditioner."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_tfm.validators import at_least, between, not_negative, positive
from paddle_tfm_plugins.optimizer._update_rule import State, UpdateRule, decay_weights


class SOAP(UpdateRule):
    """SOAP: Adam in the slowly turning eigenbasis of Shampoo's preconditioner (Vyas 2024, arXiv:2409.11321).

    For a matrix with the gradient G [n, m], L = β L + (1 − β) G Gᵀ and R = β R + (1 − β) Gᵀ G, whose eigenvectors are
    Q_L and Q_R:

        M = β1 M + (1 − β1) G, V = β2 V + (1 − β2) (Q_Lᵀ G Q_R)²
        w -= rate · sqrt(1 − β2ᵗ) / (1 − β1ᵗ) · Q_L ((Q_Lᵀ M Q_R) / (sqrt(V) + ε)) Q_Rᵀ

    L and R take up a gradient after its step. Every `frequency` steps each Q turns by one power iteration, Q = QR(L Q),
    columns by falling eigenvalue, and V moves with its columns. The first gradient makes the first bases, and no step.

    A parameter of three or more dimensions has a basis for each; one of a single dimension none: that is Adam. A
    dimension above `max_dim` has none either. Rows and columns that have never had a gradient stay. The time of a QR
    grows with its cube: on a CPU set `max_dim` below the size of the vocabulary.

    Options:
        beta1, beta2, epsilon: Adam's. preconditioner_beta: β. frequency: see above. weight_decay: apart from the
            gradient, for parameters of two or more dimensions but those marked by `no_decay`. max_dim: the longest
            dimension that has a basis.

    Raises:
        ValueError: a beta is not in [0, 1); epsilon is not positive; weight_decay is negative; frequency or max_dim is
            below 1.
    """

    def __init__(
        self,
        beta1: float = 0.95,
        beta2: float = 0.95,
        preconditioner_beta: float = 0.95,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
        frequency: int = 10,
        max_dim: int = 10_000,
    ):
        between("[0, 1)", beta1=beta1, beta2=beta2, preconditioner_beta=preconditioner_beta)
        positive(epsilon=epsilon)
        not_negative(weight_decay=weight_decay)
        at_least(1, frequency=frequency, max_dim=max_dim)
        self.beta1, self.beta2, self.preconditioner_beta, self.epsilon = beta1, beta2, preconditioner_beta, epsilon
        self.weight_decay, self.frequency, self.max_dim = weight_decay, frequency, max_dim

    def start(self, parameter: Tensor) -> State:
        state = super().start(parameter)
        for axis in self._axes(parameter):
            # L, R and their Q
            square = [parameter.shape[axis]] * 2
            state[f"covariance_{axis}"] = paddle.zeros(square, parameter.dtype)
            state[f"basis_{axis}"] = paddle.zeros(square, parameter.dtype)
        return state

    def update(self, parameter: Tensor, gradient: Tensor, state: State, t: int, rate: float) -> None:
        axes = self._axes(parameter)
        if t == 1:
            self._accumulate(gradient, state)
            for axis in axes:
                _, vectors = paddle.linalg.eigh(state[f"covariance_{axis}"])  # by rising eigenvalue
                state[f"basis_{axis}"] = vectors.flip([1])
            return
        t -= 1  # the first gradient took no step
        bases = {axis: state[f"basis_{axis}"] for axis in axes}
        state["first"].scale_(self.beta1).add_(gradient * (1.0 - self.beta1))
        rotated = rotate(gradient, bases)
        state["second"].scale_(self.beta2).add_(rotated * rotated * (1.0 - self.beta2))
        step = rotate(state["first"], bases) / (paddle.sqrt(state["second"]) + self.epsilon)
        size = rate * (1.0 - self.beta2**t) ** 0.5 / (1.0 - self.beta1**t)
        decay_weights(parameter, rate, self.weight_decay)
        parameter.subtract_(self._where_gradients_were(rotate(step, bases, back=True), state) * size)
        self._accumulate(gradient, state)
        if t % self.frequency == 0:
            for axis in axes:
                self._turn(state, axis)

    def _axes(self, parameter: Tensor) -> list[int]:
        """The dimensions that have a basis."""
        return [a for a, size in enumerate(parameter.shape) if parameter.ndim >= 2 and size <= self.max_dim]

    def _where_gradients_were(self, step: Tensor, state: State) -> Tensor:
        """The step without rows and columns that have never had a gradient, such as the embedding of padding: with
        eigenvalues of 0, their directions are mixed."""
        for axis in self._axes(step):
            seen = (state[f"covariance_{axis}"].diagonal() > 0).astype(step.dtype)
            step = step * seen.reshape([-1 if a == axis else 1 for a in range(step.ndim)])
        return step

    def _accumulate(self, gradient: Tensor, state: State) -> None:
        beta = self.preconditioner_beta
        for axis in self._axes(gradient):
            others = [other for other in range(gradient.ndim) if other != axis]
            outer = paddle.tensordot(gradient, gradient, [others, others])
            state[f"covariance_{axis}"].scale_(beta).add_(outer * (1.0 - beta))

    def _turn(self, state: State, axis: int) -> None:
        """One power iteration of the basis of a dimension."""
        basis = state[f"basis_{axis}"]
        product = paddle.matmul(state[f"covariance_{axis}"], basis)
        order = paddle.argsort((basis * product).sum(0), descending=True)  # by estimated eigenvalue
        state[f"basis_{axis}"] = paddle.linalg.qr(product.index_select(order, 1))[0]
        state["second"] = state["second"].index_select(order, axis)


def rotate(x: Tensor, bases: dict[int, Tensor], back: bool = False) -> Tensor:
    """x in the basis of each dimension that has one: Q_Lᵀ x Q_R for a matrix; `back`: Q_L x Q_Rᵀ."""
    for axis, basis in bases.items():
        order = [*range(axis), x.ndim - 1, *range(axis, x.ndim - 1)]  # tensordot puts the new dimension last
        x = paddle.tensordot(x, basis, [[axis], [1 if back else 0]]).transpose(order)
    return x
