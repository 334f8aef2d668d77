"""What the invariants need of a model, whoever wrote it: one interface for a component inside small real models
(`Scene`) and for anybody's whole model (`adapters.whole_model.WholeModel`)."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm import randomness
from paddle_tfm.data.batches import Batch
from paddle_tfm.layers import Dropout
from paddle_tfm.testing.results import CLOSE, Skip, distance

Dtype = Literal["float32", "float64"]
Model = TypeVar("Model", bound=nn.Layer)


class ModelUnderTest(ABC, Generic[Model]):
    """Models and batches are built again whenever a check asks for them, the same ones each time."""

    foreign: bool = False
    """Written without paddle_tfm: it may hold a weight under two names, and parameters that are frozen."""
    training_dtype: Dtype = "float64"
    """What losses and gradients are compared in."""
    training_tolerance: float = 1e-5
    """What they may differ by: a component may compute a part in float32."""
    long_scenes: Sequence[ModelUnderTest] = ()
    """The same with longer texts, for the checks that ask for them."""
    scenes_of_equal_sizes: Sequence[ModelUnderTest] = ()
    """The same with as many sentences as tokens and heads, for the checks that ask for them."""
    steps, learning_rate, loss_ratio = 60, 3e-3, 0.8
    """Training on one batch: steps of Adam, their learning rate, and the share of the first loss that must be left at
    most."""

    @abstractmethod
    def model(self, dtype: Dtype = "float32", seed: int = 3, dropout: float = 0.0, moved: bool = True) -> Model:
        """A model in evaluation mode; `moved`: with values as after some training."""

    @cached_property
    def evaluated_model(self) -> Model:
        """`model()`, built once for all checks that only evaluate it; what may be left in it, `stateless` sees."""
        return self.model()

    @abstractmethod
    def buffers(self, model: Model) -> dict[str, Tensor]:
        """Path → buffer, of those that a model has before its first pass."""

    @abstractmethod
    def batch(self, extra_padding: int = 0, seed: int = 0) -> Batch:
        """Sentences of several lengths, padded at their ends by as much as is needed and `extra_padding` more."""

    @abstractmethod
    def decoder_outputs(self, model: Model, batch: Batch) -> np.ndarray:
        """What the decoder says at each target position [B, T, ·], without a graph."""

    @abstractmethod
    def outputs(self, model: Model, batch: Batch) -> np.ndarray:
        """What a user sees of a model at the N real target tokens [N, ·], in the order of sentences, without a
        graph."""

    @abstractmethod
    def losses(self, model: Model, batch: Batch, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """(cross entropy, what training minimizes), summed over real target tokens: scalars."""

    @abstractmethod
    def padded_batches(self) -> Iterator[tuple[str, Batch]]:
        """(what is different, `batch()` with other padding)."""

    @abstractmethod
    def without_source(self, batch: Batch, rows: list[int]) -> Batch:
        """The batch, the sources of these rows all padding."""

    @abstractmethod
    def other_ids(self, ids: Tensor) -> Tensor:
        """Another id in each place."""

    @abstractmethod
    def other_words(self, ids: Tensor) -> Tensor:
        """Another word in the place of each word; special ids stay."""

    def compared_positions(self, batch: Batch) -> np.ndarray:
        """bool [B, T]: the target positions whose outputs are compared."""
        return batch.target_valid.numpy()

    def gradients_by_position(self, model: Model, batch: Batch) -> Iterator[tuple[int, np.ndarray]]:
        """(t, |∂ output t / ∂ input s| for each position s [T]) of the longest target; nothing where a model takes ids
        only."""
        return iter(())

    def training_model(self, dtype: Dtype = "float32", dropout: float = 0.0) -> Model | Skip:
        """A model in training mode; without `dropout` it draws nothing, with it the same in each pass."""
        model, batch = self.model(dtype, dropout=dropout), self.batch()
        model.train()
        if self.foreign and distance(self.decoder_outputs(model, batch), self.decoder_outputs(model, batch)) > CLOSE:
            return Skip("its dropout could not be set to zero")
        return model


def drop_nothing(model: nn.Layer) -> None:
    """All dropout of a model off, also one with a rate of its own: in training it shall compute what it computes in
    evaluation. A call of `F.dropout` is off where `same_draws` computes a step of it."""
    model._drops_nothing = True
    for layer in model.sublayers(include_self=True):
        if isinstance(layer, Dropout):
            layer.rate = 0.0
        elif isinstance(layer, nn.Dropout):
            layer.p = 0


@contextmanager
def same_draws(model: nn.Layer, seed: int = 7) -> Iterator[None]:
    """Within this block, what a model in training draws is a function of `seed`: a step, computed once more. In
    evaluation it should draw nothing, and nothing is done about it."""
    if not model.training:
        yield
        return
    paddle.seed(seed)
    np.random.seed(seed)
    random.seed(seed)
    with (
        randomness.random_context(seed, 1),
        _no_dropout() if getattr(model, "_drops_nothing", False) else nullcontext(),
    ):
        yield


@contextmanager
def _no_dropout() -> Iterator[None]:
    """Within this block `F.dropout` has rate 0, whatever rate it is given."""
    usual = F.dropout

    def dropout(x: Tensor, p: float = 0.5, *args: Any, **kwargs: Any) -> Tensor:
        return usual(x, 0.0, *args, **kwargs)

    F.dropout = dropout
    try:
        yield
    finally:
        F.dropout = usual


def gradient_through(layer: nn.Layer, value: Tensor, x: Tensor, retain_graph: bool = False) -> Tensor:
    """The gradient of `value` by `x`, which passed through `layer`; zeros where it does not depend on it. That of the
    layer's weights is computed too: Paddle's `addmm` ends the process where its bias needs no gradient."""
    weights = [parameter for parameter in layer.parameters() if not parameter.stop_gradient]
    gradient = paddle.grad(value, [x, *weights], retain_graph=retain_graph, allow_unused=True)[0]
    return paddle.zeros_like(x) if gradient is None else gradient


def select_rows(batch: Batch, rows: list[int]) -> Batch:
    """These sentences of a batch, padded as before."""
    index = paddle.to_tensor(rows, dtype="int64")
    return batch.map_arrays(lambda part: part.index_select(index, 0))


def lengths(valid: Tensor) -> list[int]:
    """How many tokens of each row [B, T] are real."""
    return valid.astype("int64").sum(1).numpy().tolist()
