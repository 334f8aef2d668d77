"""Whether outputs depend on the batch: the same sentences in batches of 1, 8 and 64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.errors import UserError
from paddle_tfm.predictions import predictions_file, read_undamaged_predictions
from paddle_tfm.protocols import Example
from paddle_tfm.tabular import Table, column

if TYPE_CHECKING:
    from paddle_tfm.data.codec import Codec, Encoded
    from paddle_tfm.model.transformer import Transformer

VARIANTS = 4  # at most, so that it takes seconds
SIZES = (8, 64)
SENTENCES = 16  # that are looked at; a larger batch has others beside them
NOTE = (
    "The first 16 sentences of the test set, alone and in batches with others, in which shorter ones are padded, each "
    "with its reference as what was written so far. Drift: how far the log-probability of the reference is from that "
    "of the sentence alone, in nats, the largest over sentences; rounding gives about 1e-5. Changed: the sentences in "
    "which another piece becomes the most probable somewhere. A norm, mask or position that lets padding or neighbours "
    "through gives more. What the search writes in other batches is a further test of a recipe (evaluate.tests)."
)


class Batches(ChartedSection):
    """The same sentences alone and in batches of 8 and 64: how far log-probabilities drift, and in how many
    another piece becomes the most probable."""

    heading = "The same sentences in other batches"
    place = 370
    slow = True

    def applies(self, facts: Facts) -> bool:
        """Whether outputs were recorded, and a model that wrote them can be loaded."""
        return bool(facts.once(_changes)[0])

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each variant and size of a batch."""
        rows = [(variant, change) for variant, changes in facts.once(_changes)[0].items() for change in changes]
        columns = [
            column("variant", of=lambda row: row[0]),
            column("batch", right=True, of=lambda row: row[1].size),
            column("sentences", right=True, of=lambda row: row[1].sentences),
            column("drift", "drift in nats", "{:.1e}".format, right=True, of=lambda row: row[1].drift),
            column("changed", "changed sentences", right=True, of=lambda row: row[1].changed),
        ]
        return {"batch-invariance": Table(columns, rows, "Beside the same sentences alone")}

    def notes(self, facts: Facts) -> list[str]:
        """What the numbers are."""
        return [NOTE, *facts.once(_changes)[1], *facts.models.remarks]

    def data(self, facts: Facts) -> Mapping[str, Any]:
        """Variant → its rows."""
        changes, _ = facts.once(_changes)
        return {variant: [change._asdict() for change in items] for variant, items in changes.items()}


def _changes(facts: Facts) -> tuple[dict[str, list[Change]], list[str]]:
    """Variant → what batches change, and which models cannot be shown."""
    results: dict[str, list[Change]] = {}
    lacking: dict[str, None] = {}
    for variant in list(facts.numbers)[:VARIANTS]:
        result = facts.run_of(variant)
        rows = read_undamaged_predictions(predictions_file(result.folder), SIZES[-1])
        run = facts.models(result) if rows else None
        if run is None:
            lacking |= {facts.models.why(result): None} if rows else {}
            continue
        try:
            results[variant] = changes(run.model, run.codec, [(row.source, row.reference) for row in rows])
        except UserError as error:
            lacking[f"{variant}: {error}"] = None
    return results, list(lacking)


class Change(NamedTuple):
    """What a batch of `size` changes beside each of `sentences` alone, under teacher forcing: `drift`, the largest
    change of a reference's log-probability in nats, and in how many sentences another piece becomes the most probable
    somewhere (`changed`)."""

    size: int
    sentences: int
    drift: float
    changed: int


def changes(model: Transformer, codec: Codec, texts: Sequence[tuple[str, str]]) -> list[Change]:
    """Of (source, reference) the first `SENTENCES`, in batches of `SIZES` in the order that texts have; of fewer texts
    than the largest the sizes up to all."""
    examples = [codec.encode(Example(*text)) for text in texts]
    sizes = [size for size in SIZES if size < len(examples)] + [min(len(examples), SIZES[-1])]
    model.eval()
    alone = _in_batches(model, examples[:SENTENCES], 1)
    results = []
    for size in dict.fromkeys(sizes):
        together = _in_batches(model, examples[: max(size, SENTENCES)], size)
        drift = max(abs(score - other) for (score, _), (other, _) in zip(alone, together))
        changed = sum(not np.array_equal(best, other) for (_, best), (_, other) in zip(alone, together))
        results.append(Change(size, len(alone), drift, changed))
    return results


def _in_batches(model: Transformer, examples: Sequence[Encoded], size: int) -> list[tuple[float, np.ndarray]]:
    """Of each example the log-probability of its reference, and at each position the most probable piece [T], with
    `size` examples in a batch."""
    import paddle

    from paddle_tfm.data.batches import collate

    results = []
    for start in range(0, len(examples), size):
        batch = collate(examples[start : start + size]).tensors()
        with paddle.no_grad():
            log_probs = model.head.log_probs(*model(batch))
        scores = log_probs.take_along_axis(model.target(batch).unsqueeze(-1), -1).squeeze(-1).astype("float64").numpy()
        best, valid = log_probs.argmax(-1).numpy(), batch.target_valid.numpy()
        results += [(float(scores[i][real].sum()), best[i][real]) for i, real in enumerate(valid)]
    return results
