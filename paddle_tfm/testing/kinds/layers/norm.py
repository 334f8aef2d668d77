"""What holds for a norm by itself."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.errors import UserError
from paddle_tfm.protocols import Norm
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.hook_outputs import noise, trained
from paddle_tfm.testing.models.model_under_test import Dtype
from paddle_tfm.testing.models.scene import default_dtype
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip, difference, distance

WIDTH, ROWS, LENGTH = 32, 24, 6
UNEVEN = 20  # a width that 8 and 16 do not divide: blocks of channels have a rest
MAX_GAP = 0.15  # what running statistics of one batch may be off
LARGE, MAX_GROWTH = 10.0, 2.2  # of inputs; what is no norm at all, as x itself, gives 2
MAX_MOVE = 2e-3  # of the output, under a change that it is invariant to
FAR, HALF_UNIT, ROUNDINGS = 1e3, 2.0**-24, 64  # of float32; a square loses FAR times as much as rounding
BATCHES = (range(4), range(4, 10), range(10, ROWS))  # the sentences, in batches of unequal size
MAX_POOLED_GAP = 1e-3
CHANGES = ("scale", "shift", "channel_scale", "channel_shift")
MAX_SIZE = 1.7  # of a typical token: over its mean absolute deviation it is 1.25, over the median one 1.48


class NormProbe:
    """A norm and tokens [B, T, C] of different means and variances, the last positions of half the sentences
    padding."""

    def __init__(self, subject: ComponentUnderTest, dtype: Dtype = "float32", width: int = WIDTH):
        with default_dtype(dtype):
            self.norm = subject.build(subject.site(), d_model=width)
        rng = np.random.default_rng(8)
        x = rng.normal(size=(ROWS, LENGTH, width)) * rng.uniform(0.5, 2, size=width) + rng.normal(size=width)
        valid = np.ones((ROWS, LENGTH), dtype=bool)
        valid[::2, -2:] = False
        x[~valid] = 3 * x[~valid] + 4  # whoever counts padding gets other statistics
        self.x = paddle.to_tensor(x.astype("float32"))
        self.valid = paddle.to_tensor(valid)
        self.positions = paddle.arange(LENGTH, dtype="int64").unsqueeze(0)

    def __call__(self, x: Tensor) -> np.ndarray:
        """The real tokens of the output [N, C]."""
        with paddle.no_grad():
            return self.norm(x, self.valid, self.positions).numpy()[self.valid.numpy()]

    def gap(self) -> float:
        """The mean difference of evaluation from training, as a share of the mean size."""
        training = self(self.x)
        self.norm.eval()
        evaluation = self(self.x)
        self.norm.train()
        return float(np.abs(training - evaluation).mean() / np.abs(training).mean().clip(1e-9))


def _changed(x: Tensor) -> dict[str, Tensor]:
    rng = np.random.default_rng(9)
    by_token = paddle.to_tensor(rng.uniform(1, 3, size=[*x.shape[:2], 1]).astype("float32"))
    by_channel = paddle.to_tensor(rng.uniform(1, 3, size=[1, 1, x.shape[2]]).astype("float32"))
    inputs = (x * by_token, x + 5 * by_token, x * by_channel, x + 5 * by_channel)
    return dict(zip(CHANGES, inputs))


@check(
    "norm",
    invariant="sentences with their own positions, [B, T], give the same in a batch as alone",
    consequence="all sentences of a batch get the positions of the first, though texts begin at different places",
    hint="`positions[0]`; index what goes by positions with all of them, [B|1, T]",
)
def own_positions(subject: ComponentUnderTest) -> Result:
    if "neighbours" in subject.expected_failures:
        return Skip("its sentences influence each other, as it says")
    probe = NormProbe(subject)
    probe.norm.eval()
    trained(probe.norm)  # rows that start alike hide which is taken
    with paddle.no_grad():
        for buffer in probe.norm.buffers():
            if buffer.dtype == paddle.float32:
                buffer.set_value(buffer + noise(16, *buffer.shape).abs() * 0.2)
        positions = probe.positions + paddle.arange(ROWS).unsqueeze(1) % 5
        together = probe.norm(probe.x, probe.valid, positions).numpy()
        for row in range(ROWS):
            part = slice(row, row + 1)
            alone = probe.norm(probe.x[part], probe.valid[part], positions[part]).numpy()
            real = probe.valid[row].numpy()
            if failed := difference(together[row][real], alone[0][real], f"sentence {row} of {ROWS}"):
                return failed
    return Passed()


@check(
    "norm",
    invariant="the output is invariant to the changes that the class lists in `invariances`",
    consequence="it normalizes something else than it says",
    hint="the axis of the mean and of the variance; what is subtracted and divided by; norms applied twice",
)
def invariances(subject: ComponentUnderTest) -> Result:
    moves = _moves(subject, WIDTH)
    probe = NormProbe(subject)
    probe.norm.eval()
    once, twice = (float(np.abs(probe(probe.x * factor)).mean()) for factor in (LARGE, 2.0 * LARGE))
    if twice > MAX_GROWTH * once:
        return Failed(f"an input that is twice as large gives {twice / once:.2g} times the output")
    for change in sorted(subject.cls.invariances):
        if moves[change] >= MAX_MOVE:
            return Failed(f"it says that it is invariant to {change}, and moves by {moves[change]:.2g}")
    try:
        uneven = _moves(subject, UNEVEN)
    except (UserError, ValueError):  # a width that it does not take
        uneven = moves
    for change in sorted(subject.cls.invariances):
        if uneven[change] >= MAX_MOVE:
            return Failed(
                f"it says that it is invariant to {change}, and with {UNEVEN} channels moves by {uneven[change]:.2g}, "
                f"with {WIDTH} by {moves[change]:.2g}"
            )
    return Note(f"invariant to {', '.join(sorted(c for c in CHANGES if moves[c] < MAX_MOVE)) or 'nothing'}")


@check(
    "norm",
    invariant="at the start, what it returns is no larger than what it normalizes to, and not zero",
    consequence="each sublayer begins with inputs of another size than its initial values are made for",
    hint="a gain of 1 + w begins with w = 0, one of w with 1",
)
def gain(subject: ComponentUnderTest) -> Result:
    probe = NormProbe(subject)
    if _moves(subject, WIDTH)["scale"] >= MAX_MOVE:
        return Skip("its output grows with its input")
    size = float(np.median(np.sqrt((probe(noise(17, *probe.x.shape)) ** 2).mean(-1))))
    if size == 0.0:
        return Failed("at the start it returns zeros, and nothing passes through it")
    if size > MAX_SIZE:
        return Failed(f"at the start the root mean square of a token is {size:.3g}, where 1 is usual")
    return Passed()


def _moves(subject: ComponentUnderTest, width: int) -> dict[str, float]:
    """How far the output moves under each change of the input."""
    moves = {}
    for change in CHANGES:
        probe = NormProbe(subject, width=width)
        probe.norm.train() if change.startswith("channel") else probe.norm.eval()
        moves[change] = distance(probe(probe.x), probe(_changed(probe.x)[change]))
    return moves


@check(
    "norm",
    invariant="float32 suffices: for numbers far from zero, no more digits are lost than by rounding them",
    consequence="with a large mean, as of an outlier channel, the output is rounding noise",
    hint="a variance as E[x²] − E[x]²: subtract the mean first, then square",
)
def digits(subject: ComponentUnderTest) -> Result:
    rng = np.random.default_rng(15)
    for mode in ("evaluation", "training"):
        single, double = NormProbe(subject), NormProbe(subject, "float64")
        weights = dict(single.norm.state_dict())
        for name, tensor in double.norm.state_dict().items():
            tensor.set_value(weights[name].astype(tensor.dtype))
        for probe in (single, double):
            probe.norm.train() if mode == "training" else probe.norm.eval()
        x = single.x + FAR
        exact, rounded = x.astype("float64"), x.astype("float64") * (1 + HALF_UNIT * rng.choice([-1, 1], x.shape))
        before = {name: tensor.numpy().copy() for name, tensor in double.norm.state_dict().items()}
        outputs = []
        for each in (exact, rounded):
            for name, tensor in double.norm.state_dict().items():
                tensor.set_value(before[name])
            outputs.append(double(each))
        usual, beside = outputs
        unavoidable = max(np.abs(usual - beside).max(), HALF_UNIT * np.abs(usual).max())
        lost = np.abs(single(x) - usual).max()
        if not lost <= ROUNDINGS * unavoidable:
            seen = f"in {mode}, of numbers {FAR:g} from zero, float32 is off by {lost:.2g}; rounding its input takes "
            seen += f"{unavoidable:.2g}"
            inside = [type(layer) for layer in single.norm.sublayers(include_self=True)]
            if paddles := [cls.__name__ for cls in inside if cls.__module__ == nn.LayerNorm.__module__]:
                return Note(f"{seen}, by Paddle's own {paddles[0]}")  # nothing that its user wrote
            return Failed(seen)
    return Passed()


@check(
    "norm",
    invariant="`momentum` is the weight of the newest batch: with 1, evaluation gives the same as training on one"
    " batch",
    consequence="what is evaluated is not what was trained: running statistics follow the wrong batches, are never "
    "updated, or are of padding too",
    hint="running += momentum · (batch − running), Paddle's own `momentum` is 1 minus that; what the update counts, "
    "that it happens at all, the variance",
)
def momentum(subject: ComponentUnderTest) -> Result:
    probe = NormProbe(subject)
    if probe.norm.momentum is None:
        return Skip("it has no running statistics")
    usual = [buffer.numpy().copy() for buffer in probe.norm.buffers()]
    probe.norm.momentum = 0.0
    probe.norm.train()
    probe(probe.x)
    for before, buffer in zip(usual, probe.norm.buffers()):
        if before.dtype.kind == "f" and distance(before, buffer.numpy()) > 1e-6:
            return Failed(
                f"with momentum 0 a batch changes the running statistics by {distance(before, buffer.numpy()):.2g}"
            )
    probe.norm.momentum = 1.0
    probe(probe.x)
    if (gap := probe.gap()) > MAX_GAP:
        return Failed(f"with momentum 1, after one batch, evaluation differs by {gap:.2g} from training")
    return Passed()


@check(
    "norm",
    invariant="re-estimated statistics (`pooling`) are those of all real tokens of the batches, each with the "
    "same weight",
    consequence="what is evaluated has another mean or variance than the texts: often too small a variance",
    hint="the variance of all tokens is the mean of the batches' variances and the variance of their means; a batch "
    "counts by its real tokens; nothing of what was known before is left",
)
def population(subject: ComponentUnderTest) -> Result:
    whole, parts, training = (NormProbe(subject) for _ in range(3))
    if type(whole.norm).pooling is Norm.pooling:
        return Skip("it does not re-estimate statistics")
    far = paddle.to_tensor(np.repeat(np.arange(len(BATCHES)), [len(rows) for rows in BATCHES])).astype("float32")
    x = whole.x + 3.0 * far.reshape([-1, 1, 1])  # batches whose means differ
    parts(x + FAR)  # to be forgotten
    for probe, batches in ((whole, [range(ROWS)]), (parts, BATCHES)):
        with paddle.no_grad(), probe.norm.pooling():
            for rows in batches:
                probe.norm(x[rows[0] : rows[-1] + 1], probe.valid[rows[0] : rows[-1] + 1], probe.positions)
        probe.norm.eval()
    outputs = [probe(x) for probe in (whole, parts, training)]
    size = np.abs(outputs[2]).mean().clip(1e-9)
    for other, seen in ((0, "of one batch with all of them"), (2, "of training on all of them at once")):
        if not (gap := float(np.abs(outputs[1] - outputs[other]).mean() / size)) <= MAX_POOLED_GAP:
            return Failed(f"after {len(BATCHES)} batches, evaluation differs by {gap:.2g} from that {seen}")
    return Passed()
