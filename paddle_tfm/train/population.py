"""Running statistics of norms, re-estimated from training batches under fixed weights: precise BatchNorm (Wu &
Johnson 2021, arXiv:2105.07576)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import paddle

from paddle_tfm import randomness
from paddle_tfm.data.batches import Stream
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Norm
from paddle_tfm.train.buffers import undone

NUM_BATCHES = 100  # from which the statistics of averaged weights are estimated, where no norm says how many


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
        _estimate(model, norms, stream, seed, max(norm.population or NUM_BATCHES for norm in norms))


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
            with paddle.no_grad(), randomness.random_context(seed, 0, number):
                model(next(stream).tensors())
    if not training:
        model.eval()


def _buffers(layers: Iterable[paddle.nn.Layer]) -> list[paddle.Tensor]:
    """The buffers of `layers`, not of their sublayers."""
    return [buffer for layer in layers for buffer in layer.buffers(include_sublayers=False)]


def _norms(model: Transformer) -> list[Norm]:
    """Those that can re-estimate their statistics."""
    return [layer for layer in model.sublayers() if isinstance(layer, Norm) and type(layer).pooling is not Norm.pooling]
