"""Every optimizer follows the factor of a parameter's learning rate (`Initializer.rate_factor`)."""

import numpy as np
import paddle
import pytest

from paddle_tfm import create_registry

NAMES = [entry.name for entry in create_registry() if entry.kind == "optimizer" and not entry.wrong_on_purpose]
SHAPES = {"encoder.layers.0.feed_forward.inner.weight": [4, 3], "encoder.layers.0.feed_forward.inner.bias": [3]}


def trained(registry, name, rate, factor):
    rng, parameters = np.random.default_rng(0), []
    for path, shape in SHAPES.items():
        parameter = paddle.create_parameter(shape, "float32")
        parameter.set_value(rng.normal(size=shape).astype("float32"))
        parameter.name, parameter.optimize_attr["learning_rate"] = path, factor
        parameters.append(parameter)
    optimizer = registry.build("optimizer", name).create(parameters)
    optimizer.set_lr(rate)
    for _ in range(4):
        slopes = [paddle.to_tensor(rng.normal(size=shape).astype("float32")) for shape in SHAPES.values()]
        sum((parameter * slope).sum() for parameter, slope in zip(parameters, slopes)).backward()
        with paddle.utils.unique_name.guard():
            optimizer.step()
        optimizer.clear_grad()
    return [parameter.numpy() for parameter in parameters]


@pytest.mark.parametrize("name", NAMES)
def test_the_rate_of_a_parameter_is_multiplied_by_its_factor(registry, name):
    start = trained(registry, name, 0.0, 1.0)
    for moved, ours, expected in zip(
        start, trained(registry, name, 0.02, 0.25), trained(registry, name, 0.005, 1.0), strict=True
    ):
        assert not np.allclose(moved, ours, atol=1e-4)
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-7)
