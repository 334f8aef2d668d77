"""The number of weights of the gated feed-forward sublayer."""

from paddle_tfm_plugins.feed_forward.relu import ReLU
from paddle_tfm_plugins.feed_forward.swiglu import SwiGLU


def test_equal_parameters_means_as_many_weights_as_two_matrices():
    def weights(feed_forward):
        return sum(parameter.size for parameter in feed_forward.parameters())

    two = weights(ReLU(64, 256, bias=False))
    assert SwiGLU(d_model=64, d_ff=256, equal_parameters=True).output.weight.shape == [170, 64]
    assert 0.99 * two < weights(SwiGLU(d_model=64, d_ff=256, bias=False, equal_parameters=True)) <= two
    assert weights(SwiGLU(d_model=64, d_ff=256, bias=False)) == 1.5 * two
