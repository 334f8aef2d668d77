"""One training step: forward, loss, backward, clip, update.

    loss = Σ cross entropy of real tokens / number of real tokens + mean over batches of the auxiliary losses

over all batches of the step, so that several small batches, their gradients accumulated, train as one large one does (but
for what looks at a whole batch). `train/shared_step.py` has the same step done by several processes.

Sources: cross entropy with label smoothing and Adam as in Vaswani et al. 2017, arXiv:1706.03762; clipping of the joint
norm: Pascanu et al. 2013, arXiv:1211.5063.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import randomness
from paddle_tfm.data.batches import Batch
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Tap
from paddle_tfm.recipe.settings import TrainSettings
from paddle_tfm.train.averaging import MovingAverage
from paddle_tfm.train.objective import objective

EPS = 1e-6  # added to the norm that gradients are divided by


class StepMetrics(NamedTuple):
    """What a step reports: the loss in nats a token with its auxiliary losses in it, these by name as well, the learning
    rate, the norm of all gradients before clipping, and the number of real target tokens."""

    loss: float
    aux_losses: dict[str, float]
    learning_rate: float
    gradient_norm: float
    tokens: int

    def row(self) -> dict[str, float]:
        """As the log holds it, an auxiliary loss `balance` under the name `balance_loss`."""
        aux_losses = {f"{name}_loss": value for name, value in self.aux_losses.items()}
        rest = {"learning_rate": self.learning_rate, "gradient_norm": self.gradient_norm, "tokens": self.tokens}
        return {"loss": self.loss, **aux_losses, **rest}


@dataclass
class LossSum:
    """Loss and auxiliary losses by name, added up over parts of a step."""

    loss: float = 0.0
    aux_losses: dict[str, float] = field(default_factory=dict)

    def add(self, loss: float, aux_losses: dict[str, float]) -> None:
        """Add those of one more part."""
        self.loss += loss
        for name, value in aux_losses.items():
            self.aux_losses[name] = self.aux_losses.get(name, 0.0) + value


class Step:
    """Updates a model. Call it with the step's number, from 1 on, and its batches of NumPy arrays.

    Args:
        parameters: those of the model that are trained.
        schedule: the learning rate of a step.
        settings: the recipe's `train:` section. seed: of the run, which every draw depends on.
        average: of the weights, where the recipe has one (`train.ema`).
    """

    def __init__(
        self,
        model: Transformer,
        parameters: Sequence[Tensor],
        optimizer: paddle.optimizer.Optimizer,
        schedule: Callable[[int], float],
        settings: TrainSettings,
        seed: int,
        average: MovingAverage | None = None,
    ):
        self.model, self.parameters, self.settings, self.seed = model, list(parameters), settings, seed
        self.optimizer, self.schedule, self.average = optimizer, schedule, average

    def __call__(self, number: int, batches: Sequence[Batch[np.ndarray]]) -> StepMetrics:
        """One update; returns what is to be logged."""
        losses = self.backward(number, batches)
        norm = clip_gradients(self.parameters, self.settings.clip_norm)
        rate = self.schedule(number)
        self.optimizer.set_lr(rate)
        with paddle.utils.unique_name.guard():  # moments are named after parameters, whatever was made before
            self.optimizer.step()
        self.optimizer.clear_grad(set_to_zero=False)  # the next gradients are written, not added to zeros
        if self.average is not None:
            self.average.update(number)
        return StepMetrics(losses.loss, losses.aux_losses, rate, norm, sum(batch.tokens for batch in batches))

    def backward(self, number: int, batches: Sequence[Batch[np.ndarray]]) -> LossSum:
        """Add the gradients of the step's loss to the parameters'; returns the loss."""
        tokens, losses = sum(batch.tokens for batch in batches), LossSum()
        for micro, batch in enumerate(batches):
            with randomness.random_context(self.seed, number, micro, 0, len(batch.index)) as context:
                losses.add(*self.forward_backward(batch, context, tokens, len(batches)))
        return losses

    def forward_backward(
        self, batch: Batch[np.ndarray], context: randomness.RandomContext, tokens: int, num_batches: int
    ) -> tuple[float, dict[str, float]]:
        """What a batch [B, S] → [B, T] contributes to the loss of a step that has `tokens` and `num_batches` in all, and to
        its auxiliary losses; the gradients of it are added to the parameters'."""
        # Layers of other authors may draw from Paddle's generator: that too is a function of (seed, step, micro-batch).
        paddle.seed(randomness.digest(context.seed, "step", context.step, context.micro_batch) >> 1)
        tap, settings = Tap(), self.settings
        with paddle.amp.auto_cast(enable=settings.precision != "float32", dtype="bfloat16"):
            loss = objective(self.model, batch.tensors(), settings.label_smoothing, settings.r_drop, tap) / tokens
            aux_losses = {name: aux_loss / num_batches for name, aux_loss in tap.aux_losses.items()}
            for aux_loss in aux_losses.values():
                loss = loss + aux_loss
        loss.backward()
        return float(loss), {name: float(aux_loss) for name, aux_loss in aux_losses.items()}


def clip_gradients(parameters: Sequence[Tensor], max_norm: float | None) -> float:
    """g *= max_norm / ‖g‖ for all gradients g together, if their joint norm ‖g‖ is above `max_norm`; returns ‖g‖ before.

    Source: Pascanu et al. 2013, arXiv:1211.5063.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = [gradient.flatten() for gradient in gradients]  # [n] each
    # A product, not `paddle.dot`: that takes three times as long on a CPU, and adds up in one row.
    norm = math.sqrt(float(paddle.add_n([paddle.matmul(gradient, gradient) for gradient in flat])))
    if max_norm is not None and norm > max_norm:
        with paddle.no_grad():
            for gradient in gradients:
                gradient.scale_(max_norm / (norm + EPS))
    return norm
