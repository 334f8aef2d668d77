"""What holds for a learning-rate schedule by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from paddle_tfm.errors import RecipeError
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.other_options import OPTIONS, each_option
from paddle_tfm.testing.other_process import as_in_another_process
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip

STEPS = 1000
SHORT_RUNS = (1, 2, 10)  # to try something out
CONTINUOUS = (STEPS, 200)  # in the shorter run a usual warm-up is half of it, or all
BEYOND = (STEPS + 1, STEPS + 500, 100 * STEPS)  # a run that is continued asks for them
PEAKS, MAX_OFF, LONG_RUN = (2e-4, 6e-4), 0.05, 20_000  # steps, more than a usual warm-up
MAX_JUMP = 0.05  # of the highest rate, from a step to the next
MIN_PEAK_SHARE = 1e-4  # of the highest rate, which the first twentieth of the steps reaches
MANY_TIMES = 3  # as large as the changes beside it


def _rates(subject: ComponentUnderTest, steps: int = STEPS) -> list[float]:
    """Those of all steps of a run."""
    schedule = subject.build(d_model=64, steps=steps)
    return [schedule(step) for step in range(1, steps + 1)]


@check(
    "schedule",
    invariant="rates are finite numbers, positive in every step of the run, and never negative after it",
    consequence="steps that learn nothing, that go uphill, or that make all weights NaN",
    hint="the first step is 1, not 0, and the last one is `steps`; division by a warm-up of 0; a Python float is asked "
    "for",
)
def rates(subject: ComponentUnderTest) -> Result:
    run = _rates(subject)
    schedule = subject.build(d_model=64, steps=STEPS)
    after = [schedule(step) for step in BEYOND]
    for step, rate in zip((*range(1, STEPS + 1), *BEYOND), (*run, *after)):
        if not isinstance(rate, float):
            return Failed(f"step {step} of {STEPS:,}: the rate must be a float, but is {type(rate).__name__}")
        if not np.isfinite(rate) or rate < 0 or (rate == 0 and step <= STEPS):
            return Failed(f"step {step} of {STEPS:,}: the rate is {rate:.3g}")
    for steps in SHORT_RUNS:
        try:
            short = _rates(subject, steps)
        except RecipeError:  # a warm-up of more steps, say
            continue
        for step, rate in enumerate(short, 1):
            if not (np.isfinite(rate) and rate > 0):
                return Failed(f"step {step} of a run of {steps}: the rate is {rate:.3g}")
    first, highest = max(run[: STEPS // 20]), max(run)
    if first < MIN_PEAK_SHARE * highest:
        return Failed(
            f"in the first {STEPS // 20} steps of {STEPS:,} the rate is at most {first:.3g}, later {highest:.3g}"
        )
    return Note(
        f"rate {run[0]:.2g} at step 1, {run[STEPS // 2 - 1]:.2g} halfway, {run[-1]:.2g} at the end of {STEPS:,}"
    )


@check(
    "schedule",
    invariant="a function of the step alone: the same at any time and from any object",
    consequence="a resumed run continues with another learning rate",
    hint="counters kept in the object or the class; a clock; random draws",
)
def step_alone(subject: ComponentUnderTest) -> Result:
    ascending = _rates(subject)
    with as_in_another_process():
        other_process = _rates(subject)
    schedule = subject.build(d_model=64, steps=STEPS)
    resumed = {step: schedule(step) for step in (*range(700, STEPS + 1), *range(1, 700))}
    again = {step: schedule(step) for step in range(STEPS, 0, -1)}
    for step, rate in enumerate(ascending, 1):
        for other, how in (
            (resumed[step], "resumed at step 700"),
            (again[step], "called in another order"),
            (other_process[step - 1], "in another process"),
        ):
            if rate != other:
                return Failed(f"step {step}: the rate is {rate:.6g}, and {how} {other:.6g}")
    longer = subject.build(d_model=64, steps=2 * STEPS)
    for step, rate in enumerate(ascending, 1):
        longer(step)
        if rate != (other := schedule(step)):
            return Failed(
                f"step {step}: the rate is {rate:.6g}, and {other:.6g} beside a schedule of {2 * STEPS} steps"
            )
    return Passed()


@check(
    "schedule",
    invariant="a class with an option `peak` reaches it, and goes no higher",
    consequence="a recipe's peak is not the highest rate of its runs: schedules are compared at different rates",
    hint="what the peak is multiplied by; the last step of the warm-up",
)
def peak(subject: ComponentUnderTest) -> Result:
    if not subject.takes("peak"):
        return Skip("it has no option `peak`")
    for value in PEAKS:
        highest = max(_rates(subject.with_options({"peak": value}), LONG_RUN))
        if abs(highest - value) > MAX_OFF * value:
            return Failed(f"with `peak` {value:g} the highest rate of {LONG_RUN:,} steps is {highest:.4g}")
    return Passed()


@check(
    "schedule",
    invariant="continuous: no jump between steps where the changes around it are small",
    consequence="the loss jumps at a step that nobody chose",
    hint="where one piece ends and the next begins: an off-by-one, another peak; a schedule that falls in steps "
    "declares it in `expected_failures`",
)
def continuous(subject: ComponentUnderTest) -> Result:
    for steps in CONTINUOUS:
        try:
            run = _rates(subject, steps)
        except RecipeError:
            continue
        if sentence := _jump(np.array(run, np.float64)):
            return Failed(sentence)
    return Passed()


def _jump(run: np.ndarray) -> str | None:
    """The first jump of the rates of all steps, in words."""
    change = np.abs(np.diff(run))  # [STEPS - 1]
    beside = np.maximum(np.concatenate([[0.0], change[:-1]]), np.concatenate([change[1:], [0.0]]))
    beside[0], beside[-1] = change[1], change[-2]
    jumps = np.flatnonzero((change > MAX_JUMP * run.max()) & (change > MANY_TIMES * beside))
    if not jumps.size:
        return None
    step, steps = int(jumps[0]) + 1, f"{len(run):,}"
    return f"from step {step} to step {step + 1} of {steps} the rate goes from {run[step - 1]:.3g} to {run[step]:.3g}"


@check("schedule", **OPTIONS)
def options(subject: ComponentUnderTest) -> Result:
    def rates_of_a_run(others: Mapping[str, object]) -> Iterator[np.ndarray]:
        schedule = subject.with_options(others).build(d_model=64, steps=STEPS)
        yield np.array([schedule(step) for step in (*range(1, STEPS + 1), *BEYOND)])

    return each_option(subject, rates_of_a_run)
