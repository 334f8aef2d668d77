import itertools

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, PositionalEncoding
from paddle_tfm.randomness import random_context
from paddle_tfm_plugins.position.alibi import ALiBi
from paddle_tfm_plugins.position.fire import FIRE
from paddle_tfm_plugins.position.randomized import Randomized
from paddle_tfm_plugins.position.rotary import Rotary
from paddle_tfm_plugins.position.shaw import Shaw
from paddle_tfm_plugins.position.sinusoidal import Sinusoidal
from paddle_tfm_plugins.position.t5 import T5
from paddle_tfm_plugins.position.transformer_xl import TransformerXL

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


RELATIVE = {
    "alibi": lambda: ALiBi(3, ENCODER),
    "t5": lambda: T5(3, ENCODER, buckets=32, max_distance=200),
    "shaw": lambda: Shaw(4, clip=40),
    "transformer_xl": lambda: TransformerXL(12, 3, 4),
}


def drawn_distances(encoding, length=7):
    """The distances of a step, read off ALiBi's first head: [T, T]."""
    at = paddle.arange(length).unsqueeze(0)
    with random_context(5, 3):
        bias = encoding.bias(at, at).numpy()[0, 0]
    return bias / bias_of_one(encoding)


def bias_of_one(encoding):
    return float(encoding.encoding.bias(paddle.zeros([1, 1], "int64"), paddle.ones([1, 1], "int64"))[0, 0, 0, 0])


def test_drawn_distances_are_shared_by_all_pairs_as_far_apart():
    """The authors' noisy relative encodings: sorted indexes of [1, L) by distance, 0 at 0, the same on both sides."""
    encoding = around(ALiBi(3, ENCODER), longest=40, drawn="distances")
    distances = np.rint(drawn_distances(encoding))
    row = distances[0]
    assert row[0] == 0 and (np.diff(row) > 0).all() and row[1] >= 1 and row[-1] < 40 and row[-1] > 6
    apart = np.abs(np.arange(7)[:, None] - np.arange(7))
    np.testing.assert_array_equal(distances, row[apart])
    np.testing.assert_array_equal(encoding.remap(POSITIONS, draws(1)).numpy(), POSITIONS.numpy())
    encoding.eval()
    np.testing.assert_allclose(drawn_distances(encoding), apart * encoding.stride, rtol=1e-5)


@pytest.mark.parametrize("name", RELATIVE)
def test_an_encoding_at_drawn_distances(name):
    """Each pair's term is what the encoding itself gives two tokens that far apart."""
    paddle.seed(2)
    inside, at = RELATIVE[name](), paddle.arange(7).unsqueeze(0)
    row = np.rint(drawn_distances(around(ALiBi(3, ENCODER), longest=40, drawn="distances")))[0].astype(int)
    encoding = around(inside, longest=40, drawn="distances")
    q, k, weights = paddle.randn([2, 3, 7, 4]), paddle.randn([2, 3, 7, 4]), paddle.rand([2, 3, 7, 7])
    with random_context(5, 3):
        bias, scores = encoding.bias(at, at), encoding.scores(q, k, at, at)
        values = encoding.values(weights, at, at)
    assert (bias is not None, scores is not None, values is not None) == tuple(
        way in inside.uses() for way in ("bias", "scores", "values")
    )
    total = 0.0
    for i, j in itertools.product(range(7), range(7)):
        here, there = paddle.zeros([1, 1], "int64"), paddle.to_tensor([[int(np.sign(j - i)) * int(row[abs(j - i)])]])
        if bias is not None:
            np.testing.assert_allclose(
                bias.numpy()[0, :, i, j], inside.bias(here, there).numpy()[0, :, 0, 0], rtol=1e-5
            )
        if scores is not None:
            expected = inside.scores(q[:, :, i : i + 1], k[:, :, j : j + 1], here, there)
            np.testing.assert_allclose(scores.numpy()[:, :, i, j], expected.numpy()[:, :, 0, 0], rtol=1e-4, atol=1e-5)
        if values is not None and i == 2:
            total = total + inside.values(weights[:, :, i : i + 1, j : j + 1], here, there).numpy()[:, :, 0]
    if values is not None:
        np.testing.assert_allclose(values.numpy()[:, :, 2], total, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("inside", [Sinusoidal(4), Rotary(4), FIRE(3), PositionalEncoding()])
def test_distances_are_drawn_for_differences_alone(inside):
    with pytest.raises(ValueError, match="distances can be drawn for an encoding that goes by differences"):
        around(inside, drawn="distances")


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
