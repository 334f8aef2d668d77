import itertools

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, PositionalEncoding
from paddle_tfm.randomness import random_context
from paddle_tfm_plugins.position.alibi import ALiBi
from paddle_tfm_plugins.position.learned import Learned
from paddle_tfm_plugins.position.randomized import Randomized
from paddle_tfm_plugins.position.rotary import Rotary
from paddle_tfm_plugins.position.shaw import Shaw
from paddle_tfm_plugins.position.sinusoidal import Sinusoidal

ENCODER = LayerSite("encoder", "self", 0, 2, 2)
DECODER = LayerSite("decoder", "self", 0, 2, 2)
CROSS = LayerSite("decoder", "cross", 0, 2, 2)
POSITIONS = paddle.arange(5).unsqueeze(0)


def around(encoding, max_length=32, **options):
    return Randomized(encoding, ENCODER, max_length, **options)


def draws(seed):
    return lambda: np.random.default_rng(seed)


class Plus(PositionalEncoding):
    """Adds a constant to positions."""

    def remap(self, positions, draw):
        return positions + 1000


@pytest.mark.parametrize("seed", range(20))
def test_drawn_positions_rise_and_stay_in_the_range(seed):
    drawn = around(Sinusoidal(4), longest=9).remap(POSITIONS, draws(seed))
    assert drawn.dtype == paddle.int64 and drawn.shape == [1, 5]
    assert (np.diff(drawn.numpy()) > 0).all() and drawn.min() >= 0 and drawn.max() < 9


def test_every_choice_is_as_likely():
    """Two of [0, 4): six choices, of which 1,200 draws give each about 200 times."""
    encoding, counts = around(Sinusoidal(4), longest=4), dict.fromkeys(itertools.combinations(range(4), 2), 0)
    for seed in range(1200):
        counts[tuple(encoding.remap(POSITIONS[:, :2], draws(seed)).numpy()[0].tolist())] += 1
    assert min(counts.values()) > 200 - 5 * 13 and max(counts.values()) < 200 + 5 * 13  # 13: the standard deviation


def test_a_draw_is_a_function_of_the_generator():
    encoding = around(Sinusoidal(4), longest=1000)
    first, again, other = (encoding.remap(POSITIONS, draws(seed)).numpy() for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_positions_of_each_sentence_are_mapped_alike():
    encoding = around(Sinusoidal(4), longest=50)
    own = encoding.remap(paddle.to_tensor([[0, 1, 2], [2, 3, 4]]), draws(3)).numpy()
    shared = encoding.remap(POSITIONS, draws(3)).numpy()[0]
    np.testing.assert_array_equal(own, shared[[[0, 1, 2], [2, 3, 4]]])


def test_longer_than_the_range_stays():
    for longest in (5, 3):
        drawn = around(Sinusoidal(4), longest=longest).remap(POSITIONS, draws(1))
        np.testing.assert_array_equal(drawn.numpy(), POSITIONS.numpy())


def test_what_is_inside_maps_on():
    drawn = around(Plus(), longest=9).remap(POSITIONS, draws(1)).numpy()
    np.testing.assert_array_equal(drawn, around(Sinusoidal(4), longest=9).remap(POSITIONS, draws(1)).numpy() + 1000)


@pytest.mark.parametrize("training, stride", [(True, 1), (False, 3)])
def test_each_way_is_the_other_encodings_at_these_positions(training, stride):
    x, q, weights = paddle.randn([2, 5, 4]), paddle.randn([2, 3, 5, 4]), paddle.rand([2, 3, 5, 5])
    at = POSITIONS * stride
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
        if isinstance(inside, ALiBi):  # p + 1 stands a whole stride further
            expected = inside.bias(at, at + stride)
        else:
            expected = way(inside, at)
        np.testing.assert_allclose(way(encoding, POSITIONS).numpy(), expected.numpy(), atol=1e-6)
        assert encoding.uses() == inside.uses() and encoding.per_layer == inside.per_layer
    nothing = around(PositionalEncoding())
    assert nothing.bias(at, at) is None and nothing.scores(q, q, at, at) is None and nothing.values(q, at, at) is None


def test_defaults():
    assert (around(Sinusoidal(4)).longest, around(Sinusoidal(4)).stride) == (32, 1)
    assert (around(Sinusoidal(4), longest=100).longest, around(Sinusoidal(4), longest=100).stride) == (100, 3)
    assert around(Sinusoidal(4), longest=16).stride == 1
    assert around(Sinusoidal(4), longest=100, stride=7).stride == 7


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


@pytest.mark.parametrize("inside", ["sinusoidal", "rotary", "t5", "transformer_xl", "fire"])
def test_a_drawn_step_learns(make_model, make_batch, inside):
    model, batch = make_model(f"model.position={{name: randomized, encoding: {inside}, longest: 300}}"), make_batch()
    model.train()
    optimizer = paddle.optimizer.Adam(learning_rate=3e-3, parameters=model.parameters())
    losses = []
    for step in range(30):
        with random_context(1, step):
            loss = model.loss(batch)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    assert np.isfinite(losses).all() and np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])


def test_contract():
    encoding = around(Learned(4, 32))
    assert [name for name, _ in encoding.named_parameters()] == ["encoding.weight"]
    with pytest.raises(ValueError, match="cross-attention draws no positions"):
        Randomized(Sinusoidal(4), CROSS, 32)
    Randomized(Sinusoidal(4), DECODER, 32)
    for name in ("longest", "stride"):
        with pytest.raises(ValueError, match=f"`{name}` must be at least 1, but is 0"):
            around(Sinusoidal(4), **{name: 0})
