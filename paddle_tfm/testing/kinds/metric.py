"""What holds for a metric by itself."""

from __future__ import annotations

from paddle_tfm.protocols import Likelihood, Prediction
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result
from paddle_tfm.testing.subject import Subject

TEXTS = [("a b c", "a b c"), ("a b c d", "a c d"), ("x y", "z w v"), ("die Katze schläft", "die Katze schlief")]


def _predictions(pairs) -> list[Prediction]:
    return [Prediction("s", one, two, tuple(one.split()), tuple(two.split())) for one, two in pairs]


@check(
    "metric",
    invariant="nothing is better than the reference itself, and the order of examples does not matter",
    consequence="it rewards something else",
    hint="`higher_is_better`; which text is the reference; sums over examples",
)
def prefers_the_reference(subject: Subject) -> Result:
    metric = subject.build()
    if not metric.needs_search:
        worse, better = (metric.compute([], Likelihood(*sums, 10, 40)) for sums in ((30.0, 5), (10.0, 8)))
        if (better > worse) != metric.higher_is_better:
            return Failed(f"a likelier text gets {better:.4g}, a less likely one {worse:.4g}")
        return Passed()
    likelihood = Likelihood(10.0, 5, 10, 40)
    exact = metric.compute(_predictions([(one, one) for one, _ in TEXTS]), likelihood)
    usual = metric.compute(_predictions(TEXTS), likelihood)
    reordered = metric.compute(_predictions(TEXTS[::-1]), likelihood)
    if (usual > exact) if metric.higher_is_better else (usual < exact):
        return Failed(f"the references themselves get {exact:.4g}, other texts {usual:.4g}")
    if abs(usual - reordered) > 1e-9 * max(1.0, abs(usual)):
        return Failed(f"the same examples in another order get {reordered:.6g} instead of {usual:.6g}")
    return Passed()
