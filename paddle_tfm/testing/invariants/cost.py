"""Speed and memory, for information."""

from __future__ import annotations

import time

import numpy as np

from paddle_tfm.components import Spec
from paddle_tfm.testing.invariants import LAYERS
from paddle_tfm.testing.models.scene import make_batch
from paddle_tfm.testing.models.size import Size
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Note, Result

SIZE = Size(64, 4, 256, 2, 2, (24,) * 16, (24,) * 16)
NUM_STEPS, MAX_SECONDS = 6, 3.0


@check(
    *LAYERS, invariant="speed and memory compared with the default component", consequence="", hint="", information=True
)
def cost(subject) -> Result:
    value = subject.scenes[0].settings.model_dump()[subject.kind]
    usual = subject.base[subject.kind]
    models, batch = [], make_batch(SIZE)
    for each in (value, usual):
        model = subject.make(subject.settings(SIZE, each))
        model.train()
        models.append(model)
    seconds: list[list[float]] = [[], []]
    for i in range(NUM_STEPS):
        if i and sum(map(sum, seconds)) > MAX_SECONDS:
            break
        for model, times in zip(models, seconds):
            begin = time.perf_counter()
            model.loss(batch).backward()
            times.append(time.perf_counter() - begin)
            model.clear_gradients()
    step = [float(np.median(times[1:] or times)) for times in seconds]  # the first one warms up
    weights = [sum(p.size for p in model.parameters()) for model in models]
    return Note(
        f"a training step takes {step[0] / step[1]:.2f} × that with {Spec.parse(usual).name}, with "
        f"{weights[0] / weights[1]:.2f} × the parameters (d_model 64, 2+2 layers, 16 sentences of 24 tokens)"
    )
