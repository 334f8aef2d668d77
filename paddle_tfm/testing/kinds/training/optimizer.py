"""What holds for an optimizer by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.testing.kinds.training.optimizer_steps import AT_REST, PLACE, drawn, started, stepped
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.other_options import OPTIONS, each_option, switched_on
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, difference, relative_distance

SEVERAL = 24  # steps
MAX_BEND = 1e-2  # of a step, which twice the rate may miss twice the step by
RESTING, STILL_MOVES = 50, 0.9  # a momentum of 0.99 leaves 0.61 of a step after 50; a decay that never ends, nearly all


def _problem(subject: ComponentUnderTest, rate: float):
    """A least-squares problem with one parameter that gets no gradient."""
    rng = np.random.default_rng(5)
    values = drawn(rng, {"a": [6, 4], "b": [4], "idle": [3, 3]})
    optimizer, parameters = started(subject.build(), values, rate)
    x, y = (paddle.to_tensor(rng.normal(size=shape).astype("float32")) for shape in ((32, 6), (32, 4)))

    def step() -> float:
        loss = ((paddle.matmul(x, parameters[0]) + parameters[1] - y) ** 2).mean()
        loss.backward()
        with paddle.utils.unique_name.guard():
            optimizer.step()
        optimizer.clear_grad()
        return float(loss)

    return parameters, optimizer, step


@check(
    "optimizer",
    invariant="it lowers a loss, updates each parameter with a gradient, and leaves those without unchanged",
    consequence="nothing or only a part is learned, or weights without a gradient move",
    hint="the sign and size of the update; parameters whose `grad` is None",
)
def lowers(subject: ComponentUnderTest) -> Result:
    parameters, _, step = _problem(subject, 1e-2)
    before = [parameter.numpy().copy() for parameter in parameters]
    losses = [step() for _ in range(200)]
    if not losses[-1] < 0.9 * losses[0]:
        return Failed(f"200 steps with the rate 0.01 on least squares: {losses[0]:.3g} to {losses[-1]:.3g}")
    same = [np.array_equal(values, parameter.numpy()) for values, parameter in zip(before, parameters)]
    if not same[2]:
        return Failed("a parameter without a gradient moved")
    if any(same[:2]):
        return Failed(f"200 steps left {sum(same[:2])} of 2 parameters with a gradient where they were")
    return Passed()


@check(
    "optimizer",
    invariant="it works with gradients of zeros (a parameter then does not grow), late first gradients, missing "
    "ones, any shape, and parameters that start at zero",
    consequence="a part that some batches do not use ends the training, grows, or turns into NaN",
    hint="divisions by a norm that may be 0, and steps in proportion to one; the sign of the decay; state that is made "
    "in the first step for all; axes of a matrix",
)
def any_gradient(subject: ComponentUnderTest) -> Result:
    rng = np.random.default_rng(15)
    shapes = {"kernel": [3, 4, 2], "bias": [4], "matrix": [5, 3], "gate": [1]}
    values, gradients = drawn(rng, shapes), [*drawn(rng, shapes).values()]
    zeros = [np.zeros_like(gradient) for gradient in gradients]
    optimizer, parameters = started(subject.build(), values, 1e-2)
    for parameter, move in zip(parameters, stepped(optimizer, parameters, zeros)):
        if float((parameter.numpy() * move).sum()) > 0:
            return Failed(f"gradients of zero make {list(parameter.shape)} grow")
    optimizer, parameters = started(subject.build(), values, 1e-2)
    batches: list[list[np.ndarray | None]] = [
        [*gradients[:2], None, None], [*zeros], [*gradients], [None, None, *gradients[2:]], [*gradients]
    ]  # fmt: skip
    for step, batch in enumerate(batches, 1):
        moves = stepped(optimizer, parameters, batch)
        for parameter, gradient, move in zip(parameters, batch, moves):
            if not np.isfinite(move).all():
                return Failed(f"step {step}: {list(parameter.shape)} holds numbers that are not finite")
            if gradient is None and move.any():
                return Failed(f"step {step}: {list(parameter.shape)} has no gradient this time, and moves")
            if step == len(batches) and not move.any():  # a rule may only look at the first one
                return Failed(f"step {step}: {list(parameter.shape)} has a gradient, and does not move")
    optimizer, parameters = started(subject.build(), {path: np.zeros_like(values[path]) for path in values}, 1e-2)
    for _ in range(2):  # a rule may only look at the first one
        stepped(optimizer, parameters, gradients)
    idle = [list(parameter.shape) for parameter in parameters if not parameter.numpy().any()]
    return Failed(f"{idle[0]} is zero, has a gradient, and does not move in two steps") if idle else Passed()


@check(
    "optimizer",
    invariant="the first step is proportional to the learning rate",
    consequence="the schedule does not decide how fast weights move",
    hint="the rate applied twice, or to a part of the step only",
)
def proportional(subject: ComponentUnderTest) -> Result:
    rng, shapes, moves = np.random.default_rng(15), {"a": [6, 4], "b": [4]}, []
    values, gradients = drawn(rng, shapes), [*drawn(rng, shapes).values()]
    for rate in (1e-3, 2e-3):
        moves.append(stepped(*started(subject.build(), values, rate), gradients))
    for once, twice in zip(*moves):
        if relative_distance(twice, 2.0 * once) > MAX_BEND:
            share = float(np.abs(twice).mean() / np.abs(once).mean())
            return Failed(f"with twice the rate the first step is {share:.3g} times as large")
    return Passed()


@check(
    "optimizer",
    invariant="a rate of zero changes nothing",
    consequence="the schedule does not decide how fast weights move",
    hint="steps, or a decay of weights, that are not multiplied by the learning rate",
)
def follows_the_rate(subject: ComponentUnderTest) -> Result:
    for what, varied in switched_on(subject):
        parameters, _, step = _problem(varied, 0.0)
        before = [parameter.numpy().copy() for parameter in parameters]
        step()
        for value, parameter in zip(before, parameters):
            if failed := difference(value, parameter.numpy(), f"after a step with the rate 0{what}", 0.0):
                return failed
    return Passed()


@check(
    "optimizer",
    invariant="parameters come to rest when the rate falls to zero, momentum and averages included",
    consequence="weights keep moving or shrinking at the end of a schedule that ends at zero",
    hint="a rate that is remembered, the largest or the first, where the step's own is meant",
)
def falls_to_zero(subject: ComponentUnderTest) -> Result:
    for what, varied in switched_on(subject):
        parameters, optimizer, step = _problem(varied, 1e-2)
        for _ in range(3):
            step()
        optimizer.set_lr(0.0)
        lengths = []
        for _ in range(RESTING):
            before = [parameter.clone() for parameter in parameters]
            step()
            lengths.append(sum(float(((a - b) ** 2).sum()) for a, b in zip(parameters, before)) ** 0.5)
        if lengths[-1] > STILL_MOVES * lengths[0]:
            share = f"{lengths[-1] / lengths[0]:.2f} times" if lengths[0] else "longer than"
            return Failed(f"{RESTING} steps after the rate fell to 0{what}, a step is {share} the first of them")
    return Passed()


@check(
    "optimizer",
    invariant="momentum acts: after twenty equal gradients, one opposite gradient does not reverse the step",
    consequence="momentum hardly acts: a single unusual batch undoes the steps of the others",
    hint="whether momentum is a sum or a mean, and what is added to it; the beta that is meant for the other moment; "
    "a rule without momentum, or whose step is half the newest gradient's (NAdam), declares it in `expected_failures`",
)
def inertia(subject: ComponentUnderTest) -> Result:
    rng, shapes = np.random.default_rng(7), {"a": [6, 4]}
    optimizer, parameters = started(subject.build(), drawn(rng, shapes), 1e-2)
    (gradient,) = drawn(rng, shapes).values()
    along: list[float] = []
    for sign in [1] * 20 + [-1]:
        (move,) = stepped(optimizer, parameters, [sign * gradient])
        along.append(float((move * gradient).sum()))
    if along[-1] > AT_REST * -along[-2]:  # a step that only halts, as a cautious optimizer's, is no turn
        return Failed("the step goes the other way at once")
    return Passed()


@check(
    "optimizer",
    invariant="saved and loaded in the middle, it continues exactly",
    consequence="a resumed run is another run",
    hint="`state_dict` and `set_state_dict`: every moment and counter",
)
def resumes(subject: ComponentUnderTest) -> Result:
    uninterrupted, _, step = _problem(subject, 1e-2)
    for _ in range(6):
        step()
    saved, optimizer, step = _problem(subject, 1e-2)
    for _ in range(3):
        step()
    state = {
        key: value.clone() if isinstance(value, Tensor) else value for key, value in optimizer.state_dict().items()
    }
    resumed, optimizer, step = _problem(subject, 1e-2)
    for source, target in zip(saved, resumed):
        target.set_value(source)
    optimizer.set_state_dict(state)
    for _ in range(3):
        step()
    for a, b in zip(uninterrupted, resumed):
        what = "six steps, and three steps saved, loaded and three more"
        if failed := difference(a.numpy(), b.numpy(), what, 0.0):
            return failed
    return Passed()


@check(
    "optimizer",
    invariant="after an evaluation the weights have the same bits as before, and training continues as without it",
    consequence="each evaluation changes the training: a run that is evaluated more often is another run",
    hint="`evaluated`: swap the weights back in a `finally`, and leave the optimizer's own state alone",
)
def evaluated(subject: ComponentUnderTest) -> Result:
    ends: list[np.ndarray] = []
    shape = [40, 30]
    for evaluations in (0, 2):
        rng, component = np.random.default_rng(11), subject.build()
        sizes = 10.0 ** rng.uniform(-3, 0, size=shape)  # some come near zero, where what is added and taken away rounds
        values = {f"{PLACE}.a": (rng.normal(size=shape) * sizes).astype("float32")}
        optimizer, (parameter,) = started(component, values, 1e-2)
        for _ in range(4):
            stepped(optimizer, [parameter], [rng.normal(size=shape).astype("float32")])
            before = parameter.numpy().copy()
            for _ in range(evaluations):
                with component.evaluated(optimizer):
                    if not np.isfinite(parameter.numpy()).all():
                        return Failed("within `evaluated` the weights are not finite")
            if failed := difference(before, parameter.numpy(), "weights before and after `evaluated`", 0.0):
                return failed
        ends.append(parameter.numpy())
    without, evaluations_between = ends
    return difference(without, evaluations_between, "four steps, and four with evaluations between", 0.0) or Passed()


@check("optimizer", **OPTIONS)
def options(subject: ComponentUnderTest) -> Result:
    def weights_in_training(others: Mapping[str, object]) -> Iterator[np.ndarray]:
        varied = subject.with_options(others)
        parameters, optimizer, step = _problem(varied, 1e-2)
        for _ in range(SEVERAL):
            step()
            yield from (parameter.numpy().copy() for parameter in parameters)
        with varied.build().evaluated(optimizer):
            averages = [parameter.numpy().copy() for parameter in parameters]
        yield from averages

    return each_option(subject, weights_in_training)
