"""What a placement leaves out by chance, as stochastic depth does: what remains makes up for it."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.testing.kinds.placement import NUM_LAYERS, POSITIONS, VALID, WIDTH, PlacementProbe, stacks
from paddle_tfm.testing.model_under_test import same_draws
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip
from paddle_tfm.testing.subject import Subject

SENTENCES, DRAWS, SMALL = 16, 48, 0.002  # branches so small that what they do adds up
OUT, AS_LOUD = 0.02, 0.004  # of a branch: what is left where it is left out; how near 1 is 1
MAX_OFF, ERRORS = 0.05, 4.0  # of the mean, or so many standard errors


@check(
    "placement",
    invariant="what is left out by chance is made up for: on average over the draws of training, each branch counts as "
    "much as in evaluation",
    consequence="in evaluation branches are louder than in training: what is evaluated is not what was trained",
    hint="a branch that is kept with probability p is divided by p in training, or multiplied by p in evaluation; "
    "`paddle_tfm.layers.Dropout` on a tensor of ones [B, 1, 1] divides; a method that does neither, as LayerDrop "
    "(arXiv:1909.11556), declares it in `expected_failures`",
)
def left_out(subject: Subject) -> Result:
    shares = {}
    for stack in stacks(subject):
        counts = _counts(subject, stack)
        if counts is None:
            continue
        for branch in range(counts.shape[-1]):
            of_branch = counts[..., branch]
            where = f"{stack}, branch {branch} of {counts.shape[-1]} from the bottom"
            mean, error = of_branch.mean(), of_branch.mean(1).std() / len(of_branch) ** 0.5
            out = np.abs(of_branch) < OUT
            if out.any() and not out.all() and np.abs(np.median(of_branch[~out]) - 1.0) < AS_LOUD:
                return Failed(
                    f"{where}: left out {out.mean():.0%} of the time, and as loud as in evaluation where it is not"
                )
            if abs(mean - 1.0) > max(MAX_OFF, ERRORS * error):
                return Failed(f"{where}: in training it counts on average {mean:.2f} of what it does in evaluation")
            shares[where] = out.mean()
    if not shares:
        return Skip("it draws nothing besides the given `dropout`")
    return (
        Note(f"a branch is left out up to {max(shares.values()):.0%} of the time") if max(shares.values()) else Passed()
    )


def _counts(subject: Subject, stack: str) -> np.ndarray | None:
    """How much each branch counts in each draw of training, for each sentence [draws, sentences, branches], of what it
    does in evaluation; None: nothing is drawn."""
    probe = PlacementProbe(subject, stack)
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
    return np.stack([np.einsum("sbc,sc->sb", solved, each) for each in moved])
