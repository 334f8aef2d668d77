import math

import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.position.kerple import Kerple

HERE = paddle.arange(5).unsqueeze(0)


def row(*positions):
    return paddle.to_tensor([positions])


def kerple_of(kernel, r1, r2):
    """An encoding whose heads have these numbers."""
    encoding = Kerple(len(r1), kernel)
    encoding.raw1.set_value(np.log(np.expm1(np.array(r1))).astype(str(encoding.raw1.dtype)[7:]))
    r2 = np.array(r2)
    raw2 = np.log(np.expm1(r2)) if kernel == "log" else np.log(r2 / (2 - r2))
    encoding.raw2.set_value(raw2.astype(str(encoding.raw2.dtype)[7:]))
    return encoding


def numbers(encoding):
    """r1 and r2 of each head, as the biases of two distances tell."""
    near, far = (-encoding.bias(row(0), row(d)).numpy().reshape(-1) for d in (1, 2))
    if encoding.kernel == "power":
        return near, np.log2(far / near)
    raise NotImplementedError


@pytest.mark.parametrize("distance", [0, 1, 2, 7, 1000])
def test_known_values(float64, distance):
    log = kerple_of("log", [1.0, 2.0, 0.5], [1.0, 0.5, 3.0]).bias(row(distance), row(0)).numpy().reshape(-1)
    expected = [-math.log(1 + distance), -2 * math.log(1 + distance / 2), -math.log(1 + 3 * distance) / 2]
    np.testing.assert_allclose(log, expected, rtol=1e-12)
    power = kerple_of("power", [1.0, 2.0, 0.5], [1.0, 0.5, 1.5]).bias(row(distance), row(0)).numpy().reshape(-1)
    np.testing.assert_allclose(power, [-distance, -2 * distance**0.5, -0.5 * distance**1.5], rtol=1e-12)


def test_power_one_is_alibi(float64):
    """2205.09921: with r2 = 1 the power kernel is ALiBi."""
    slopes = [0.5, 0.25, 0.125]
    bias = kerple_of("power", slopes, [1.0, 1.0, 1.0]).bias(HERE, HERE).numpy()[0]
    distance = np.abs(np.arange(5)[:, None] - np.arange(5))
    np.testing.assert_allclose(bias, -np.array(slopes)[:, None, None] * distance, atol=1e-12)


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_falls_with_distance_whatever_the_parameters(kernel):
    encoding = Kerple(6, kernel)
    for raw in (-8.0, 0.0, 3.0):
        for parameter in encoding.parameters():
            parameter.set_value(paddle.full_like(parameter, raw))
        bias = encoding.bias(row(0), row(0, 1, 2, 5, 40)).numpy()[0, :, 0]
        assert (bias[:, 0] == 0).all() and (np.diff(bias, axis=1) < 0).all(), raw
    far = encoding.bias(row(0), row(2_000_000)).numpy()
    assert np.isfinite(far).all()


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


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_both_ways_and_of_each_sentence(kernel):
    encoding = Kerple(3, kernel)
    bias = encoding.bias(HERE, HERE).numpy()
    assert bias.shape == (1, 3, 5, 5)
    np.testing.assert_array_equal(bias, bias.transpose(0, 1, 3, 2))
    q, k = paddle.to_tensor([[3], [10]]), paddle.to_tensor([[0, 3, 5], [9, 10, 20]])
    both = encoding.bias(q, k).numpy()
    for b in range(2):
        np.testing.assert_array_equal(both[b : b + 1], encoding.bias(q[b : b + 1], k[b : b + 1]).numpy())
    np.testing.assert_array_equal(encoding.bias(row(103), row(100, 103, 105)).numpy()[0], both[0])


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_gradients(float64, assert_gradients, kernel):
    encoding = Kerple(3, kernel)
    at = row(0, 1, 4, 9)  # a distance of 0 among them
    assert_gradients(lambda: encoding.bias(at, at), encoding.raw1, encoding.raw2)


def test_contract():
    assert Kerple(4).uses() == {"bias"} and Kerple(4).kernel == "log"
    assert not Kerple.per_layer
    assert {name: p.shape for name, p in Kerple(4).named_parameters()} == {"raw1": [4], "raw2": [4]}
    with pytest.raises(ValueError, match="`kernel` must be one of log, power, but is 'cubic'"):
        Kerple(4, kernel="cubic")
