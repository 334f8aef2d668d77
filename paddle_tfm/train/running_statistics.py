"""Running statistics of norms, which a pass in training changes: put back to what they were; how far they are from the
statistics of training batches; and estimated again from training batches under fixed weights, as precise BatchNorm does
(Wu & Johnson 2021, arXiv:2105.07576)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from statistics import fmean
from typing import Any

import paddle
from paddle import Tensor

from paddle_tfm import randomness
from paddle_tfm.data.batches import Stream
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Norm

COMPARED_BATCHES = 8  # over which discrepancies are averaged
POOLED_BATCHES = 100  # from which the statistics of averaged weights are estimated, where no norm says how many


def remembered(buffers: Iterable[Tensor]) -> Callable[[], None]:
    """A function that sets these buffers to what they are now."""
    copies = [(buffer, buffer.clone()) for buffer in buffers]

    def restore() -> None:
        for buffer, copy in copies:
            paddle.assign(copy, output=buffer)

    return restore


@contextmanager
def undone(buffers: Iterable[Tensor]) -> Iterator[None]:
    """After this block these buffers are what they were before."""
    restore = remembered(buffers)
    try:
        yield
    finally:
        restore()


def discrepancies(model: Transformer, stream: Stream, seed: int, step: int) -> dict[str, dict[str, float]]:
    """`Norm.discrepancy` of each norm with running statistics, by its path in the model: means over the next batches of
    `stream`, in forward passes as in training, with the dropout of `step`. The model's buffers are restored
    afterwards."""
    norms = {
        path: layer
        for path, layer in model.named_sublayers()
        if isinstance(layer, Norm) and type(layer).discrepancy is not Norm.discrepancy
    }
    if not norms:
        return {}
    values: dict[str, dict[str, list[float]]] = {path: {} for path in norms}

    def measure(path: str):
        def hook(norm: Any, arguments: Any, kwargs: dict) -> Any:
            for name, value in norm.discrepancy(*arguments, **kwargs).items():
                values[path].setdefault(name, []).append(float(value))

        # Before the batch changes its statistics. It returns None, which Paddle's code takes for "as it was"; Paddle's
        # annotation forbids it, hence `Any`.
        return norms[path].register_forward_pre_hook(hook, with_kwargs=True)

    hooks, training = [measure(path) for path in norms], model.training
    restore = remembered(model.built_buffers().values())
    model.train()
    try:
        for number in range(COMPARED_BATCHES):
            paddle.seed(randomness.digest(seed, "discrepancy", step, number) >> 1)
            with paddle.no_grad(), model.computing("step"), randomness.random_context(seed, step, number):
                model(next(stream).tensors())
            restore()
    finally:
        for hook in hooks:
            hook.remove()
        if not training:
            model.eval()
    return {path: {name: fmean(numbers) for name, numbers in by_name.items()} for path, by_name in values.items()}


def overall(by_norm: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The means over norms, as metrics of an evaluation: `norm_discrepancy_mean` and `norm_discrepancy_deviation`."""
    rows = list(by_norm.values())
    names = dict.fromkeys(name for row in rows for name in row)
    return {f"norm_discrepancy_{name}": fmean(row[name] for row in rows if name in row) for name in names}


@contextmanager
def estimated(model: Transformer, stream: Stream, seed: int) -> Iterator[None]:
    """Within this block, norms that ask for it (`Norm.population`) have the statistics of the next batches of `stream`
    under the model's present weights; afterwards they have those of training again."""
    norms = [norm for norm in _norms(model) if norm.population]
    with undone(_buffers(norms)):
        if norms:
            _estimate(model, norms, stream, seed, max(norm.population for norm in norms))
        yield


def estimate_all(model: Transformer, stream: Stream, seed: int) -> None:
    """Set the statistics of all norms that can re-estimate them to those of the model's present weights."""
    if norms := _norms(model):
        _estimate(model, norms, stream, seed, max(norm.population or POOLED_BATCHES for norm in norms))


def _estimate(model: Transformer, norms: Sequence[Norm], stream: Stream, seed: int, num_batches: int) -> None:
    """Set the statistics of `norms` to those of the next batches of `stream`, by passes as in training, with its
    dropout. All other buffers stay."""
    training, of_norms = model.training, {id(norm) for norm in norms}
    model.train()
    with ExitStack() as blocks:
        others = (layer for layer in model.sublayers() if id(layer) not in of_norms)
        blocks.enter_context(undone(_buffers(others)))
        for norm in norms:
            blocks.enter_context(norm.pooling())
        for number in range(num_batches):
            paddle.seed(randomness.digest(seed, "re-estimation", number) >> 1)
            with paddle.no_grad(), model.computing("step"), randomness.random_context(seed, 0, number):
                model(next(stream).tensors())
    if not training:
        model.eval()


def _buffers(layers: Iterable[paddle.nn.Layer]) -> list[Tensor]:
    """The buffers of `layers`, not of their sublayers."""
    return [buffer for layer in layers for buffer in layer.buffers(include_sublayers=False)]


def _norms(model: Transformer) -> list[Norm]:
    """Those that can re-estimate their statistics."""
    return [layer for layer in model.sublayers() if isinstance(layer, Norm) and type(layer).pooling is not Norm.pooling]
