"""What holds for an attention's dropout: what it may drop."""

from __future__ import annotations

from paddle_tfm.testing.kinds.attention import AttentionProbe
from paddle_tfm.testing.model_under_test import same_draws
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Passed, Result, Skip, difference, distance
from paddle_tfm.testing.subject import Subject

RATE, DRAWS, TOLERANCE = 0.5, 2, 1e-4


@check(
    "attention",
    invariant="dropout acts on weights, not on scores: where the weights are a softmax, what all of a query's scores "
    "are raised by changes none, in training either",
    consequence="a key that is dropped gets a score of 0, which may be above all others: it is looked at instead of "
    "left out",
    hint="`dropout(softmax(scores))`, and not `softmax(dropout(scores))`; a score that is dropped must be as low as a "
    "hidden one",
)
def dropped_weights(subject: Subject) -> Result:
    if not subject.takes("dropout"):
        return Skip("its constructor takes no `dropout`")
    probe = AttentionProbe(subject, dropout=RATE)
    kv = probe.key_value()
    if isinstance(kv, Skip):
        return kv
    # The same vector added to all keys adds q · vector to all scores of a query, which a softmax does not see.
    vector = probe.normal(1, kv.key.shape[1], 1, kv.key.shape[3])
    raised = kv.replaced(kv.key + vector, kv.value)
    if distance(probe(probe.x, kv), probe(probe.x, raised)) > TOLERANCE:
        return Skip("its weights are no softmax of products of queries and keys")
    probe.attention.train()
    for seed in range(DRAWS):
        outputs = []
        for each in (kv, raised):
            with same_draws(probe.attention, seed):
                outputs.append(probe(probe.x, each))
        what = f"dropout {RATE:g}, all scores of a query raised by one number"
        if failed := difference(outputs[0], outputs[1], what, TOLERANCE):
            return failed
    return Passed()
