"""What a run carried over from the run that it began with: part of its identity and of its results. Needs no Paddle."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from paddle_tfm.language import _
from paddle_tfm.runs.forms import Count, Form

LISTED = 6  # groups of weights in one sentence


class Pieces(Form):
    """How many pieces of a side both runs have, only this one, and only the other one."""

    kept: Count = 0
    added: Count = 0
    removed: Count = 0


class Start(Form):
    """What a run began with.

    Args:
        run: the other run's folder; checkpoint, step: whose weights; weights: their SHA-256.
        carried: numbers that were carried over, `numbers` of all that the model has.
        drawn: name → shape of what is newly drawn; left_out: of what has no place here; source_numbers: of all that
            the other run has. redrawn: how many of those carried over were drawn again, by `train.redraw`.
        pieces: side → its pieces, where they are not the other run's. settings: those of the model that differ.
    """

    run: str
    checkpoint: str
    step: Count
    weights: str
    carried: Count = 0
    numbers: Count = 0
    drawn: dict[str, list[Count]] = {}
    left_out: dict[str, list[Count]] = {}
    source_numbers: Count = 0
    redrawn: Count = 0
    pieces: dict[str, Pieces] = {}
    settings: list[str] = []

    @property
    def lost(self) -> float:
        """The share of the other run's numbers that have no place here."""
        return sum(map(math.prod, self.left_out.values())) / max(1, self.source_numbers)

    def sentences(self) -> Iterator[str]:
        """What to know of it before the first step."""
        share = f"{100 * self.carried / max(1, self.numbers):.1f}"
        text = _("begins with {run} ({checkpoint}, step {step:,}): {share}% of {numbers:,} numbers are carried over")
        values = {"checkpoint": self.checkpoint, "step": self.step, "share": share, "numbers": self.numbers}
        yield text.format(run=self.run, **values)
        if self.drawn:
            yield _("newly drawn: {names}").format(names=", ".join(grouped(self.drawn)))
        if self.left_out:
            text = _("left out: {names}, {share:.2%} of the numbers of {run}")
            yield text.format(names=", ".join(grouped(self.left_out)), share=self.lost, run=self.run)
        if self.redrawn:
            text = _("{number:,} of the numbers carried over are drawn again, at random places (train.redraw)")
            yield text.format(number=self.redrawn)
        for side, pieces in self.pieces.items():
            text = _("pieces of the {side}: {kept:,} kept, {added:,} added, {removed:,} removed")
            yield text.format(side=_(side), **pieces.model_dump())
        if self.settings:
            yield _("settings of the model that differ: {settings}").format(settings=", ".join(self.settings))


def grouped(shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Names with their shapes, those of all layers as one: `encoder.layers.*.norm.bias [64] × 4`."""
    groups = Counter((re.sub(r"\.\d+\.", ".*.", name), tuple(shape)) for name, shape in shapes.items())
    listed = [f"{name} {[*shape]}" + (f" × {n}" if n > 1 else "") for (name, shape), n in groups.items()]
    more = len(listed) - LISTED
    return [*listed[:LISTED], *([_("{number} more").format(number=more)] if more > 0 else [])]
