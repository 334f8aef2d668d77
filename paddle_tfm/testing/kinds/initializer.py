"""What holds for initial values."""

from __future__ import annotations

import math

import numpy as np
import paddle

from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result
from paddle_tfm.testing.scene import make_batch
from paddle_tfm.testing.size import Size
from paddle_tfm.testing.subject import Subject

DEEP = Size(64, 4, 256, 4, 4, (9,) * 8, (9,) * 8)
SMALL = Size(16, 2, 24, 2, 2, (3,), (3,))
WORDS = 200
MAX_EXCESS = 1.5  # nats a token, from log V


@check(
    "initializer",
    invariant="at the start the loss is about log V: the model has no opinion yet",
    consequence="training first has to undo the initial values; deep models never recover",
    hint="the scale of matrices: variance about 1 / width; U(−1, 1) is far too wide",
)
def initial_loss(subject: Subject) -> Result:
    model = subject.make(subject.settings(DEEP, subject.spec), vocabulary=WORDS)
    model.eval()
    batch = make_batch(DEEP)
    with paddle.no_grad():
        loss = float(model.loss(batch)) / batch.tokens
    even = math.log(WORDS)
    if not abs(loss - even) < MAX_EXCESS:
        return Failed(f"{loss:.2f} nats a token, where log V is {even:.2f} (4+4 layers, d_model 64, V {WORDS})")
    return Note(f"{loss:.2f} nats a token, log V is {even:.2f}")


@check(
    "initializer",
    invariant="values belong to the seed and the parameter's path: two parameters of one shape start differently, with "
    "another seed all do, and no matrix is constant",
    consequence="parts that should learn different things start alike",
    hint="draws from the `rng` of this call, nothing else",
)
def differing_values(subject: Subject) -> Result:
    settings = subject.settings(SMALL, subject.spec)
    model, other_seed = subject.make(settings, seed=1), dict(subject.make(settings, seed=2).named_parameters())
    names: dict[bytes, str] = {}
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            continue
        value = parameter.numpy()
        if not np.isfinite(value).all() or np.ptp(value) == 0:
            return Failed(f"{name} is {value.flat[0]:.3g} all over")
        key = value.tobytes()
        if key in names:
            return Failed(f"{name} and {names[key]} start with the same values")
        if np.array_equal(value, other_seed[name].numpy()):
            return Failed(f"{name} starts with the same values from two seeds")
        names[key] = name
    with_more_words = dict(subject.make(settings, seed=1, vocabulary=WORDS).named_parameters())
    for name, parameter in model.named_parameters():
        other = with_more_words[name]
        if parameter.ndim >= 2 and parameter.shape == other.shape and not np.array_equal(parameter, other):
            return Failed(f"{name} starts with other values if the vocabulary, of which it knows nothing, is larger")
    return Passed()
