"""Adam: all parameters in one call."""

import numpy as np
import paddle

from paddle_tfm_plugins.optimizer.adam import Adam


def test_all_parameters_are_updated_in_one_call(monkeypatch, rng):
    calls, real = [], paddle._C_ops.merged_adam_
    monkeypatch.setattr(
        paddle._C_ops, "merged_adam_", lambda *arguments: calls.append(len(arguments[0])) or real(*arguments)
    )
    parameters = [paddle.create_parameter(shape, "float32") for shape in ([3, 4], [4], [2, 3, 2])]
    before, optimizer = [parameter.numpy().copy() for parameter in parameters], Adam().create(parameters)
    for parameter in parameters:
        parameter.grad = paddle.to_tensor(rng.normal(size=parameter.shape).astype("float32"))
    optimizer.set_lr(0.1)
    optimizer.step()
    assert calls == [3] and not any(
        np.array_equal(parameter.numpy(), old) for parameter, old in zip(parameters, before)
    )
