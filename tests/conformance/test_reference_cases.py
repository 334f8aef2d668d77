"""What a component is compared at: widths, depths and options where formulas differ that are one elsewhere."""

import pytest
from catalogue import build, source, wrong

from paddle_tfm import create_registry
from paddle_tfm.testing import FAIL, PASS, with_class
from paddle_tfm.testing.reference.compared import Reference

ROTARY = """import numpy as np


def attend(q, k, v, allowed, fraction=1.0):
    at, width = np.arange(len(q)), int(q.shape[1] * fraction)
    angle = at[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)

    def turn(x):
        turned = (x[:, 0:width:2] + 1j * x[:, 1:width:2]) * np.exp(1j * angle)
        return np.concatenate([np.stack([turned.real, turned.imag], -1).reshape(len(x), width), x[:, width:]], 1)

    scores = np.where(allowed, turn(q) @ turn(k).T / q.shape[1] ** 0.5, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True) @ v
"""
EXPONENTS = [  # of 4 channels, each is i / 2
    'paddle.arange(0, head_dim, 2).astype("float64") / 4',
    'paddle.arange(0, head_dim, 2).astype("float64") / (2 * head_dim - 4)',
    'paddle.arange(0, head_dim, 2).astype("float64") ** 2 / (2 * head_dim)',
]
USUAL = 'paddle.arange(0, head_dim, 2).astype("float64") / head_dim'
SCALED = """import numpy as np


def forward(x, sublayers, norm, layers):
    for f in sublayers:
        x = x + f(norm(x)) / layers
    return x
"""


def outcome_of(cls, tmp_path, text):
    registry, file = create_registry(), tmp_path / "formula.py"
    file.write_text(text, encoding="utf-8")
    return Reference(str(file), *with_class(registry, cls), {}, registry).outcome()


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_exponents_that_four_channels_do_not_tell_apart_are_seen(exponent, tmp_path):
    assert outcome_of(build(source("rotary"), "rotary"), tmp_path, ROTARY).status == PASS
    cls = build(wrong("rotary", "an exponent", USUAL, exponent, "reference").source(), "rotary")
    outcome = outcome_of(cls, tmp_path, ROTARY)
    assert outcome.status == FAIL and "positions 0 … 4, attention: at" in outcome.detail, outcome.detail


def test_an_option_that_the_reference_asks_for_is_tried_at_other_values(tmp_path):
    """While all channels turn, both are the same."""
    was, becomes = "frequencies(self.width, base)", "frequencies(head_dim, base)[: self.width // 2]"
    right, broken = (
        outcome_of(build(text, "position/rotary"), tmp_path, ROTARY)
        for text in (source("position/rotary"), source("position/rotary").replace(was, becomes))
    )
    assert right.status == PASS
    assert broken.status == FAIL and broken.detail.startswith("with fraction 0.5, encoder.self"), broken.detail
    not_asked = ROTARY.replace(", fraction=1.0", "").replace(" * fraction", "")
    assert (
        outcome_of(
            build(source("position/rotary").replace(was, becomes), "position/rotary"), tmp_path, not_asked
        ).status
        == PASS
    )


@pytest.mark.parametrize(("scale", "status"), [("self.depth", PASS), ("(2 * self.depth) ** 0.5", FAIL)])
def test_a_depth_at_which_powers_of_it_differ_is_tried(scale, status, tmp_path):
    """Where there are two layers, N and sqrt(2 N) are one number."""
    text = source("pre").replace(
        "    final_norm = True\n",
        "    final_norm = True\n\n    def __init__(self, *, sites, **parent):\n"
        "        super().__init__(sites=sites, **parent)\n        self.depth = sites[0].depth\n",
    )
    text = text.replace("self.drops[i](sublayer(normed))", f"self.drops[i](sublayer(normed)) / {scale}")
    outcome = outcome_of(build(text, "pre"), tmp_path, SCALED)
    assert outcome.status == status, outcome.detail


ALIBI = """import numpy as np


def bias(q_positions, k_positions, num_heads):
    slopes = 2.0 ** (-8.0 * np.arange(1, num_heads + 1) / num_heads)
    return -slopes[:, None, None] * np.abs(q_positions[:, None] - k_positions)
"""
RISING = """
def forward(step, warmup):
    return 1e-3 * min(step / warmup, (warmup / step) ** 0.5)
"""


def test_positions_that_lie_far_apart_are_tried_where_the_reference_asks_for_them(tmp_path):
    was = "(q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).abs()"
    edit = wrong("alibi", "a distance that ends at 100", was, f"{was}.clip(max=100)", "reference")
    assert outcome_of(build(source("alibi"), "alibi"), tmp_path, ALIBI).status == PASS
    outcome = outcome_of(build(edit.source(), "alibi"), tmp_path, ALIBI)
    assert outcome.status == FAIL and "positions 0 … 1500, bias" in outcome.detail, outcome.detail


def test_a_long_run_is_tried(tmp_path):
    was, becomes = "(self.warmup / step)", "(self.warmup / min(step, 1000))"
    edit = wrong("schedule", "a rate that stays from step 1,000 on", was, becomes, "reference")
    assert outcome_of(build(source("schedule"), "schedule"), tmp_path, RISING).status == PASS
    outcome = outcome_of(build(edit.source(), "schedule"), tmp_path, RISING)
    assert outcome.status == FAIL and "of 20000" in outcome.detail, outcome.detail
