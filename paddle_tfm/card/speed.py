"""How fast a model trains and writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from statistics import median
from typing import Any

from paddle_tfm import runtime
from paddle_tfm.train.run import Run

TEXTS = 32  # in one call
SINGLES = 5  # one at a time
LENGTH = 50  # tokens of a text that a decoder-only model writes


def training(results: Mapping[str, Any]) -> str:
    """Of the training, as it was logged."""
    if not results:
        return "not finished"
    parts = [
        f"{results['tokens_per_second']:,.0f} target tokens a second, {results['seconds']:,.0f} s of training steps"
    ]
    if wall := results.get("wall_seconds"):
        parts.append(f"{wall:,.0f} s with evaluations and checkpoints")
    return "; ".join(parts)


def writing(run: Run, sources: Sequence[str]) -> str:
    """Of the search, measured here and now, after one call that is not counted."""
    threads = f"{runtime.threads()} thread{'' if runtime.threads() == 1 else 's'}"
    if not sources:
        number = min(LENGTH, len(run.generate("", LENGTH).ids) + 1)  # an end that comes before is a step too
        seconds = _seconds(lambda: run.generate("", LENGTH), 3)
        return f"{number / seconds:,.0f} tokens a second in one text of {number} ({threads}, where this page was made)"
    # A prediction may be of any length, and nobody waits for a translation of a book.
    short = (text for text in sources if len(run.codec.source.tokenize(text)) < run.model.max_length)
    texts = list(islice(short, TEXTS))
    if not texts:
        return f"not measured: no text here has fewer than {run.model.max_length:,} pieces (model.max_length)"
    together = _seconds(lambda: run.translate(texts), 1)
    alone = median(_seconds(partial(run.translate, [text]), 1) for text in texts[:SINGLES])
    rate = (
        f"{len(texts) / together:,.1f} texts a second, {len(texts)} in one call; {1000 * alone:,.0f} ms for one alone"
    )
    return f"{rate} ({threads}, where this page was made)"


def _seconds(call: Callable[[], object], rounds: int) -> float:
    """The least of some rounds, after one that warms up."""
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
