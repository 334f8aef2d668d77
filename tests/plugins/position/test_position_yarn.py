import numpy as np
import paddle
import pytest

from paddle_tfm.api import build_model
from paddle_tfm_plugins.position.rotary import Rotary
from paddle_tfm_plugins.position.yarn import YaRN


def draw(*shape, seed=0):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape))


def scores(encoding, shift=0, factor=1):
    q_positions, k_positions = (paddle.arange(n).unsqueeze(0) * factor + shift for n in (4, 5))
    q, k = encoding.query(draw(2, 3, 4, 8), q_positions), encoding.key(draw(2, 3, 5, 8, seed=1), k_positions)
    return paddle.matmul(q, k, transpose_y=True).numpy()


def test_a_factor_of_one_is_rotary():
    np.testing.assert_allclose(scores(YaRN(8, 512, factor=1.0)), scores(Rotary(8)), atol=1e-9)
    np.testing.assert_allclose(scores(YaRN(8, 512, 1.0, base=50.0)), scores(Rotary(8, 50.0)), atol=1e-9)


def test_pairs_that_never_turn_are_interpolated():
    """Of L = 8 with base 10^6, all pairs but the first turn less than once: positions s times as far apart are the
    trained ones, and scores (1 + 0.1 ln s)² times as high."""
    yarn, rotary = YaRN(8, 32, factor=4.0, base=1e6), Rotary(8, base=1e6)
    np.testing.assert_allclose(yarn.frequency.numpy()[1:], rotary.frequency.numpy()[1:] / 4)
    q, k = draw(1, 1, 1, 8), draw(1, 1, 1, 8, seed=1)
    q[..., :2] = 0.0
    far = yarn.query(q, paddle.to_tensor([[28]])) * yarn.key(k, paddle.to_tensor([[8]]))
    near = rotary.query(q, paddle.to_tensor([[7]])) * rotary.key(k, paddle.to_tensor([[2]]))
    assert float(far.sum()) == pytest.approx(float(near.sum()) * (1 + 0.1 * np.log(4)) ** 2)


@pytest.mark.parametrize("by_turns", [False, True])
@pytest.mark.parametrize("length", [1, 5, 7, 100, 4096])
def test_a_pair_is_slowed_by_no_less_than_a_faster_one(length, by_turns):
    ratio = (
        YaRN(16, 100, 8.0, trained_length=length, by_turns=by_turns).frequency.numpy() / Rotary(16).frequency.numpy()
    )
    assert (np.diff(ratio) <= 1e-12).all() and ratio.max() <= 1.0 + 1e-12 and ratio.min() >= 1 / 8 - 1e-12


def test_the_trained_length_is_the_factors_part_of_the_longest():
    given, own = YaRN(64, 4096, 4.0, trained_length=1024), YaRN(64, 4096, 4.0)
    np.testing.assert_array_equal(given.frequency.numpy(), own.frequency.numpy())
    assert np.abs(own.frequency.numpy() - YaRN(64, 8192, 4.0).frequency.numpy()).max() > 1e-6


def test_contract():
    assert YaRN(4, 64).uses() == {"rotate"} and not YaRN(4, 64).state_dict()
    for options, sentence in (
        ({"factor": 0.5}, "`factor` must be at least 1, but is 0.5"),
        ({"trained_length": 0}, "`trained_length` must be at least 1, but is 0"),
        ({"slow": 0.0}, "`slow` must be positive, but is 0.0"),
        ({"slow": 40.0}, "`fast` must be above `slow`, but 32 is not above 40"),
        ({"base": 1.0}, "`base` must be above 1, but is 1"),
    ):
        with pytest.raises(ValueError) as error:
            YaRN(4, 64, **options)
        assert str(error.value) == sentence
    with pytest.raises(ValueError, match="`head_dim` must be even, but is 7"):
        YaRN(7, 64)


def test_a_model_trained_with_rotary_is_one_with_yarn():
    """They hold the same weights; with a factor of one they compute the same."""
    size = (
        "model.d_model=16",
        "model.num_heads=2",
        "model.d_ff=16",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
    )

    def model(position):
        return build_model("base", [*size, f"model.position={position}"], source_vocabulary=9, target_vocabulary=9)

    trained, outputs = model("rotary"), []
    for position in ("rotary", "{name: yarn, factor: 1.0}", "{name: yarn, factor: 4.0}"):
        other = model(position)
        assert other.state_dict().keys() == trained.state_dict().keys()
        other.set_state_dict(trained.state_dict())
        other.eval()
        outputs.append(other.encode(paddle.to_tensor([[4, 5, 6, 7, 2]]), paddle.ones([1, 5], "bool")).x.numpy())
    np.testing.assert_allclose(outputs[1], outputs[0], atol=1e-6)
    assert np.abs(outputs[2] - outputs[0]).max() > 1e-4
