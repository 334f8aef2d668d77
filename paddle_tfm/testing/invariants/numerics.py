"""Numbers at the edges: rows without a key, spikes, the backward pass, half precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm import place
from paddle_tfm.data.batches import Batch
from paddle_tfm.data.vocabulary import PAD
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.testing.invariants import LAYERS, WHOLE_MODEL
from paddle_tfm.testing.models.model_under_test import Dtype, ModelUnderTest
from paddle_tfm.testing.models.scene import Scene, embeddings
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip, difference, some

DTYPES: tuple[Dtype, ...] = ("float32", "float64")
FACTORS = (1e4, 1e-6, 0.0)
BY_SILU = (
    "by Paddle's own F.silu, whose gradient is NaN below −88 on a CPU, and not on a GPU; x * F.sigmoid(x) is the same "
    "function without that"
)
STEP_SIZES = (1e-4, 1e-6, 1e-8, 1e-5, 1e-3)
"""Of finite differences: kinks (ReLU, the choice of an expert) need a small one, parts held in float32 a large one."""

NUDGE, NUDGES = 1e-4, 8  # of the size of each weight; how often
SMALLEST_NUDGE = 1e-9
ROUNDED = f"weights moved by {SMALLEST_NUDGE:g} change nothing, bit for bit: numbers are rounded on the way"
MAX_STEPS = 0.03  # of the way that outputs go: 0.005 is usual, and 0.06 where one small table is in float16


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="a row whose keys are all masked stays finite, in values and gradients",
    consequence="one empty sentence turns all weights of the model into NaN",
    hint="softmax over nothing but −inf (use a large negative number), divisions by a count that may be 0",
    each_scene=True,
)
def masked_rows(model_under_test: ModelUnderTest) -> Result:
    batch = model_under_test.batch()
    every = list(range(batch.source.shape[0]))
    for rows in ([0], every):
        empty = model_under_test.without_source(batch, rows)
        for dtype in DTYPES:
            model = model_under_test.model(dtype)
            model.train()
            failed = not_finite(model_under_test, model, empty, "a source that is all padding")
            # A batch norm has no statistics of no token: numbers may grow from layer to layer, beyond float32.
            if failed is None or rows != every:
                break
        if failed:
            return failed
    return Passed()


@check(
    *LAYERS,
    invariant="very large and very small inputs stay finite, in values and gradients",
    consequence="a spike in training ends in NaN",
    hint="exp, division, square roots at 0 (`std` of equal numbers), squares of large numbers: shift, clip or add a "
    "small number",
)
def extremes(subject) -> Result:
    places = [(scene, 0) for scene in subject.scenes]
    if subject.kind != "position":  # no instance of it gets what is made larger
        once = subject.one_layer
        places += [(once, i) for i in range(1, len(once.instances(once.model(moved=False))))]

    def first() -> Failed | None:
        return next((failed for scene, place in places if (failed := _extremes_at(scene, place))), None)

    return or_by_silu(first(), first) or Passed()


@contextmanager
def written_out_silu() -> Iterator[None]:
    """Within this block `F.silu(x)` is x * F.sigmoid(x), whose gradient is finite on a CPU too."""
    with patch.object(F, "silu", lambda x, *others, **more: x * F.sigmoid(x)):
        yield


def or_by_silu(failed: Failed | None, again: Callable[[], Failed | None]) -> Failed | Note | None:
    """What is not finite, and a remark where that is Paddle's F.silu alone: with it written out nothing fails."""
    if failed is None:
        return None
    with written_out_silu():
        return failed if again() else Note(f"{failed.text}, {BY_SILU}")


def _extremes_at(scene: Scene, place: int) -> Failed | None:
    """Failed where numbers are not finite behind the component's instance of this number. At one place only: from layer
    to layer a factor would grow beyond all numbers."""
    for factor in FACTORS:
        what = f"its input times {factor:g}"
        model = scene.model()
        model.train()
        if scene.subject.kind == "head":
            if failed := _head_not_finite(model, scene, factor, what):
                return failed
            continue
        if scene.subject.kind == "position":  # it gets positions; what it is added to is beside it
            what = f"embeddings times {factor:g}"
            with paddle.no_grad():
                for table in embeddings(model):
                    table.weight.set_value(table.weight * factor)
        for layer in scene.instances(model)[place : place + 1]:
            layer.register_forward_pre_hook(lambda layer, inputs, factor=factor: (inputs[0] * factor, *inputs[1:]))
        if failed := not_finite(scene, model, scene.batch(), what):
            return Failed(f"{failed.text} [{scene}]")
    return None


