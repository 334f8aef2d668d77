import itertools

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, PositionalEncoding
from paddle_tfm.randomness import random_context
from paddle_tfm_plugins.position.alibi import ALiBi
from paddle_tfm_plugins.position.randomized import Randomized
from paddle_tfm_plugins.position.rotary import Rotary
from paddle_tfm_plugins.position.shaw import Shaw
from paddle_tfm_plugins.position.sinusoidal import Sinusoidal

ENCODER = LayerSite("encoder", "self", 0, 2, 2)
POSITIONS = paddle.arange(5).unsqueeze(0)


def around(encoding, max_length=32, **options):
    return Randomized(encoding, ENCODER, max_length, **options)


def draws(seed):
    return lambda: np.random.default_rng(seed)


def test_every_choice_is_as_likely():
    """Two of [0, 4): six choices, of which 1,200 draws give each about 200 times."""
    encoding, counts = around(Sinusoidal(4), longest=4), dict.fromkeys(itertools.combinations(range(4), 2), 0)
    for seed in range(1200):
        counts[tuple(encoding.remap(POSITIONS[:, :2], draws(seed)).numpy()[0].tolist())] += 1
    assert min(counts.values()) > 200 - 5 * 13 and max(counts.values()) < 200 + 5 * 13  # 13: the standard deviation


@pytest.mark.parametrize("training", [True, False])
def test_each_way_is_the_other_encodings_at_these_positions(training):
    x, q, weights = paddle.randn([2, 5, 4]), paddle.randn([2, 3, 5, 4]), paddle.rand([2, 3, 5, 5])
    at = POSITIONS * 3
    ways = {
        Sinusoidal(4): lambda e, p: e.embed(x, p),
        Rotary(4): lambda e, p: paddle.stack([e.query(q, p), 2 * e.key(q, p)]),
        ALiBi(3, ENCODER): lambda e, p: e.bias(p, p + 1),
        Shaw(4, clip=4): lambda e, p: e.scores(q, q, p, p),
        Shaw(4, clip=8): lambda e, p: e.values(weights, p, p),
    }
    for inside, way in ways.items():
        encoding = around(inside, stride=3)
        encoding.train() if training else encoding.eval()
        np.testing.assert_array_equal(way(encoding, at).numpy(), way(inside, at).numpy())
        assert encoding.uses() == inside.uses() and encoding.per_layer == inside.per_layer
    nothing = around(PositionalEncoding())
    assert nothing.bias(at, at) is None and nothing.scores(q, q, at, at) is None and nothing.values(q, at, at) is None


def test_a_training_step_is_drawn_for_each_stack_and_evaluation_is_not(make_model, make_batch):
    """In a model: a function of (seed, step), other positions in both stacks, and none drawn outside training."""
    model, batch = make_model("model.position={name: randomized, encoding: sinusoidal, longest: 500}"), make_batch()
    seen = []
    for stack in (model.encoder, model.decoder):
        sinusoid = stack.encodings[0].encoding.sinusoid
        sinusoid.register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0].numpy()[0].tolist()))

    def positions(step):
        seen.clear()
        with paddle.no_grad(), random_context(7, step):
            model.loss(batch)
        return list(seen)

    model.train()
    first, again, second = positions(1), positions(1), positions(2)
    assert first == again and first != second
    source, target = first
    assert len(source) == 5 and len(target) == 6 and source != target[:5]
    assert source == sorted(set(source)) and target == sorted(set(target)) and max(source + target) > 100
    model.eval()
    assert positions(1) == positions(2) == [[15 * p for p in range(5)], [15 * p for p in range(6)]]  # 500 // 32
