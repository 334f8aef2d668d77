"""What holds for a feed-forward sublayer by itself."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.protocols import PositionalEncoding, Tap, TokenInfo
from paddle_tfm.testing.kinds.layers.attention import redraw
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.scene import open_gates
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, Skip, difference, relative_distance

WIDTH, LENGTH, LONG = 16, 6, 160  # tokens; the last more than one chunk of 32, 64 or 128
MIN_EFFECT = 1e-3  # of the largest output


class FeedForwardProbe:
    """A feed-forward sublayer and two sentences of six tokens."""

    def __init__(self, subject: ComponentUnderTest, norms: Mapping[str, object] | None = None):
        rng = np.random.default_rng(4)
        self.layer = subject.build(subject.site(), d_model=WIDTH, d_ff=3 * WIDTH, **(norms or {}))
        self.layer.eval()
        redraw(self.layer, rng)
        open_gates(self.layer, rng)
        self.x = paddle.to_tensor(rng.normal(size=(2, LENGTH, WIDTH)).astype("float32"))

    def __call__(self, x: Tensor) -> np.ndarray:
        positions = paddle.arange(x.shape[1]).unsqueeze(0)
        info = TokenInfo(PositionalEncoding(), positions, paddle.ones(x.shape[:2], dtype="bool"))
        with paddle.no_grad():
            return self.layer(x, info, Tap()).numpy()


@check(
    "feed_forward",
    invariant="each token is computed by itself, or from itself and the `reach` tokens before it",
    consequence="it mixes positions: in the decoder it may see the future, or what decoding does not keep",
    hint="means, sums or a softmax over the time axis; `reach`, of a class that reads the tokens before",
)
def position_wise(subject: ComponentUnderTest) -> Result:
    probe = FeedForwardProbe(subject)
    together, reach = probe(probe.x), probe.layer.reach
    alone = f"with the {reach} before it alone" if reach else "by itself"
    for t in range(LENGTH):
        what = f"token {t} among others, and {alone}"
        if failed := difference(together[:, t], probe(probe.x[:, max(0, t - reach) : t + 1])[:, -1], what):
            return failed
    rng = np.random.default_rng(6)
    text = paddle.to_tensor(rng.normal(size=(LONG, WIDTH)).astype("float32"))
    windows = paddle.stack([text[t - reach : t + 1] for t in range(reach, LONG)])  # [LONG - reach, reach + 1, C]
    what = f"a text of {LONG} tokens, and each {alone}"
    return difference(probe(text.unsqueeze(0))[0, reach:], probe(windows)[:, -1], what) or Passed()


@check(
    "feed_forward",
    invariant="it is not linear",
    consequence="two matrices one after the other are one matrix: the activation is missing",
    hint="the activation between the matrices",
)
def nonlinear(subject: ComponentUnderTest) -> Result:
    probe = FeedForwardProbe(subject)
    a, b = probe.x, probe.x.flip([0])
    zero, one, two = probe(paddle.zeros_like(a)), probe(a), probe(b)
    if relative_distance(probe(a + b) - zero, (one - zero) + (two - zero)) < MIN_EFFECT:
        return Failed("f(a + b) is f(a) + f(b)")
    return Passed()


@check(
    "feed_forward",
    invariant="x and −x give different outputs",
    consequence="opposite directions of a token's vector look the same",
    hint="a square or an absolute value before the activation, where it belongs after it; a product of two "
    "projections without an activation is even by design: declare it in `expected_failures`",
)
def sign(subject: ComponentUnderTest) -> Result:
    probe = FeedForwardProbe(subject)
    zero = probe(paddle.zeros_like(probe.x))
    if relative_distance(probe(probe.x) - zero, probe(-probe.x) - zero) < MIN_EFFECT:
        return Failed("f(x) is f(−x)")
    return Passed()


@check(
    "feed_forward",
    invariant="a class with `d_ff` uses it",
    consequence="a recipe's d_ff does nothing: variants are compared at sizes that nobody set",
    hint="a width that is computed from d_model alone; an option that is stored and not read",
)
def width(subject: ComponentUnderTest) -> Result:
    if not subject.takes("d_ff"):
        return Skip("its constructor takes no `d_ff`")
    narrow, wide = (
        sum(parameter.size for parameter in subject.build(subject.site(), d_model=WIDTH, d_ff=d_ff).parameters())
        for d_ff in (2 * WIDTH, 8 * WIDTH)
    )
    if narrow == wide:
        return Failed(f"with d_ff {2 * WIDTH} and with {8 * WIDTH} it has {narrow:,} parameters")
    return Passed()
