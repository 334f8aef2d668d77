"""Initial values: options that are refused."""

import pytest

from paddle_tfm_plugins.initializer.gpt2 import GPT2
from paddle_tfm_plugins.initializer.mup import MuP
from paddle_tfm_plugins.initializer.normal import Normal
from paddle_tfm_plugins.initializer.uniform import Uniform


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: GPT2(std=-1.0), "`std` must be positive, but is -1.0"),
        (lambda: MuP(8, base_width=0), "`base_width` must be positive, but is 0"),
        (lambda: Normal(std=0.0), "`std` must be positive, but is 0.0"),
        (lambda: Uniform(low=0.1, high=0.1), "`low` must be below `high`, but 0.1 is not below 0.1"),
    ],
)
def test_bad_options(make, text):
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == text
