"""Lion: options that are refused."""

import paddle_tfm  # noqa: F401  before Paddle: it sets the environment that Paddle reads

# isort: split
import pytest

from paddle_tfm_plugins.optimizer.lion import Lion


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"beta1": 1.0}, "`beta1` must be in [0, 1), but is 1.0"),
        ({"beta2": -0.1}, "`beta2` must be in [0, 1), but is -0.1"),
        ({"weight_decay": -1.0}, "`weight_decay` must not be negative, but is -1.0"),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(ValueError) as caught:
        Lion(**options)
    assert str(caught.value) == text
