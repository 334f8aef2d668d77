"""What a placement does with the residual, and what leaves its stack."""

from __future__ import annotations

import itertools

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.testing.kinds.placement import NUM_LAYERS, WIDTH, PlacementProbe, stacks
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, difference, distance
from paddle_tfm.testing.scene import Scene, encoder_output
from paddle_tfm.testing.subject import Subject

GAIN, CLOSE = 2.0, 1e-5
MIN_CARRIED = 0.7  # of the residual after a sublayer: sqrt(1/2) leaves a sum's variance what it was (arXiv:1705.03122)
MIN_CORRELATION = 0.999
DROPS = (
    "; dropout on the residual by design is declared: "
    "`expected_failures = {'identity_path': 'it drops parts of the residual'}`"
)
WEIGHT_GAIN, MAX_OUTPUT_GAIN = 30.0, 3.0


@check(
    "placement",
    invariant="the residual passes: where branches give nothing, what goes in comes out - as it is, or all of it times "
    "one number of 0.7 to 1 a sublayer, if the stack ends with a norm",
    consequence="a residual is missing or normalized on the way: deep stacks lose their input; or it is post-norm "
    "under another name",
    hint="`x +`: the sum is with the input of the norm, not with its output; whether the norm stands around the sum",
)
def identity_path(subject: Subject) -> Result:
    for stack, dropout in itertools.product(stacks(subject), (0.0, 0.5)):
        probe = PlacementProbe(subject, stack, training=dropout > 0, dropout=dropout)

        def passed(x: Tensor, layers: range = range(NUM_LAYERS), probe: PlacementProbe = probe) -> np.ndarray:
            return probe(x, lambda i, y: paddle.zeros_like(y), layers)

        what = f"{stack}: all branches zero" + (f", in training with dropout {dropout:g}" if dropout else "")
        if subject.cls.final_norm and not dropout:
            # A norm may stand between the embeddings and the residual stream, at its bottom: layers above it add
            # nothing. A gain of theirs shows the norms on the path, which may leave alone what is normalized already.
            before, after = passed(probe.x, range(1)), passed(probe.x)
            for norm in probe.norms:
                if norm.layer:
                    norm.weight.set_value(paddle.full_like(norm.weight, GAIN))
            where = "x before and after the layers but the first (it has `final_norm`)"
            factor = float((before * after).sum() / (before * before).sum())
            if not MIN_CARRIED ** (probe.count * (NUM_LAYERS - 1)) <= factor <= 1.0 + CLOSE:
                factor = 1.0  # in the place of another one, which the final norm takes back, but not from the branches
            for each in (after, passed(probe.x)):
                if failed := difference(before * factor, each, f"{what}, {where}", CLOSE):
                    return failed
        out = passed(probe.x)
        if distance(out, passed(probe.x.flip([-1]))) < 1e-3:
            return Failed(f"{what}, two different inputs give the same output")
        for before, after in zip(probe.x.numpy().reshape(-1, WIDTH), out.reshape(-1, WIDTH)):
            if not np.corrcoef(before, after)[0, 1] >= MIN_CORRELATION:  # NaN of a constant row
                return Failed(f"{what}, the output is no scaled and shifted input{DROPS if dropout else ''}")
    return Passed()


@check(
    "placement",
    invariant="what leaves the stack is normalized, however large the branches are",
    consequence="the output grows with depth, and the head's logits with it",
    hint="`final_norm`: stacks whose residual is never normalized need it, others must not have it",
    each_scene=True,
)
def output_normalized(scene: Scene) -> Result:
    usual, large = (_output_sizes(scene, gain) for gain in (1.0, WEIGHT_GAIN))
    for stack in usual:
        if large[stack] > MAX_OUTPUT_GAIN * usual[stack]:
            return Failed(
                f"the {stack}'s output has a root mean square of {usual[stack]:.2g}, with weights of the branches "
                f"{WEIGHT_GAIN:.0f} times as large {large[stack]:.2g}"
            )
    return Passed()


def _output_sizes(scene: Scene, gain: float) -> dict[str, float]:
    """Stack → the root mean square of its output, the weights of its branches times `gain`."""
    model = scene.model(moved=False)
    with paddle.no_grad():
        for name, stack in model.stacks().items():
            if f"{name}.self" not in scene.where and "every" not in scene.where:
                continue
            for layer in stack.layers:
                for weight in (weight for branch in layer.branches().values() for weight in branch.branch_weights()):
                    weight.set_value(weight * gain)
        batch = scene.batch()
        memory = scene.memory(model, batch)
        h, _ = model.decode(batch.target_in, model.start(memory), batch.target_valid)
        return {
            name: float((x * x).mean().sqrt()) for name, x in {"encoder": encoder_output(memory), "decoder": h}.items()
        }
