"""What an optimizer owes each of several parameters: a state, a rate and a clock of its own, and no decay of gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from paddle_tfm.errors import UserError
from paddle_tfm.testing.kinds.training.optimizer_steps import AT_REST, PLACE, Values, started, stepped
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, Skip, difference, relative_distance

RATE, STEPS = 1e-2, 3  # steps
CHANGES = (10.0, 0.1)  # of the rate, in the middle of a run
SCALE, MAX_LARGER = 1e4, 1.5  # of gradients, and of the steps that small ones give
FACTOR = 0.5  # of the rate: a power of two, so that the order of products changes nothing
LATE = 60  # steps before a first gradient: whole periods of what is done every 2, 3, 4, 5, 6, 10 or 12 steps
DECAY = 0.1
MATRIX, BIAS = f"{PLACE}.output.weight", f"{PLACE}.output.bias"
OTHER_MATRIX, OTHER_BIAS = MATRIX.replace("layers.0", "layers.1"), BIAS.replace("layers.0", "layers.1")
SHAPES: dict[str, tuple[int, ...]] = {MATRIX: (6, 4), OTHER_MATRIX: (6, 4), BIAS: (4,), OTHER_BIAS: (4,)}


def draw(seed: int) -> dict[str, np.ndarray]:
    """Path → normal values: two matrices and two vectors, each of a layer."""
    rng = np.random.default_rng([seed, 19])
    return {path: rng.normal(size=shape).astype("float32") for path, shape in SHAPES.items()}


def _run(
    subject: ComponentUnderTest,
    start: Values,
    gradients: Sequence[Values],
    rate: float = RATE,
    factors: Mapping[str, float] | None = None,
    exempt: Sequence[str] = (),
    last_rate: float | None = None,
) -> dict[str, list[np.ndarray]]:
    """Where each parameter is after each step; a step holds the gradients of those that have one. `factors`, `exempt`:
    see `started`."""
    optimizer, parameters = started(subject.build(), start, rate, factors, exempt)
    after: dict[str, list[np.ndarray]] = {path: [] for path in start}
    for number, step in enumerate(gradients, 1):
        if last_rate is not None and number == len(gradients):
            optimizer.set_lr(last_rate)
        stepped(optimizer, parameters, [step.get(path) for path in start])
        for path, parameter in zip(start, parameters):
            after[path].append(parameter.numpy().copy())
    return after


@check(
    "optimizer",
    invariant="a parameter's steps come from its own gradients: another parameter of the same shape and name "
    "affects them by its gradient's size at most",
    consequence="moments of one matrix move another, and both learn badly",
    hint="state that is kept by shape or by the last part of a name, or that the class holds: one for each parameter; "
    "a rule that mixes parameters by design declares it in `expected_failures`",
)
def own_state(subject: ComponentUnderTest) -> Result:
    start, gradients = draw(0), [draw(1 + step) for step in range(STEPS)]
    usual = _run(subject, start, gradients)
    for observed, turned in (
        ((MATRIX, BIAS), (OTHER_MATRIX, OTHER_BIAS)),
        ((OTHER_MATRIX, OTHER_BIAS), (MATRIX, BIAS)),
    ):

        def opposite(values: Values, turned: Sequence[str] = turned) -> dict[str, np.ndarray]:
            """Negated and in reverse order: each norm, and each product with one another, is what it was."""
            return {path: -np.flip(value) if path in turned else value for path, value in values.items()}

        other = _run(subject, opposite(start), [opposite(each) for each in gradients])
        for path in observed:
            what = f"{STEPS} steps of {list(start[path].shape)}, beside another and beside its opposite"
            if failed := difference(usual[path][-1], other[path][-1], what):
                return failed
    return Passed()


@check(
    "optimizer",
    invariant="a parameter's own factor of the rate, which muP sets, is applied: half the factor is half the rate",
    consequence="under muP a wide model trains at the rates of a narrow one",
    hint="`parameter.optimize_attr['learning_rate']`, which Paddle's own optimizers multiply the rate by; a class that "
    "does not must not say `adam_like = True`",
)
def own_rate(subject: ComponentUnderTest) -> Result:
    if not subject.cls.adam_like:
        return Skip("it is not `adam_like`: initial values that set factors, such as muP's, refuse it")
    start, gradients = draw(0), [draw(1 + step) for step in range(STEPS)]
    paths = (MATRIX, BIAS)
    by_factor = _run(subject, start, gradients, factors=dict.fromkeys(paths, FACTOR))
    by_rate = _run(subject, start, gradients, rate=FACTOR * RATE)
    for path in paths:
        expected, seen = (run[path][-1] - start[path] for run in (by_rate, by_factor))
        if not relative_distance(expected, seen) <= AT_REST:
            share = float(np.abs(seen).mean() / max(1e-30, np.abs(expected).mean()))
            return Failed(f"{list(start[path].shape)} with the factor {FACTOR} moves {share:.3g} times as far as with "
                          f"{FACTOR} of the rate")  # fmt: skip
    return Passed()


@check(
    "optimizer",
    invariant="a rate that is set later is used: after three steps, another rate gives another step",
    consequence="the schedule is read once: the whole run has the rate of the first step, or the highest rate",
    hint="`get_lr()` in each step; a rate that is kept in an attribute, or only ever raised",
)
def later_rate(subject: ComponentUnderTest) -> Result:
    start, gradients = draw(0), [draw(1 + step) for step in range(STEPS + 1)]
    for factor in CHANGES:
        usual, other = (_run(subject, start, gradients, last_rate=RATE * last) for last in (1.0, factor))
        for path in (MATRIX, BIAS):
            one, two = (run[path][-1] - run[path][-2] for run in (usual, other))
            if not relative_distance(one, two) > AT_REST:
                return Failed(
                    f"with {factor:g} of the rate after {STEPS} steps, {list(start[path].shape)} moves as before"
                )
    return Passed()


@check(
    "optimizer",
    invariant="gradients 10,000 times smaller never give larger steps, and large ones give finite steps",
    consequence="near the end, where gradients are small, weights jump; or one large gradient turns them into NaN",
    hint="squares that half precision holds as 0, an epsilon that is forgotten or taken from the wrong side of a root",
)
def any_scale(subject: ComponentUnderTest) -> Result:
    start, gradients = draw(0), [draw(1 + step) for step in range(STEPS)]
    moves: dict[float, dict[str, float]] = {}
    for scale in (1.0, 1.0 / SCALE, SCALE):
        scaled = [{path: (scale * value).astype("float32") for path, value in each.items()} for each in gradients]
        after = _run(subject, start, scaled)
        moves[scale] = {path: float(np.abs(after[path][-1] - start[path]).mean()) for path in (MATRIX, BIAS)}
    for path in (MATRIX, BIAS):
        usual, small, large = (moves[scale][path] for scale in (1.0, 1.0 / SCALE, SCALE))
        if not np.isfinite(large):
            return Failed(f"gradients {SCALE:,.0f} times as large: {list(start[path].shape)} is not finite")
        if not small <= MAX_LARGER * usual:
            far = f"{small:.3g} in {STEPS} steps of gradients {SCALE:,.0f} times as small, {usual:.3g} otherwise"
            return Failed(f"{list(start[path].shape)} moves by {far}")
    return Passed()


@check(
    "optimizer",
    invariant="a parameter whose first gradient comes late starts as any other",
    consequence="a layer that is unfrozen, or an expert that is first used late, starts with steps of another size",
    hint="bias correction goes by a parameter's own number of updates, not by the optimizer's; a rule that follows one "
    "clock by design, such as a warm-up of its own, declares it in `expected_failures`",
)
def late_start(subject: ComponentUnderTest) -> Result:
    start, gradients = draw(0), [draw(1 + step) for step in range(LATE + STEPS)]
    late = (MATRIX, BIAS)
    others = [{path: value for path, value in each.items() if path not in late} for each in gradients[:LATE]]
    fresh, delayed = _run(subject, start, gradients[LATE:]), _run(subject, start, [*others, *gradients[LATE:]])
    for path in late:
        for step in range(STEPS):
            expected, seen = fresh[path][step] - start[path], delayed[path][LATE + step] - start[path]
            if not relative_distance(expected, seen) <= AT_REST:
                share = float(np.abs(seen).mean() / max(1e-30, np.abs(expected).mean()))
                far = f"{share:.3g} times as far in {step + 1} steps as one that starts with the run"
                return Failed(f"{list(start[path].shape)}, whose first gradient is {LATE} steps late, moves {far}")
    return Passed()


@check(
    "optimizer",
    invariant="weight decay leaves alone what has one dimension, and what `no_decay` marks",
    consequence="gains and biases shrink to zero, and so do marked parameters",
    hint="`is_decayed(parameter)` of `paddle_tfm.protocols` says what a decay is for",
)
def spares_gains(subject: ComponentUnderTest) -> Result:
    variants = [subject]
    if subject.takes("weight_decay"):
        with suppress(UserError):  # a decay of another scale
            variants.append(subject.with_options({"weight_decay": DECAY}))
    start = draw(0)
    zeros = {path: np.zeros_like(value) for path, value in start.items()}
    for variant in variants:
        after = _run(variant, start, [zeros], exempt=[OTHER_MATRIX])
        for path, what in ((BIAS, "a vector"), (OTHER_MATRIX, "a matrix with the mark `no_decay`")):
            if not np.array_equal(after[path][0], start[path]):
                return Failed(f"{what} {list(start[path].shape)} moves by a gradient of zeros")
    return Passed()