def _head_not_finite(model, scene: Scene, factor: float, what: str) -> Failed | None:
    batch = scene.batch()
    h, memory = model(batch)
    h = h.detach() * factor
    h.stop_gradient = False
    losses = model.head.loss(h, model.target(batch), memory)
    losses.sum().backward()
    if not (np.isfinite(losses.numpy()).all() and np.isfinite(h.grad.numpy()).all()):
        return Failed(f"{what}: the loss or its gradient is not finite")
    with paddle.no_grad():
        if not np.isfinite(model.head.log_probs(h, memory).numpy()).all():
            return Failed(f"{what}: log-probabilities are not finite")
    return None


def not_finite(model_under_test: ModelUnderTest, model: nn.Layer, batch: Batch, what: str) -> Failed | None:
    loss = model_under_test.losses(model, batch)[1]
    if not np.isfinite(float(loss)):
        return Failed(f"{what}: the loss is {float(loss)}")
    loss.backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not np.isfinite(parameter.grad.numpy()).all():
            return Failed(f"{what}: the gradient of {name} is not finite")
    for mode in ("training", "evaluation"):
        model.train() if mode == "training" else model.eval()
        finite = np.isfinite(model_under_test.decoder_outputs(model, batch)).all(-1)  # at padding too: 0 · NaN is NaN
        if not finite.all():
            real = not finite[model_under_test.compared_positions(batch)].all()
            return Failed(f"{what}: the output in {mode} is not finite{'' if real else ' where the target is padding'}")
    return None


@check(
    *LAYERS,
    invariant="gradients agree with finite differences, in float64",
    consequence="the backward pass is not that of the forward pass: it learns something else",
    hint="a PyLayer's backward; values that reach the output past the graph (NumPy, `detach`)",
    each_scene=True,
)
def gradients(scene: Scene) -> Result:
    first = scene is scene.subject.scenes[0]
    model, batch = scene.model("float64", dropout=0.2 if first else 0.0), scene.batch()
    smoothing = 0.1 if first else 0.0
    model.train()
    own = {id(parameter) for layer in scene.instances(model) for parameter in layer.parameters()}
    tables = {id(table.weight) for table in embeddings(model)}
    slopes = _Slopes(scene, model, batch, smoothing, tables)
    if not slopes.disagreeing(own):
        return Passed()
    rng = np.random.default_rng(12)
    with paddle.no_grad():  # a bias of zero may put a ReLU exactly at its kink, which has no slope: look beside it
        for parameter in model.parameters():
            if id(parameter) not in tables:
                parameter.set_value(parameter + paddle.to_tensor(rng.normal(scale=1e-2, size=parameter.shape)))
    if not (parameters := slopes.disagreeing(own)):
        return Passed()
    wrong = [name for name, p in parameters.items() if not slopes.agree({name: p})] or list(parameters)
    rounded = f"; {ROUNDED}" if _rounds(scene, model, batch, wrong) else ""
    return Failed(f"the backward pass and finite differences disagree: {some(wrong)}{rounded}")


def _rounds(scene: Scene, model, batch, names: list[str]) -> bool:
    """Whether numbers are rounded on the way: a gradient says that the loss moves, and it does not in the least where
    weights move by little, in float64."""
    by_name = {name: p for name, p in model.named_parameters() if name in names}
    if not any(np.abs(p.grad.numpy()).max() > SMALLEST_NUDGE for p in by_name.values()):
        return False
    rng = np.random.default_rng(14)

    def log_probs() -> np.ndarray:
        return scene.outputs(model, batch)

    model.eval()
    usual, still = log_probs(), []
    for p in by_name.values():
        start = p.numpy().copy()
        p.set_value(start + SMALLEST_NUDGE * rng.normal(size=p.shape))
        still.append(np.array_equal(usual, log_probs()))
        p.set_value(start)
    return any(still)


