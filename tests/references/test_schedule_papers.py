"""Schedules: a number of the first paper, and trials that end in the warm-up."""

import pytest


def test_noam_of_the_paper(registry):
    """1706.03762, section 5.3, base model: d_model 512, 4,000 steps of warmup; the peak is (512 · 4000)^−½ = 7.0e-4."""
    noam = registry.build("schedule", "noam", d_model=512, steps=100_000)
    assert noam(4000) == pytest.approx((512 * 4000) ** -0.5) == pytest.approx(6.988e-4, rel=1e-4)


@pytest.mark.parametrize("name", ["cosine", "wsd"])
def test_a_trial_of_few_steps_may_end_in_the_warmup(registry, name):
    schedule = registry.build("schedule", {"name": name, "peak": 0.3, "warmup": 100}, steps=10)
    assert [schedule(step) for step in range(1, 11)] == pytest.approx([0.003 * step for step in range(1, 11)])
