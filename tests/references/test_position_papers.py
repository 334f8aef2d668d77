"""Numbers that papers print of their position encodings."""

import math

import numpy as np
import position_numpy as twins
import pytest
from paper_cases import (
    DECODER,
)


def test_yarn_keeps_the_fastest_pair_and_slows_the_slowest(build, precision):
    """Of Llama 2's heads of 128 channels and 4,096 tokens, s = 16: by the authors' ranges, pairs 0 to 20 stay and those
    from 46 on are slowed sixteen times."""
    spec = {"name": "yarn", "factor": 16.0, "trained_length": 4096}
    encoding, _ = build("position", spec, head_dim=128, max_length=65536)
    theta = 10000.0 ** (-2 * np.arange(64) / 128)
    ratio = encoding.frequency.numpy() / theta
    np.testing.assert_allclose(encoding.frequency.numpy(), twins.yarn_frequencies(128, 16.0, 4096))
    np.testing.assert_allclose(ratio[:21], 1.0)
    np.testing.assert_allclose(ratio[46:], 1 / 16)
    assert (np.diff(ratio[21:46]) < 0).all()
    assert float(encoding.stretch) == pytest.approx(0.1 * math.log(16) + 1)


# ------------------------------------------------------------------------------------------------------ known facts


def slopes(build, precision, heads):
    """The penalty of one step of distance, as our component puts it on the scores."""
    encoding, _ = build("position", "alibi", num_heads=heads, site=DECODER)
    bias = encoding.bias(precision.tensor(np.array([[1]])), precision.tensor(np.array([[0]]))).numpy()
    return -bias.astype(np.float64).reshape(heads)


def test_alibi_slopes_of_8_heads(build, precision):
    halves = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    np.testing.assert_allclose(slopes(build, precision, 8), halves, rtol=1e-7)
