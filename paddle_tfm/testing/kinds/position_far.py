"""What holds for a positional encoding far from the beginning of a text."""

from __future__ import annotations

import numpy as np

from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.testing.hook_outputs import HEAD_DIM, HEADS, WIDTH, hook_outputs, position_ids
from paddle_tfm.testing.kinds.position import trained
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import CLOSE, Failed, Passed, Result, difference, distance
from paddle_tfm.testing.subject import Subject

COUNT = 8  # positions in a row
NEAR, AFTER = 11, 29
FAR = (300, 1000)  # above 256 bfloat16 holds every second, fourth, … position only
ROUNDINGS = 32  # of an angle in float32
TURNED = "query and key"


@check(
    "position",
    invariant="far from the beginning, at positions 300 and 1,000, neighbours differ and distances count as near it",
    consequence="in long texts words that stand side by side share a position: their order is lost, and only there",
    hint="positions or angles in bfloat16 or float16, as under mixed precision: compute them in float32 or float64, "
    "and cast what comes out",
)
def far_positions(subject: Subject) -> Result:
    for site in subject.site_names:
        size = {"d_model": WIDTH, "num_heads": HEADS, "head_dim": HEAD_DIM, "max_length": max(FAR) + COUNT}
        encoding = subject.build(subject.site(site), **size)
        encoding.eval()
        trained(encoding)
        near, after = _at(encoding, NEAR), _at(encoding, AFTER)
        for offset in FAR:
            try:
                far = _at(encoding, offset)
            except Exception:  # beyond its length it may refuse; `beyond_length` sees how
                break
            where = f"positions {offset} … {offset + COUNT - 1}"
            for hook in far.keys() - {"key"}:
                less, usual = _count(far[hook]), _count(near[hook])
                if 1 < less < usual == COUNT:  # where all are one, its table has ended
                    return Failed(f"{site}: of {where}, two or more get the same ({hook})")
            if TURNED in far and _count(far["query"]) > 1 and distance(near[TURNED], after[TURNED]) <= CLOSE:
                what = (
                    f"{site}: products of turned queries and keys at positions {NEAR} … {NEAR + COUNT - 1}, and {where}"
                )
                if failed := difference(near[TURNED], far[TURNED], what, max(CLOSE, ROUNDINGS * offset * 2.0**-24)):
                    return failed
    return Passed()


def _count(rows: np.ndarray) -> int:
    """How many of the rows [T, …] are different."""
    return len(np.unique(rows.reshape(len(rows), -1).round(5), axis=0))


def _at(encoding: PositionalEncoding, offset: int) -> dict[str, np.ndarray]:
    """What each hook says of positions in a row; of turned queries and keys the products [T, T, H]."""
    positions = position_ids(*range(offset, offset + COUNT))
    outputs = hook_outputs(encoding, positions, positions)
    if "key" in outputs:  # a vector that is turned by its position says nothing: the angle between two does
        outputs[TURNED] = np.einsum("qhd,khd->qkh", outputs["query"], outputs["key"])
    return outputs
