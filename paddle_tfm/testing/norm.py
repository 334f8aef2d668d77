"""What holds for a norm by itself."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.testing.laws import apart
from paddle_tfm.testing.report import Failed, Seen, check
from paddle_tfm.testing.subject import Subject

WIDTH, ROWS, LENGTH = 32, 24, 6
BATCHES = 300  # enough for running statistics with a weight of 0.02 or more for each new batch
GAP = 0.15  # what running statistics may then be off


class Alone:
    """A norm and tokens [B, T, C] of different means and variances, the last positions of half the sentences padding."""

    def __init__(self, subject: Subject):
        self.norm = subject.build(subject.site(), d_model=WIDTH)
        rng = np.random.default_rng(8)
        x = rng.normal(size=(ROWS, LENGTH, WIDTH)) * rng.uniform(0.5, 2, size=WIDTH) + rng.normal(size=WIDTH)
        self.x = paddle.to_tensor(x.astype("float32"))
        valid = np.ones((ROWS, LENGTH), dtype=bool)
        valid[::2, -2:] = False
        self.valid = paddle.to_tensor(valid)
        self.positions = paddle.arange(LENGTH, dtype="int64").unsqueeze(0)

    def __call__(self, x: Tensor) -> np.ndarray:
        """The real tokens of the output [N, C]."""
        with paddle.no_grad():
            return self.norm(x, self.valid, self.positions).numpy()[self.valid.numpy()]


def _changes(x: Tensor) -> dict[str, Tensor]:
    rng = np.random.default_rng(9)
    by_token = paddle.to_tensor(rng.uniform(1, 3, size=[*x.shape[:2], 1]).astype("float32"))
    by_channel = paddle.to_tensor(rng.uniform(1, 3, size=[1, 1, x.shape[2]]).astype("float32"))
    return {
        "scale": x * by_token,
        "shift": x + 5 * by_token,
        "channel_scale": x * by_channel,
        "channel_shift": x + 5 * by_channel,
    }


def _kept(subject: Subject) -> tuple[set[str], dict[str, float]]:
    """(what the output does not depend on, how far it moves under each change)."""
    moved = {}
    for change in ("scale", "shift", "channel_scale", "channel_shift"):
        alone = Alone(subject)
        alone.norm.train() if change.startswith("channel") else alone.norm.eval()
        moved[change] = apart(alone(alone.x), alone(_changes(alone.x)[change]))
    return {change for change, distance in moved.items() if distance < 2e-3}, moved


@check(
    "norm",
    law="the output does not depend on what the class says that it does not (`invariances`)",
    means="it normalizes something else than it says",
    look="the axis of the mean and of the variance; what is subtracted and divided by; norms applied twice",
)
def invariances(subject: Subject) -> None:
    kept, moved = _kept(subject)
    for change in sorted(subject.cls.invariances):
        if change not in kept:
            raise Failed(f"it says that it is invariant to {change}, and moves by {moved[change]:.2g}")
    raise Seen(f"invariant to {', '.join(sorted(kept)) or 'nothing'}")


@check(
    "norm",
    law="after training on the same tokens again and again, evaluation gives what training gave",
    means="what is evaluated is not what was trained: running statistics are wrong, never updated, or of padding too",
    look="the update of running statistics: its direction, what it counts, that it happens at all, the variance",
)
def running_statistics(subject: Subject) -> None:
    alone = Alone(subject)
    alone.norm.train()
    before = _gap(alone)
    for _ in range(BATCHES):
        alone(alone.x)
    after = _gap(alone)
    if after > GAP:
        raise Failed(
            f"after {BATCHES} batches, evaluation differs by {after:.2g} from training (at first by {before:.2g})"
        )
    if before > 1e-6:
        raise Seen(f"train-evaluation gap {before:.2g} at first, {after:.2g} after {BATCHES} batches")


def _gap(alone: Alone) -> float:
    training = alone(alone.x)
    alone.norm.eval()
    evaluation = alone(alone.x)
    alone.norm.train()
    return float(np.abs(training - evaluation).mean() / np.abs(training).mean().clip(1e-9))


class Plain(nn.Layer):
    """A layer norm that is nobody's plugin: what placements are checked with."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = self.create_parameter([width], default_initializer=nn.initializer.Constant(1.0))
        self.calls, self.told = 0, True

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        self.calls += 1
        self.told = self.told and valid is not None and positions is not None
        centred = x - x.mean(-1, keepdim=True)
        return centred / paddle.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-6) * self.weight
