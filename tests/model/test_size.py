"""The parameters that tokens are multiplied with, beside a formula."""

import pytest

from paddle_tfm import build_model
from paddle_tfm.model.size import matrix_parameters, training_flops

DIMENSIONS = ["model.d_model=16", "model.num_heads=2", "model.d_ff=24", "model.encoder_layers=3"]


def size(*overrides, vocabulary=11):
    model = build_model(
        "base", [*DIMENSIONS, *overrides], source_vocabulary=vocabulary, target_vocabulary=vocabulary, seed=1
    )
    return matrix_parameters(model)


def test_it_is_the_matrices_of_both_stacks():
    attention, feed_forward = 4 * 16 * 16, 2 * 16 * 24
    wanted = 3 * (attention + feed_forward) + 2 * (2 * attention + feed_forward)
    assert size() == wanted
    assert size(vocabulary=99) == size("model.position=learned") == size("model.head=tied") == wanted
    assert size("model.norm=batch", "model.norm.decoder=rms") == wanted
    assert size("model.feed_forward=swiglu") == wanted + 5 * 16 * 24


def test_training_takes_six_operations_for_each_parameter_and_token():
    # GPT-3: 174.6 billion parameters, 300 billion tokens, 3.14e23 operations (arXiv:2005.14165, table D.1)
    assert training_flops(174.6e9, 300e9) == pytest.approx(3.14e23, rel=0.001)
