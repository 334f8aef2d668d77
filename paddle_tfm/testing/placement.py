"""What holds for a placement by itself: with sublayers and norms that count their calls."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.protocols import LayerSite, PositionalEncoding, TokenInfo
from paddle_tfm.testing.laws import apart, demand_same, encoded
from paddle_tfm.testing.norm import Plain
from paddle_tfm.testing.report import Failed, check
from paddle_tfm.testing.subject import Scene, Subject

WIDTH, LAYERS = 12, 3


class Alone:
    """The placements of a decoder, around sublayers that are functions given."""

    def __init__(self, subject: Subject, stack: str = "decoder"):
        self.norms: list[Plain] = []
        names = ["self", "cross", "feed_forward"] if stack == "decoder" else ["self", "feed_forward"]
        self.placements, self.count = [], len(names)
        for layer in range(LAYERS):
            sites = [LayerSite(stack, name, layer, LAYERS, LAYERS) for name in names]
            made = subject.build(sites=sites, norm=self._norm, d_model=WIDTH)
            made.eval()
            for gate in made.parameters():  # gates that start at zero: open
                if gate.ndim <= 1 and getattr(gate, "keep_initial", False):
                    gate.set_value(paddle.full_like(gate, 0.5))
            self.placements.append(made)
        rng = np.random.default_rng(3)
        self.x = paddle.to_tensor(rng.normal(size=(2, 4, WIDTH)).astype("float32"))

    def _norm(self, site: LayerSite, width: int) -> Plain:
        self.norms.append(Plain(width))
        return self.norms[-1]

    def __call__(self, x: Tensor, sublayer, layers: range = range(LAYERS)) -> np.ndarray:
        """x through these layers; `sublayer(number, x)` is every branch, numbered from the bottom."""
        info = TokenInfo(
            PositionalEncoding(), paddle.arange(4, dtype="int64").unsqueeze(0), paddle.ones([2, 4], dtype="bool")
        )
        for layer in layers:
            first = layer * self.count
            x = self.placements[layer](x, [lambda y, i=first + i: sublayer(i, y) for i in range(self.count)], info)
        return x.numpy()


def _stacks(subject: Subject):
    return [place.split(".")[0] for place in subject.places]


@check(
    "placement",
    law="each sublayer is called exactly once a pass, and its output counts",
    means="a sublayer is skipped, or its work is thrown away; or it is done twice",
    look="the loop over sublayers; what is added to x",
)
def each_branch_once(subject: Subject) -> None:
    for stack in _stacks(subject):
        alone = Alone(subject, stack)
        rng = np.random.default_rng(4)
        total = LAYERS * alone.count
        shifts = [paddle.to_tensor(rng.normal(size=WIDTH).astype("float32")) for _ in range(total)]
        calls = [0] * total

        def branch(i: int, y: Tensor, gain: dict, calls: list = calls, shifts: list = shifts) -> Tensor:
            calls[i] += 1
            return (y * 0.3 + shifts[i]) * gain.get(i, 1.0)

        out = alone(alone.x, lambda i, y, branch=branch: branch(i, y, {}))
        if set(calls) != {1}:
            raise Failed(f"{stack}: sublayers are called {calls} times")
        for i in range(total):
            found = alone(alone.x, lambda i, y, j=i, branch=branch: branch(i, y, {j: -1.0}))
            if apart(out, found) < 1e-4:
                raise Failed(f"{stack}: what sublayer {i} gives changes nothing")


@check(
    "placement",
    law="every norm is used at one place: each sublayer has an instance of its own",
    means="one set of gains, and with BatchNorm of statistics, has to serve inputs of different kinds",
    look="the list of norms: made inside the loop over sublayers, and indexed by the sublayer",
)
def own_norms(subject: Subject) -> None:
    for stack in _stacks(subject):
        alone = Alone(subject, stack)
        alone(alone.x, lambda i, y: y * 0.5 + i)
        counts = [norm.calls for norm in alone.norms]
        if any(count > 1 for count in counts):
            raise Failed(f"{stack}: the {len(counts)} norms of {LAYERS} layers are called {counts} times in one pass")
        if not all(counts):
            raise Failed(f"{stack}: {counts.count(0)} of {len(counts)} norms are never used")


@check(
    "placement",
    law="norms are told which tokens are real, and where they stand",
    means="a BatchNorm counts padding, and one with statistics for each position fails",
    look="`self.norms[i](x, info.valid, info.positions)`",
)
def tells_norms(subject: Subject) -> None:
    for stack in _stacks(subject):
        alone = Alone(subject, stack)
        alone(alone.x, lambda i, y: y * 0.5 + i)
        for norm in alone.norms:
            if norm.calls and not norm.told:
                raise Failed(f"{stack}: a norm is called without `valid`, or without `positions`")


@check(
    "placement",
    law="the residual passes: where branches give nothing, what goes in comes out - as it is, if the stack ends with a norm",
    means="a residual is missing or normalized on the way: deep stacks lose their input; or it is post-norm under another "
    "name",
    look="`x +`: the sum is with the input of the norm, not with its output; whether the norm stands around the sum",
)
def identity_path(subject: Subject) -> None:
    for stack in _stacks(subject):
        alone = Alone(subject, stack)

        def passed(x: Tensor, layers: range, alone: Alone = alone) -> np.ndarray:
            return alone(x, lambda i, y: paddle.zeros_like(y), layers)

        what = f"{stack}: all branches zero, x before and after"
        if subject.cls.final_norm:  # a norm may stand between the embeddings and the residual stream, at its bottom
            above = passed(alone.x, range(1, LAYERS))
            demand_same(alone.x.numpy(), above, f"{what} the layers but the first (it has `final_norm`)", 1e-5)
        nothing, other = (passed(x, range(LAYERS)) for x in (alone.x, alone.x.flip([-1])))
        if apart(nothing, other) < 1e-3:
            raise Failed(f"{stack}: all branches zero, two different inputs give the same output")
        x, out = alone.x.numpy().reshape(-1, WIDTH), nothing.reshape(-1, WIDTH)
        for row, found in zip(x, out):
            if not np.corrcoef(row, found)[0, 1] >= 0.999:  # NaN of a constant row
                raise Failed(f"{stack}: all branches zero, the output is no scaled and shifted input")


@check(
    "placement",
    law="what leaves the stack is normalized, however large the branches are",
    means="the output grows with depth, and the head's logits with it",
    look="`final_norm`: stacks whose residual is never normalized need it, others must not have it",
    each_scene=True,
)
def output_normalized(scene: Scene) -> None:
    found = []
    for gain in (1.0, 30.0):
        model = scene.model(moved=False)
        with paddle.no_grad():
            for stack in (model.encoder, model.decoder):
                if f"{stack.stack_name}.self" not in scene.where and "every" not in scene.where:
                    continue
                for layer in stack.layers:
                    for weight in (weight for branch in layer.branches() for weight in branch.branch_weights()):
                        weight.set_value(weight * gain)
            batch = scene.batch()
            memory = encoded(model, batch)
            h, _ = model.decode(batch.target_in, model.start(memory), batch.target_valid)
            sizes = {"encoder": memory.x, "decoder": h}
            found.append({name: float((x * x).mean().sqrt()) for name, x in sizes.items()})
    for stack in ("encoder", "decoder"):
        if found[1][stack] > 3 * found[0][stack]:
            raise Failed(
                f"the {stack}'s output has a root mean square of {found[0][stack]:.2g}, with weights of the branches "
                f"30 times as large {found[1][stack]:.2g}"
            )
