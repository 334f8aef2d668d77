import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.position.kerple import Kerple


def row(*positions):
    return paddle.to_tensor([positions])


def numbers(encoding):
    """r1 and r2 of each head of the power kernel, as the biases of two distances tell."""
    near, far = (-encoding.bias(row(0), row(d)).numpy().reshape(-1) for d in (1, 2))
    return near, np.log2(far / near)


def test_power_stays_below_two(float64):
    encoding = Kerple(4, "power")
    encoding.raw2.set_value(np.full(4, 12.0))
    assert (numbers(encoding)[1] < 2).all() and (numbers(encoding)[1] > 1.9).all()


@pytest.mark.parametrize("kernel, most1, most2", [("log", 2.0, 1.0), ("power", 1.0, 1.99)])
def test_starts_from_the_range_of_the_authors(float64, kernel, most1, most2):
    paddle.seed(3)
    encoding = Kerple(4000, kernel)
    r1 = np.log1p(np.exp(encoding.raw1.numpy()))
    raw2 = encoding.raw2.numpy()
    r2 = np.log1p(np.exp(raw2)) if kernel == "log" else 2 / (1 + np.exp(-raw2))
    for r, most in ((r1, most1), (r2, most2)):
        assert 0.01 - 1e-9 <= r.min() < 0.02 and most - 0.01 < r.max() <= most + 1e-9
        assert r.mean() == pytest.approx(most / 2, rel=0.05)
    paddle.seed(3)
    np.testing.assert_array_equal(Kerple(4000, kernel).raw1.numpy(), encoding.raw1.numpy())
