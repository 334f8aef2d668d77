"""How far the running statistics of norms, which serve at evaluation, are from those of training batches."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

import paddle

from paddle_tfm import randomness
from paddle_tfm.data.batches import Stream
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Norm

BATCHES = 8  # over which it is averaged


def discrepancies(model: Transformer, stream: Stream, seed: int, step: int) -> dict[str, dict[str, float]]:
    """`Norm.discrepancy` of each norm with running statistics, by its path in the model: means over the next batches of
    `stream`, which are passed as in training, with the dropout of `step`. The model remembers nothing of it."""
    norms = {
        path: layer
        for path, layer in model.named_sublayers()
        if isinstance(layer, Norm) and type(layer).discrepancy is not Norm.discrepancy
    }
    if not norms:
        return {}
    found: dict[str, dict[str, list[float]]] = {path: {} for path in norms}

    def watch(path: str):
        def look(norm: Norm, given: tuple, named: dict) -> None:
            for name, value in norm.discrepancy(*given, **named).items():
                found[path].setdefault(name, []).append(float(value))

        return norms[path].register_forward_pre_hook(look, with_kwargs=True)  # before it takes in the batch

    hooks, training = [watch(path) for path in norms], model.training
    before = {path: buffer.clone() for path, buffer in model.named_buffers()}
    model.train()
    try:
        for number in range(BATCHES):
            paddle.seed(randomness.digest(seed, "discrepancy", step, number) >> 1)
            with paddle.no_grad(), randomness.random_context(seed, step, number):
                model(next(stream).tensors())
            for path, buffer in model.named_buffers():
                paddle.assign(before[path], output=buffer)
    finally:
        for hook in hooks:
            hook.remove()
        if not training:
            model.eval()
    return {path: {name: fmean(values) for name, values in each.items()} for path, each in found.items()}


def overall(of_norms: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The means over norms, as metrics of an evaluation: `norm_discrepancy_mean` and `norm_discrepancy_deviation`."""
    names = dict.fromkeys(name for each in of_norms.values() for name in each)
    return {
        f"norm_discrepancy_{name}": fmean(each[name] for each in of_norms.values() if name in each) for name in names
    }
