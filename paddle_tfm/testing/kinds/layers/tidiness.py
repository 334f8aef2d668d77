"""What holds for layers of several kinds: norms that a placement gives are applied, inputs stay as they are, outputs
have both signs, and precision is a token's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.protocols import KeyValue, Mask, Norm, PositionalEncoding, Tap
from paddle_tfm.recipe.model_plan import NORMS_INSIDE
from paddle_tfm.testing.kinds.layers.attention import LENGTH, AttentionProbe
from paddle_tfm.testing.kinds.layers.feed_forward import FeedForwardProbe
from paddle_tfm.testing.kinds.layers.norm import NormProbe
from paddle_tfm.testing.kinds.layers.placement import PlacementProbe
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.hook_outputs import HEAD_DIM, HEADS, WIDTH, noise, position_ids, terms
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, Skip, difference, relative_distance

VECTORS, LARGE = ("x", "source", "q", "k", "h", "memory.x"), 30.0
GAIN = {"norm": 1e8, "feed_forward": 1e3}  # times as large as usual
FAR, MIN_BALANCE = 100.0, 0.02  # how far outputs reach to one side, of how far to the other
MIN_EFFECT = 1e-3  # of the largest output

Case = tuple[Callable[[], object], dict[str, Tensor]]


class _Cut(Norm):
    """Lets every second channel pass, none where there is only one, times `rest` the others. Which arguments a call
    `lacks` is added to that set."""

    def __init__(self, rest: float, lacks: set[str]):
        super().__init__()
        self.rest, self.lacks = rest, lacks

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        self.lacks |= {name for name, got in (("valid", valid), ("positions", positions)) if got is None}
        kept = np.arange(x.shape[-1]) % 2 == 1
        return x * np.where(kept, 1.0, self.rest).astype("float32")


@check(
    "attention",
    "feed_forward",
    invariant="a norm passed to its constructor as `inner_norm` or `projection_norm` is applied; `inner_norm` "
    "gets `valid` and `positions`",
    consequence="a placement that needs it (Sub-LN, HybridNorm) computes something else, and its parameters never"
    " learn; a norm over the batch counts padding",
    hint="`self.inner_norm(context, info.valid, info.positions)` before the output projection; a class without a place "
    "for it leaves the parameter out of its constructor",
)
def norms_inside(subject: ComponentUnderTest) -> Result:
    names = [name for name in NORMS_INSIDE if subject.takes(name)]
    for name in names:
        lacks: set[str] = set()
        usual, cut = (_output(subject, name, rest, lacks) for rest in (1.0, 0.0))
        if relative_distance(usual, cut) < MIN_EFFECT:
            return Failed(f"`{name}` is given, but what it computes changes nothing")
        if lacks and name == "inner_norm":
            return Failed(
                f"`{name}` is called without `{'` and `'.join(sorted(lacks))}`: a norm over the batch needs them"
            )
    return Passed() if names else Skip("its constructor takes no norm")


def _output(subject: ComponentUnderTest, name: str, rest: float, lacks: set[str]) -> np.ndarray:
    norm = {name: lambda width: _Cut(rest, lacks)}
    if subject.kind == "attention":
        return AttentionProbe(subject, norms=norm).attended()
    probe = FeedForwardProbe(subject, norms=norm)
    return probe(probe.x)


@check(
    *("attention", "norm", "placement", "position", "feed_forward", "head"),
    invariant="no input is changed in place",
    consequence="the residual, the cache or the next layer reads changed numbers",
    hint="methods that end with `_`, assignments to parts of an input such as `x[:, 0] = …`; work on a new tensor",
)
def inputs_unchanged(subject: ComponentUnderTest) -> Result:
    call, inputs = CASES[subject.kind](subject)
    before = {name: tensor.numpy().copy() for name, tensor in inputs.items()}
    with paddle.no_grad():
        call()
    for name, tensor in inputs.items():
        if not np.array_equal(before[name], tensor.numpy()):
            return Failed(f"`{name}` {list(tensor.shape)} holds other numbers after the call")
    large = {name: tensor for name, tensor in inputs.items() if name in VECTORS}
    with paddle.no_grad():
        for tensor in large.values():  # beyond what it may clip
            tensor.set_value(tensor * LARGE)
        before = {name: tensor.numpy().copy() for name, tensor in large.items()}
        call()
    for name, tensor in large.items():
        if not np.array_equal(before[name], tensor.numpy()):
            return Failed(f"`{name}` {list(tensor.shape)}, of large numbers, holds others after the call")
    return Passed()


def _attention(subject: ComponentUnderTest) -> Case:
    probe = AttentionProbe(subject)
    with paddle.no_grad():
        kv = probe.attention.project(probe.source, probe.info(probe.source))
    cache = {"kv.key": kv.key, "kv.value": kv.value} if isinstance(kv, KeyValue) else {}
    info = probe.info(probe.x)
    mask = Mask(info.positions, info.positions, info.positions < LENGTH - 2, probe.site.causal)
    shared = {"mask.dense()": mask.dense(), "mask.allowed()": mask.allowed()}  # by all layers

    def call() -> None:
        probe.project(probe.source)
        probe(probe.x, kv)
        probe.attention(probe.x, kv, info, mask, Tap())

    inputs = {"x": probe.x, "source": probe.source, "info.positions": info.positions, "info.valid": info.valid}
    return call, {**inputs, **cache, **shared}


def _norm(subject: ComponentUnderTest) -> Case:
    probe = NormProbe(subject)

    def call() -> None:
        probe(probe.x)
        probe.norm.eval()
        probe(probe.x)

    return call, {"x": probe.x, "valid": probe.valid, "positions": probe.positions}


def _placement(subject: ComponentUnderTest) -> Case:
    probe = PlacementProbe(subject, subject.site_names[0].split(".")[0])
    return lambda: probe(probe.x, lambda i, y: y * 0.5 + i), {"x": probe.x}


def _feed_forward(subject: ComponentUnderTest) -> Case:
    probe = FeedForwardProbe(subject)

    def call() -> None:
        probe(probe.x)
        probe.layer.train()
        probe(probe.x)

    return call, {"x": probe.x}


def _position(subject: ComponentUnderTest) -> Case:
    encoding: PositionalEncoding = subject.build(subject.site(), d_model=WIDTH, num_heads=HEADS, head_dim=HEAD_DIM)
    encoding.eval()
    positions, x = position_ids(*range(6)), noise(1, 2, 6, WIDTH)
    q, k = noise(2, 2, HEADS, 6, HEAD_DIM), noise(3, 2, HEADS, 6, HEAD_DIM)
    weights = paddle.full([2, HEADS, 6, 6], 1 / 6)
    inputs = {"x": x, "q": q, "k": k, "weights": weights, "positions": positions}
    return lambda: terms(encoding, x, q, k, weights, positions, positions), inputs


def _head(subject: ComponentUnderTest) -> Case:
    scene = subject.scenes[0]
    model, batch = scene.model(), scene.batch()
    with paddle.no_grad():
        h, memory = model(batch)
    target = model.target(batch)
    source = {} if memory is None else {"memory.x": memory.x}

    def call() -> None:
        model.head.log_probs(h, memory)
        model.head.loss(h, target, memory, 0.1)

    return call, {"h": h, "target": target, **source}


CASES: dict[str, Callable[[ComponentUnderTest], Case]] = {
    "attention": _attention,
    "norm": _norm,
    "placement": _placement,
    "position": _position,
    "feed_forward": _feed_forward,
    "head": _head,
}


@check(
    *("attention", "norm", "feed_forward"),
    invariant="outputs have both signs",
    consequence="the residual is pushed in one direction only, and half of the possible values are lost",
    hint="an activation after the last matrix, where it belongs before it; a square or an absolute value at the end",
)
def both_signs(subject: ComponentUnderTest) -> Result:
    if subject.kind == "attention":
        out = AttentionProbe(subject).attended()
    elif subject.kind == "norm":
        norm = NormProbe(subject)
        norm.norm.eval()
        out = norm(norm.x)
    else:
        feed_forward = FeedForwardProbe(subject)
        out = feed_forward(feed_forward.x)
        far = feed_forward(FAR * feed_forward.x)  # an activation such as GELU goes a little below zero
        if not MIN_BALANCE < -far.min() / max(far.max(), 1e-30) < 1 / MIN_BALANCE:
            return Failed(f"of inputs {FAR:g} times as large, outputs are between {far.min():.3g} and {far.max():.3g}")
    if out.min() >= 0 or out.max() <= 0:
        return Failed(f"all {out.size} outputs are between {out.min():.3g} and {out.max():.3g}")
    return Passed()


@check(
    *("norm", "feed_forward"),
    invariant="a token keeps its precision, however large the numbers of other tokens are",
    consequence="an outlier changes the translation of what stands beside it",
    hint="a maximum, or a scale for rounding, over the whole tensor: take each token's own",
)
def precision(subject: ComponentUnderTest) -> Result:
    probe = NormProbe(subject) if subject.kind == "norm" else FeedForwardProbe(subject)
    if isinstance(probe, NormProbe):
        probe.norm.eval()
    gain = paddle.ones([probe.x.shape[0], 1, 1])
    gain[1:] = GAIN[subject.kind]
    count = int(probe.valid[0].sum()) if isinstance(probe, NormProbe) else None
    usual, beside = (probe(x)[:count] if count else probe(x)[0] for x in (probe.x, probe.x * gain))
    what = f"beside sentences whose numbers are {GAIN[subject.kind]:g} times as large"
    return difference(usual, beside, what) or Passed()
