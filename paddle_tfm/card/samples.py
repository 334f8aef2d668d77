"""Outputs of a run: the best and the worst."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from paddle_tfm.comparison.report.samples import similarity
from paddle_tfm.pages.marks import MAX_CHARACTERS, marked
from paddle_tfm.protocols import Prediction

NUMBER = 4


def best_and_worst(
    predictions: Sequence[Prediction], number: int = NUMBER
) -> tuple[list[Prediction], list[Prediction]]:
    """The predictions most and least like their references; of equally good ones the longest, of equally bad ones those
    of which the model was surest. None is in both."""
    scored = [(similarity(item.reference, item.hypothesis), item) for item in predictions]
    best = sorted(scored, key=lambda pair: (-pair[0], -len(pair[1].source)))[:number]
    others = [pair for pair in scored if pair[0] < 1 and not any(pair[1] is item for _, item in best)]
    worst = sorted(others, key=lambda pair: (pair[0], -pair[1].score))[:number]
    return [item for _, item in best], [item for _, item in worst]


def html(predictions: Sequence[Prediction]) -> str:
    """Both, a block for each prediction."""
    best, worst = best_and_worst(predictions)
    note = "Most and least like their references, by the characters and pairs of characters that both have."
    parts = [f'<p class="note">{note}</p>', "<h3>Best</h3>", *map(_example, best)]
    parts += ["<h3>Worst</h3>", *map(_example, worst)] if worst else ["<p>Every output is its reference.</p>"]
    return "".join(parts)


def _example(item: Prediction) -> str:
    reference, output = marked(item.reference, item.hypothesis)
    texts = [("source", escape(item.source[:MAX_CHARACTERS]))] if item.source else []
    if item.reference == item.hypothesis:
        texts.append(("output, which is the reference", output))
    else:
        texts += [("reference", reference), ("output", output)]
    texts.append(("log-probability", f"{item.score:.3g}".replace("-", "−")))
    cells = "".join(f'<div><dt>{name}</dt><dd dir="auto">{text}</dd></div>' for name, text in texts)
    return f'<div class="example"><dl class="outputs">{cells}</dl></div>'
