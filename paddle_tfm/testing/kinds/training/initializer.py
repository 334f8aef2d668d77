"""What holds for initial values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import paddle

from paddle_tfm import randomness
from paddle_tfm.errors import RecipeError
from paddle_tfm.model.initialize import initialize
from paddle_tfm.protocols import Initializer, ParameterSite
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.scene import make_batch
from paddle_tfm.testing.models.size import Size
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result

DEEP = Size(64, 4, 256, 4, 4, (9,) * 8, (9,) * 8)
SMALL = Size(16, 2, 24, 2, 2, (3,), (3,))
WORDS = 200
OWN_MATRIX, SHARED_TABLE = "linear", "tied"  # heads: what their logits are made with
MAX_EXCESS = 1.5  # nats a token, from log V


@check(
    "initializer",
    invariant="at the start the loss is about log V, as of uniform predictions",
    consequence="training first has to undo the initial values; deep models never recover",
    hint="the scale of matrices: variance about 1 / width; U(−1, 1) is far too wide; that of tables, which a tied head "
    "shares, 1 / width too, where their vectors are multiplied by its root (`site.factor`)",
)
def initial_loss(subject: ComponentUnderTest) -> Result:
    even, batch, losses = math.log(WORDS), make_batch(DEEP), {}
    for head in OWN_MATRIX, SHARED_TABLE:
        try:
            model = subject.make(subject.settings(DEEP, subject.spec, head=head), vocabulary=WORDS)
        except RecipeError:  # muP gives the output matrix a rate of its own, and the tied head has none
            continue
        model.eval()
        with paddle.no_grad():
            losses[head] = loss = float(model.loss(batch))
        if not abs(loss - even) < MAX_EXCESS:
            factor = f"; vectors of tables are multiplied by `site.factor`, {DEEP.d_model**0.5:g}" * (
                head == SHARED_TABLE
            )
            return Failed(f"{loss:.2f} nats a token with the head `{head}`, where log V is {even:.2f} (4+4 layers, "
                          f"d_model {DEEP.d_model}, V {WORDS}){factor}")  # fmt: skip
    said = ", ".join(f"{loss:.2f} nats a token with the head `{head}`" for head, loss in losses.items())
    return Note(f"{said}; log V is {even:.2f}")


@check(
    "initializer",
    invariant="values depend on the seed and the parameter's path: parameters of one shape differ, another seed "
    "changes all, and no matrix is constant",
    consequence="parts that should learn different things start alike",
    hint="draws from the `rng` of this call, nothing else",
)
def differing_values(subject: ComponentUnderTest) -> Result:
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


Draw = tuple[ParameterSite, tuple[int, ...], str]  # site, shape, role


class _Recorder(Initializer):
    """What a model asks its initializer for."""

    def __init__(self):
        self.sites: Sequence[ParameterSite] = []
        self.draws: list[Draw] = []

    def inspect(self, sites: Sequence[ParameterSite]) -> None:
        self.sites = sites

    def draw_at(self, site: ParameterSite, rng: np.random.Generator, shape: Sequence[int], role: str) -> np.ndarray:
        self.draws.append((site, tuple(shape), role))
        return np.zeros(shape, dtype="float32")


@check(
    "initializer",
    invariant="a parameter's values do not depend on earlier draws: in another order, or drawn again, they are "
    "the same",
    consequence="one more layer or matrix changes the initial values of all later ones",
    hint="counters and lists that `draw` or `draw_at` adds to; what belongs to a place is in `site`",
)
def own_values(subject: ComponentUnderTest) -> Result:
    recorder = _Recorder()
    initialize(subject.make(subject.settings(SMALL, subject.spec)), recorder, 1)

    def drawn(initializer: Initializer, draws: Iterable[Draw]) -> dict[str, np.ndarray]:
        return {
            site.path: np.array(initializer.draw_at(site, randomness.generator(1, site.path), shape, role))
            for site, shape, role in draws
        }

    initializers = [subject.build(d_model=SMALL.d_model) for _ in range(2)]
    for initializer in initializers:
        initializer.inspect(recorder.sites)
    usual = drawn(initializers[0], recorder.draws)
    for how, values in (
        ("in the reverse order", drawn(initializers[1], recorder.draws[::-1])),
        ("drawn again", drawn(initializers[0], recorder.draws)),
    ):
        for path, value in usual.items():
            if not np.array_equal(value, values[path]):
                return Failed(f"{path} {list(value.shape)} gets other values {how}")
    return Passed()
