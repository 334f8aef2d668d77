"""One training step: forward, loss, backward, clip, update.

The loss (`Transformer.loss`) is one over all batches of the step, so that several small batches with accumulated
gradients train as one large batch does (except for layers with statistics over a batch). `train/divided/` divides
this step among several processes.

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

from paddle_tfm import memory, paddle_compat, place, randomness
from paddle_tfm.data.batches import Batch
from paddle_tfm.kernels.cpu import products
from paddle_tfm.language import _
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Tap
from paddle_tfm.recipe.settings import TrainSettings
from paddle_tfm.train.moving_average import MovingAverage

HELD = 3  # numbers for each parameter, beside itself: its gradient and two moments
EPS = 1e-6  # added to the norm in the denominator of clipping


class StepMetrics(NamedTuple):
    """The metrics of a step: the loss in nats per token with the auxiliary losses in it, the auxiliary losses by name,
    the learning rate, the joint norm of all gradients before clipping, and the number of real target tokens."""

    loss: float
    aux_losses: dict[str, float]
    learning_rate: float
    gradient_norm: float
    tokens: int

    def row(self) -> dict[str, float]:
        """The row of the log; an auxiliary loss `balance` is named `balance_loss` in it."""
        aux_losses = {f"{name}_loss": value for name, value in self.aux_losses.items()}
        rest = {"learning_rate": self.learning_rate, "gradient_norm": self.gradient_norm, "tokens": self.tokens}
        return {"loss": self.loss, **aux_losses, **rest}


@dataclass
class LossSum:
    """The sums of the loss, and of each auxiliary loss by name, over parts of a step."""

    loss: float = 0.0
    aux_losses: dict[str, float] = field(default_factory=dict)

    def add(self, loss: float, aux_losses: dict[str, float]) -> None:
        """Add the losses of one more part."""
        self.loss += loss
        for name, value in aux_losses.items():
            self.aux_losses[name] = self.aux_losses.get(name, 0.0) + value


class Gradients:
    """Adds the gradients of a step's loss to those of a model's parameters.

    Args:
        parameters: the trainable parameters of the model.
        settings: the recipe's `train:` section. seed: of the run; all random numbers are keyed by it.
    """

    def __init__(self, model: Transformer, parameters: Sequence[Tensor], settings: TrainSettings, seed: int):
        self.model, self.parameters, self.settings, self.seed = model, list(parameters), settings, seed
        self.products = products.available(settings.products) if settings.precision == "float32" else None

    def clear(self) -> None:
        """Clear the parameters' gradients, so that the next backward pass assigns instead of adding."""
        for parameter in self.parameters:
            parameter.clear_gradient(False)  # by position: Paddle ignores the keyword `set_to_zero`

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
        """The contribution of a batch [B, S] → [B, T] to the loss of a step with `tokens` and `num_batches` in total,
        and to its auxiliary losses; its gradients are added to the parameters'."""
        # Layers of plugins may use Paddle's generator: seeded, it too depends on (seed, step, micro-batch) only.
        paddle.seed(randomness.digest(context.seed, "step", context.step, context.micro_batch) >> 1)
        tap, settings = Tap(), self.settings
        with self.model.computing("step", self.products):
            with paddle.amp.auto_cast(enable=settings.precision != "float32", dtype="bfloat16"):
                smoothing, r_drop = settings.label_smoothing, settings.r_drop
                loss = self.model.loss(batch.tensors(), smoothing, tap, r_drop, tokens, num_batches)
            loss.backward()
        return float(loss), {name: float(aux_loss) for name, aux_loss in tap.aux_losses.items()}


class Step(Gradients):
    """Updates a model. Call it with the number of the step, from 1, and the batches of the step as NumPy arrays.

    Args:
        schedule: step → learning rate.
        average: the moving average of the weights, if the recipe sets `train.ema`.
        parameters, settings, seed: as for `Gradients`.
    Raises:
        MemoryError: the memory that is free does not hold the gradients and what most optimizers keep.
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
        super().__init__(model, parameters, settings, seed)
        if place.on_cpu():
            numbers = sum(int(parameter.size) for parameter in parameters)
            memory.require(4 * HELD * numbers, _("the training of {numbers:,} parameters").format(numbers=numbers))
        self.optimizer, self.schedule, self.average = optimizer, schedule, average

    def rest(self) -> None:
        """What comes next is no step, and may take long: an evaluation, a checkpoint."""

    def __call__(self, number: int, batches: Sequence[Batch[np.ndarray]]) -> StepMetrics:
        """One update of the parameters; returns its metrics. Where loss or gradient is no finite number, there is no
        update."""
        # Here and not at the end, so that listeners still see the gradients of the last step. Without zeros, the
        # backward pass assigns instead of adding.
        self.optimizer.clear_grad(set_to_zero=False)
        losses = self.backward(number, batches)
        norm = clip_gradients(self.parameters, self.settings.clip_norm)
        rate, tokens = self.schedule(number), sum(batch.tokens for batch in batches)
        metrics = StepMetrics(losses.loss, losses.aux_losses, rate, norm, tokens)
        if not (math.isfinite(losses.loss) and math.isfinite(norm)):
            return metrics  # an update would make the parameters what the gradient is
        self.optimizer.set_lr(rate)
        with paddle.utils.unique_name.guard():  # names of moments must not depend on other tensors of this process
            self.optimizer.step()
        if self.average is not None:
            self.average.update(number)
        return metrics


class DividedStep(Step):
    """A step that updates what `plain` does, and whose batches several processes share."""

    def __init__(self, plain: Step):
        super().__init__(
            plain.model,
            plain.parameters,
            plain.optimizer,
            plain.schedule,
            plain.settings,
            plain.seed,
            plain.average,
        )


def clip_gradients(parameters: Sequence[Tensor], max_norm: float | None) -> float:
    """g *= max_norm / ‖g‖ for all gradients g, if their joint norm ‖g‖ is above `max_norm`. Returns ‖g‖ unclipped.

    Source: Pascanu et al. 2013, arXiv:1211.5063.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    squares = paddle.concat([paddle_compat.sum_of_squares(gradient) for gradient in gradients])
    norm = math.sqrt(squares.numpy().sum(dtype="float64"))
    if max_norm is not None and max_norm < norm < math.inf:
        with paddle.no_grad():
            for gradient in gradients:
                gradient.scale_(max_norm / (norm + EPS))
    return norm


def gradient_norms(model: Transformer, joint_norm: float) -> dict[str, float]:
    """Path of a parameter → norm of its gradient before clipping.

    Clipping has scaled all gradients alike, so that the joint norm before it, `joint_norm`, undoes it.
    """
    norms = {
        path: math.sqrt(paddle_compat.sum_of_squares(parameter.grad).numpy().sum(dtype="float64"))
        for path, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    after = math.sqrt(sum(norm * norm for norm in norms.values()))
    return {path: norm * joint_norm / after if after else 0.0 for path, norm in norms.items()}
