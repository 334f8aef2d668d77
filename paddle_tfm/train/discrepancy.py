"""How far the running statistics of norms, which evaluation uses, are from the statistics of training batches."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import paddle

from paddle_tfm import randomness
from paddle_tfm.data.batches import Stream
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Norm

NUM_BATCHES = 8  # batches over which discrepancies are averaged


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
        def hook(norm: Any, arguments: tuple, kwargs: dict) -> Any:
            for name, value in norm.discrepancy(*arguments, **kwargs).items():
                values[path].setdefault(name, []).append(float(value))

        # Before the batch changes its statistics. It returns None, which Paddle's code takes for "as it was"; Paddle's
        # annotation forbids it, hence `Any`.
        return norms[path].register_forward_pre_hook(hook, with_kwargs=True)

    hooks, training = [measure(path) for path in norms], model.training
    buffers = {path: buffer.clone() for path, buffer in model.built_buffers().items()}
    model.train()
    try:
        for number in range(NUM_BATCHES):
            paddle.seed(randomness.digest(seed, "discrepancy", step, number) >> 1)
            with paddle.no_grad(), randomness.random_context(seed, step, number):
                model(next(stream).tensors())
            for path, buffer in model.built_buffers().items():
                paddle.assign(buffers[path], output=buffer)
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
