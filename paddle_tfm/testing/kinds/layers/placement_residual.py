"""What a placement does with the residual, what leaves its stack, and what is left out by chance."""

from __future__ import annotations

import itertools

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.testing.kinds.layers.placement import NUM_LAYERS, POSITIONS, VALID, WIDTH, PlacementProbe, stacks
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.model_under_test import same_draws
from paddle_tfm.testing.models.scene import Scene, encoder_output
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip, difference, distance

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
    invariant="the residual passes: with branches that give zero, the output is the input, or the input times one"
    " number (0.7 to 1 for each sublayer) if the stack ends with a norm",
    consequence="a residual is missing or normalized on the way: deep stacks lose their input; or it is post-norm "
    "under another name",
    hint="`x +`: the sum is with the input of the norm, not with its output; whether the norm stands around the sum",
)
def identity_path(subject: ComponentUnderTest) -> Result:
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
    invariant="the stack's output is normalized, however large the branches are",
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
            if name not in stacks(scene.subject):
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


SENTENCES, DRAWS, SMALL = 16, 48, 0.002  # branches so small that what they do adds up
HALF = 0.5
OUT, AS_LOUD = 0.02, 0.004  # of a branch: what is left where it is left out; how near 1 is 1
MAX_OFF = {0.0: 0.05, HALF: 0.3}  # of the mean: what is dropped scatters, and is half without its factor
ERRORS = 4.0  # standard errors that it may be off, too


@check(
    "placement",
    invariant="random dropping is compensated: averaged over the draws of training, each branch contributes as "
    "much as in evaluation",
    consequence="branches contribute more in evaluation than in training: what is evaluated is not what was trained",
    hint="dropout's factor 1 / (1 − rate), which `mode='downscale_in_infer'` leaves out; a branch that is kept with "
    "probability p is divided by p in training, or multiplied by p in evaluation: `paddle_tfm.layers.Dropout` on a "
    "tensor of ones [B, 1, 1] divides; a method that does neither, as LayerDrop (arXiv:1909.11556), declares it in "
    "`expected_failures`",
)
def left_out(subject: ComponentUnderTest) -> Result:
    shares = {}
    for stack, dropout in itertools.product(stacks(subject), (0.0, HALF)):
        counts = _counts(subject, stack, dropout)
        if counts is None:
            continue
        for branch in range(counts.shape[-1]):
            of_branch = counts[..., branch]
            if np.isnan(of_branch).all():
                continue
            where = f"{stack}, branch {branch} of {counts.shape[-1]} from the bottom"
            where += f", dropout {dropout:g}" if dropout else ""
            mean, error = of_branch.mean(), of_branch.mean(1).std() / len(of_branch) ** 0.5
            out = np.abs(of_branch) < OUT
            if not dropout and out.any() and not out.all() and np.abs(np.median(of_branch[~out]) - 1.0) < AS_LOUD:
                return Failed(f"{where}: left out {out.mean():.0%} of the time, and not scaled up where it is kept")
            if abs(mean - 1.0) > max(MAX_OFF[dropout], ERRORS * error):
                return Failed(f"{where}: on average its contribution in training is {mean:.2f} of that in evaluation")
            shares[where] = 0.0 if dropout else out.mean()
    if not shares:
        return Skip("it draws nothing")
    return (
        Note(f"a branch is left out up to {max(shares.values()):.0%} of the time") if max(shares.values()) else Passed()
    )


def _counts(subject: ComponentUnderTest, stack: str, dropout: float) -> np.ndarray | None:
    """How much each branch counts in each draw of training, for each sentence [draws, sentences, branches], of what it
    does in evaluation, NaN where that is nothing; None: nothing is drawn."""
    probe = PlacementProbe(subject, stack, dropout=dropout)
    rng = np.random.default_rng(21)
    probe.x = paddle.to_tensor(rng.normal(size=(SENTENCES, len(VALID[0]), WIDTH)).astype("float32"))
    probe.valid = [[True] * len(POSITIONS[0])] * SENTENCES
    total = NUM_LAYERS * probe.count
    small = rng.normal(scale=SMALL, size=(total, len(POSITIONS[0]), WIDTH)).astype("float32")

    def passed(gains: np.ndarray) -> np.ndarray:
        """[sentences, T · C]; branch i gives its small vectors times gains[i]."""

        def branch(i: int, y: Tensor) -> Tensor:
            return paddle.zeros_like(y) + paddle.to_tensor(small[i] * np.float32(gains[i]))

        return probe(probe.x, branch).astype("float64").reshape(SENTENCES, -1)

    def drawn(gains: np.ndarray, seed: int) -> np.ndarray:
        with same_draws(probe.placements[0], seed):
            return passed(gains)

    none, every, one = np.zeros(total), np.ones(total), np.eye(total)
    usual = passed(none)
    effects = np.stack([passed(one[i]) - usual for i in range(total)], -1)  # [sentences, T · C, branches]
    for placement in probe.placements:
        placement.train()
    if all(np.array_equal(drawn(every, 0), drawn(every, seed)) for seed in (1, 2, 3)):
        return None
    solved = np.linalg.pinv(effects)  # [sentences, branches, T · C]
    moved = [drawn(every, seed) - drawn(none, seed) for seed in range(DRAWS)]
    counts = np.stack([np.einsum("sbc,sc->sb", solved, each) for each in moved])
    return np.where(effects.any((0, 1)), counts, np.nan)
