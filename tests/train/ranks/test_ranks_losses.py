"""40 steps of two and of three ranks beside those of one process: `pytest -n 0 -m slow -s tests/train/ranks/test_ranks_losses.py`
prints by how much the losses differ at most, relative to them."""

import pytest
from rank_processes import team, trainer_of

from paddle_tfm_plugins.norm import register_norms

pytestmark = pytest.mark.slow

PLAIN = ["train.optimizer=sgd", "train.schedule={name: constant, learning_rate: 0.05}"]
# Of a position with two tokens these statistics leave ±1, whose gradient is 0 but for rounding, which Adam divides by
# rounding: 7e-5 with it.
DESCENT = {"batch_per_position": PLAIN}
CASES = [
    *([f"model.norm={name}", *DESCENT.get(name, [])] for name in register_norms()),
    ["model.norm={name: power, warmup: 2}"],
    ["model.feed_forward=mixture_of_experts"],
    ["model.feed_forward={name: deepseek_moe, sequence_balance_weight: 0.05, bias_rate: 0.05}"],
    *(["model.norm=batch", f"train.optimizer={name}"] for name in ("adam", "sgd", "lion")),
    ["train.r_drop=1.0"],
    ["train.accumulate=2"],
    ["train.ema=0.9", "train.average=2"],
]


@pytest.fixture(scope="module", params=[2, 3])
def several(registry, request):
    with team(registry, request.param) as rank_0:
        yield rank_0


def losses(others, registry, overrides):
    trainer = trainer_of(registry, "train.steps=40", "evaluate.every=40", *overrides, others=others)
    trainer.run.model.train()
    with trainer.sharded_step(1) as step:
        found = [step(number, trainer.next_batches()).loss for number in range(1, 41)]
        step.rest()
    return found


@pytest.mark.parametrize("overrides", CASES, ids=" ".join)
def test_losses_are_those_of_one_process(registry, several, overrides):
    one, divided = losses(None, registry, overrides), several(losses, overrides)
    difference = max(abs(b - a) / abs(a) for a, b in zip(one, divided, strict=True))
    print(f"\n{difference:.1e} {' '.join(overrides)}")
    assert difference <= 1e-5
