"""Initial values of a model: drawn by (seed, parameter path), or calibrated on a batch by the placement."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import getattr_static

import numpy as np
from paddle import nn

from paddle_tfm import randomness
from paddle_tfm.layers import Dropout, Embedding
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Initializer, ParameterSite, Placement, Profile, Tap, maps

OUTPUT = "head.output.weight"  # the matrix to the words, where a head has one


def initialize(model: Transformer, initializer: Initializer, seed: int) -> None:
    """Draw every matrix and table without the mark `keep_initial` by counter-based random numbers, keyed by (seed,
    path); set the padding rows to zero; multiply by the placements' branch gain; give every dropout its path and every
    parameter its name and the factor of its learning rate, which Paddle's optimizers multiply by.

    Raises:
        ValueError: the initializer does not fit the model.
    """
    tables = {id(layer.weight): layer for layer in model.sublayers() if isinstance(layer, (Embedding, nn.Embedding))}
    depths = {name: len(stack.layers) for name, stack in model.stacks().items()}
    branches = {name: sum(len(layer.branches()) for layer in stack.layers) for name, stack in model.stacks().items()}
    parameters = list(model.named_parameters())
    sites = [
        ParameterSite(
            path,
            branches.get(path.partition(".")[0], 0),
            depths.get("encoder", 0),
            depths.get("decoder", 0),
            getattr(tables.get(id(parameter)), "factor", 1.0),
            None if id(parameter) in tables else "output" if path == OUTPUT else maps(parameter),
        )
        for path, parameter in parameters
    ]
    initializer.inspect(sites)
    for site, (path, parameter) in zip(sites, parameters):
        parameter.name = path
        role, shape = "embedding" if id(parameter) in tables else "weight", tuple(parameter.shape)
        parameter.optimize_attr["learning_rate"] = initializer.rate_factor(site, shape, role)
        if parameter.ndim < 2 or getattr(parameter, "keep_initial", False):
            continue
        values = initializer.draw_at(site, randomness.generator(seed, "initial", path), shape, role)
        if role == "embedding" and isinstance(tables[id(parameter)], Embedding):
            values[tables[id(parameter)].pad_id] = 0.0
        parameter.set_value(np.asarray(values, dtype=np.dtype(str(parameter.dtype).removeprefix("paddle."))))
    for layer in (layer for stack in model.stacks().values() for layer in stack.layers):
        gain = layer.placement.branch_gain
        for name, branch in layer.branches().items():
            if (factor := gain.get(name, 1.0) if isinstance(gain, Mapping) else gain) != 1.0:
                for weight in branch.branch_weights():
                    weight.set_value(weight * factor)
    for path, sublayer in model.named_sublayers():
        if isinstance(sublayer, Dropout):
            sublayer.path = path


def calibrate(model: Transformer, batch) -> None:
    """Let placements set initial values from one forward pass over the real tokens of `batch`, without dropout
    (Admin). Most placements do not calibrate: then nothing is computed."""
    base = getattr_static(Placement, "calibrate")
    stacks = {
        name: stack
        for name, stack in model.stacks().items()
        if getattr_static(type(stack.layers[0].placement), "calibrate") is not base
    }
    if not stacks:
        return
    tap = Tap(recording=True)
    with model.evaluated():
        model(batch, tap)
    for name, stack in stacks.items():
        valid = batch.source_valid if name == "encoder" else batch.target_valid  # [B, T]
        activations = [(path, value) for path, value in tap.recorded if path.startswith(f"{name}.")]
        entry = next(float(value[valid].var()) for path, value in activations if path == f"{name}.input")
        branches = [float(value[valid].var()) for path, value in activations if path.endswith(".branch")]
        placements = [layer.placement for layer in stack.layers]
        type(placements[0]).calibrate(placements, Profile(entry, branches))
