"""What holds for a learning-rate schedule by itself."""

from __future__ import annotations

import numpy as np

from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Result
from paddle_tfm.testing.subject import Subject


@check(
    "schedule",
    invariant="a function of the step alone: finite, not negative, the same whenever it is called",
    consequence="a resumed run continues with another learning rate",
    hint="counters kept in the object; division by a step of 0",
)
def rates(subject: Subject) -> Result:
    schedule = subject.build(d_model=64, steps=1000)
    steps = [1, 2, 10, 500, 999, 1000, 1500]
    ascending = [schedule(step) for step in steps]
    descending = [schedule(step) for step in reversed(steps)][::-1]
    if not all(np.isfinite(rate) and rate >= 0 for rate in ascending):
        return Failed(f"rates of steps {steps}: {ascending}")
    if ascending != descending:
        return Failed("called in another order, it gives other rates")
    if max(ascending) == 0:
        return Failed("the rate is always zero")
    first, _, _, halfway, _, last, _ = ascending
    return Note(f"rate {first:.2g} at step 1, {halfway:.2g} halfway, {last:.2g} at the end of 1,000")
