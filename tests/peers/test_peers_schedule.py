"""Learning rates beside those of Transformers' schedules."""

import numpy as np
import pytest

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")
STEPS, PEAK = 60, 3e-3


def theirs(name, **options):
    """The rates of steps 1, 2, …: what a scheduler holds after as many calls."""
    schedules = pytest.importorskip("transformers.optimization")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    scheduler = getattr(schedules, name)(optimizer, **options)
    rates = []
    for _ in range(STEPS):
        optimizer.step()
        scheduler.step()
        rates.append(scheduler.get_last_lr()[0])
    return rates


@pytest.mark.parametrize(
    "spec, name, options",
    [
        # Ours reach the floor one step after the run, so that the last step still learns: theirs is asked for one more.
        ({"name": "cosine", "warmup": 10}, "get_cosine_schedule_with_warmup", {"num_warmup_steps": 10, "num_training_steps": STEPS + 1}),
        ({"name": "cosine", "warmup": 10, "floor": PEAK / 4}, "get_cosine_with_min_lr_schedule_with_warmup", {"num_warmup_steps": 10, "num_training_steps": STEPS + 1, "min_lr_rate": 0.25}),
        ({"name": "inverse_sqrt", "warmup": 10}, "get_inverse_sqrt_schedule", {"num_warmup_steps": 10}),
        ({"name": "wsd", "warmup": 10, "decay": 0.25}, "get_wsd_schedule", {"num_warmup_steps": 10, "num_stable_steps": 35, "num_decay_steps": 16, "decay_type": "linear"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_rates_are_those_of_transformers(registry, spec, name, options):
    ours = registry.build("schedule", {**spec, "peak": PEAK}, steps=STEPS, d_model=16)
    rates = [ours(step) for step in range(1, STEPS + 1)]
    assert len(set(rates)) > 10
    np.testing.assert_allclose(rates, theirs(name, **options), rtol=1e-12, atol=0)
