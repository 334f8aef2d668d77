"""Schedules by the landmarks of their papers."""

import math

import pytest

STEPS, WIDTH = 200, 64


def test_noam_of_the_paper(registry):
    """1706.03762, section 5.3, base model: d_model 512, 4,000 steps of warmup; the peak is (512 · 4000)^−½ = 7.0e-4."""
    noam = registry.build("schedule", "noam", d_model=512, steps=100_000)
    assert noam(4000) == pytest.approx((512 * 4000) ** -0.5) == pytest.approx(6.988e-4, rel=1e-4)
    assert noam(4000) > noam(3999) and noam(4000) > noam(4001)
    assert noam(2000) == pytest.approx(noam(4000) / 2) and noam(16000) == pytest.approx(noam(4000) / 2)


def test_landmarks(registry):
    build = registry.build
    root = build("schedule", {"name": "inverse_sqrt", "peak": 0.003, "warmup": 10}, steps=STEPS)
    assert (root(5), root(10), root(40)) == pytest.approx((0.0015, 0.003, 0.0015))
    cosine = build("schedule", {"name": "cosine", "peak": 1.0, "warmup": 20, "floor": 0.2}, steps=219)
    assert (cosine(20), cosine(120)) == pytest.approx((1.0, 0.6))
    assert cosine(70) == pytest.approx(0.2 + 0.4 * (1 + math.cos(math.pi / 4)))
    assert 0.2 < cosine(219) < 0.2001  # the floor itself would be that of step 220
    wsd = build("schedule", {"name": "wsd", "peak": 1.0, "warmup": 10, "decay": 0.25}, steps=100)
    assert (wsd(5), wsd(10), wsd(42), wsd(75), wsd(88), wsd(100)) == pytest.approx((0.5, 1.0, 1.0, 1.0, 0.5, 1 / 26))
