"""What holds for a feed-forward sublayer by itself."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.protocols import PositionalEncoding, Tap, TokenInfo
from paddle_tfm.testing.attention import differs, redraw
from paddle_tfm.testing.laws import demand_same
from paddle_tfm.testing.report import Failed, check
from paddle_tfm.testing.subject import Subject, open_gates

WIDTH, LENGTH = 16, 6


class Alone:
    """A feed-forward sublayer and six tokens."""

    def __init__(self, subject: Subject):
        rng = np.random.default_rng(4)
        self.layer = subject.build(subject.site(), d_model=WIDTH, d_ff=3 * WIDTH)
        self.layer.eval()
        redraw(self.layer, rng)
        open_gates(self.layer, rng)
        self.x = paddle.to_tensor(rng.normal(size=(2, LENGTH, WIDTH)).astype("float32"))

    def __call__(self, x: Tensor) -> np.ndarray:
        info = TokenInfo(
            PositionalEncoding(), paddle.arange(x.shape[1]).unsqueeze(0), paddle.ones(x.shape[:2], dtype="bool")
        )
        with paddle.no_grad():
            return self.layer(x, info, Tap()).numpy()


@check(
    "feed_forward",
    law="each token goes through it by itself",
    means="it mixes positions: in the decoder it may see the future",
    look="means, sums or a softmax over the time axis",
)
def position_wise(subject: Subject) -> None:
    alone = Alone(subject)
    together = alone(alone.x)
    for t in range(LENGTH):
        demand_same(together[:, t : t + 1], alone(alone.x[:, t : t + 1]), f"token {t} among others, and by itself")


@check(
    "feed_forward",
    law="it is not linear",
    means="two matrices one after the other are one matrix: the activation is missing",
    look="the activation between the matrices",
)
def nonlinear(subject: Subject) -> None:
    alone = Alone(subject)
    zero, one, two = alone(paddle.zeros_like(alone.x)), alone(alone.x), alone(alone.x.flip([0]))
    if differs(alone(alone.x + alone.x.flip([0])) - zero, (one - zero) + (two - zero)) < 1e-3:
        raise Failed("f(a + b) is f(a) + f(b)")


@check(
    "feed_forward",
    law="it tells x from −x",
    means="half of what a token says is lost: opposite directions look the same",
    look="a square or an absolute value before the activation, where it belongs after it; a product of two projections without an "
    "activation is even by design: declare it",
)
def sign(subject: Subject) -> None:
    alone = Alone(subject)
    zero = alone(paddle.zeros_like(alone.x))
    if differs(alone(alone.x) - zero, alone(-alone.x) - zero) < 1e-3:
        raise Failed("f(x) is f(−x)")