class _Slopes:
    """The gradients of a model's loss beside slopes that are measured. `tables`: the ids of embedding tables."""

    def __init__(self, scene: Scene, model: Transformer, batch: Batch, smoothing: float, tables: set[int]):
        self.model, self.tables = model, tables
        self.loss = lambda: scene.losses(model, batch, smoothing)[1]
        self.rng = np.random.default_rng(11)

    def disagreeing(self, own: set[int]) -> dict[str, Tensor]:
        """The parameters whose gradients together are not the slope of the loss: a layer's own, or the tables that
        gradients reach through it; {} where all agree."""
        self.rng = np.random.default_rng(11)
        self.model.clear_gradients()
        self.loss().backward()
        trained = [(name, p) for name, p in self.model.named_parameters() if p.grad is not None]
        groups = ({name: p for name, p in trained if id(p) in group} for group in (own, self.tables - own))
        return next((parameters for parameters in groups if parameters and not self.agree(parameters)), {})

    def agree(self, parameters: dict[str, Tensor]) -> bool:
        """Whether they do in a random direction."""
        directions = {name: self.rng.normal(size=p.shape) for name, p in parameters.items()}
        for name, p in parameters.items():
            if id(p) in self.tables:
                directions[name][PAD] = 0.0  # padding's row stays zero, whatever reaches it
        return _slopes_agree(parameters, directions, self.loss)


def _slopes_agree(parameters: dict[str, Tensor], directions: dict[str, np.ndarray], loss: Callable[[], Tensor]) -> bool:
    """Whether the derivative in a direction is the slope measured from both sides, for one step size at least."""
    gradients = {name: p.grad.numpy() for name, p in parameters.items() if p.grad is not None}
    derivative = sum(float((gradient * directions[name]).sum()) for name, gradient in gradients.items())
    norm = float(np.sqrt(sum((gradient**2).sum() for gradient in gradients.values())))
    start = {name: p.numpy().copy() for name, p in parameters.items()}
    for step in STEP_SIZES:
        sides = []
        for sign in (1, -1):
            with paddle.no_grad():
                for name, p in parameters.items():
                    p.set_value(start[name] + sign * step * directions[name])
                sides.append(float(loss()))
        for name, p in parameters.items():
            p.set_value(start[name])
        if abs((sides[0] - sides[1]) / (2 * step) - derivative) < 1e-3 * max(norm, 1e-3):
            return True
    return False


@check(
    *LAYERS,
    invariant="outputs change smoothly: a small change of all weights changes them little by little, not in steps",
    consequence="half of the digits are lost: small updates change nothing, and variants differ by rounding alone",
    hint="`astype('float16')` or bfloat16 inside the layer: leave precision to the recipe; who rounds on purpose, as "
    "quantization does, declares it in `expected_failures`; steps that are rare, as the choice of an expert, are none",
)
def smooth(subject) -> Result:
    scene: Scene = subject.scenes[0]
    model = scene.model("float64")
    starts = [(p, p.numpy().copy()) for p in model.parameters()]
    least = 1.0
    for seed in range(NUDGES):  # one place without a step is enough: half precision has them everywhere
        least = min(least, _share_of_steps(scene, model, starts, seed))
        if least <= MAX_STEPS:
            return Passed()
    return Failed(
        f"with weights changed by ±{NUDGE:g} of their size, at least {least:.0%} of the outputs' change comes in steps"
    )


def _share_of_steps(scene: Scene, model, starts: Sequence[tuple[Tensor, np.ndarray]], seed: int) -> float:
    """|f(w + d) − 2 f(w) + f(w − d)| / |f(w + d) − f(w − d)| for small d, which is of the order of d where f is
    smooth, and about 1 where f goes in steps as large as what d changes."""
    rng, batch = np.random.default_rng([seed, 23]), scene.batch(seed=seed)
    nudges = [NUDGE * max(0.1, w.std()) * rng.normal(size=w.shape) for _, w in starts]
    real, outputs = scene.compared_positions(batch), []
    for sign in (-1, 0, 1):
        for (p, w), nudge in zip(starts, nudges):
            p.set_value(w + sign * nudge)
        outputs.append(scene.decoder_outputs(model, batch)[real])
    before, usual, after = outputs
    return float(np.linalg.norm(after - 2 * usual + before) / max(1e-30, np.linalg.norm(after - before)))


@check(
    *LAYERS,
    invariant="half precision (bfloat16) stays finite and near float32, where the device has it",
    consequence="mixed-precision training would diverge",
    hint="constants that half precision cannot hold; sums that should be kept in float32",
    each_scene=True,
)
def half_precision(scene: Scene) -> Result:
    if place.on_cpu():
        return Skip("a CPU trains in float32; run the check on a GPU")
    model, batch = scene.model(), scene.batch()
    usual = scene.outputs(model, batch)
    with paddle.amp.auto_cast(dtype="bfloat16"):
        half = scene.outputs(model, batch)
    return difference(usual, half.astype("float32"), "bfloat16", 0.1) or Passed()
