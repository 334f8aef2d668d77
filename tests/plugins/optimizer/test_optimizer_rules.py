"""What every optimizer does beside what the kit asks: where it updates, and what it refuses to load."""

import paddle_tfm  # noqa: F401  before Paddle: it sets the environment that Paddle reads

# isort: split
import numpy as np
import paddle
import pytest
import yaml

from paddle_tfm import create_registry

OPTIMIZERS = ["adam", "adamw", "adafactor", "{name: adafactor, relative: true}", "lion", "radam", "muon"]
OPTIMIZERS += ["normuon", "cautious_adamw", "sgd", "{name: sgd, nesterov: true}", "soap", "schedule_free"]
SHAPES = {  # by names as the engine gives them, so that `muon` finds its matrices
    "encoder.layers.0.self_attention.query.weight": [4, 3],
    "encoder.layers.0.self_attention.query.bias": [3],
    "decoder.layers.1.feed_forward.inner.weight": [2, 5],
    "target_embedding.weight": [6, 3],
    "encoder.positions": [2, 3, 2],
}
every = pytest.mark.parametrize("name", OPTIMIZERS)


@pytest.fixture(scope="module")
def registry():
    return create_registry()


def make(registry, name, dtype="float32"):
    """Parameters with values of their own and the names of a model's, and an optimizer over them."""
    rng = np.random.default_rng(0)
    parameters = []
    for path, shape in SHAPES.items():
        parameter = paddle.create_parameter(shape, dtype)
        parameter.set_value(rng.normal(size=shape).astype(dtype))
        parameter.name = path
        parameters.append(parameter)
    return parameters, registry.build("optimizer", yaml.safe_load(name)).create(parameters)


def step(parameters, optimizer, number, absent=()):
    """One step with random gradients, those of the parameters `absent` left out."""
    for i, parameter in enumerate(parameters):
        if i not in absent:
            rng = np.random.default_rng([number, i])
            parameter.grad = paddle.to_tensor(rng.normal(size=parameter.shape).astype(parameter.numpy().dtype))
    optimizer.set_lr(0.01 * number)
    with paddle.utils.unique_name.guard():  # as the trainer does
        optimizer.step()
    optimizer.clear_grad(set_to_zero=False)


@every
def test_updates_are_made_where_the_parameters_lie(registry, name):
    """Helpers of a shared step read the weights there."""
    parameters, optimizer = make(registry, name)
    before = [parameter.data_ptr() for parameter in parameters]
    for number in (1, 2):
        step(parameters, optimizer, number)
    assert [parameter.data_ptr() for parameter in parameters] == before


@every
def test_a_loaded_state_goes_on_as_the_saved_one(registry, name):
    """Also for a parameter without a gradient before, and one without right after; `lion`'s momentum shows in signs
    that turn, which the kit's do not."""
    whole, optimizer = make(registry, name)
    other, resumed = make(registry, name)
    for number in range(1, 5):
        step(whole, optimizer, number, absent=[3])
    for parameter, value in zip(other, whole):
        parameter.set_value(value)
    resumed.set_state_dict(
        {key: getattr(value, "clone", lambda v=value: v)() for key, value in optimizer.state_dict().items()}
    )
    for number in range(5, 9):
        for parameters, each in ((whole, optimizer), (other, resumed)):
            step(parameters, each, number, absent=[0] if number == 5 else ())
    for a, b in zip(whole, other):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=a.name)


@pytest.mark.parametrize("name", ["adafactor", "muon", "schedule_free"])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda state: state.pop(min(key for key in state if "updates" not in key)), "the optimizer's state has no"),
        (lambda state: state.update(stranger=paddle.zeros([1])), "has 'stranger', which belongs to no parameter"),
    ],
    ids=["lacking", "strange"],
)
def test_the_state_of_something_else_is_refused(registry, name, change, sentence):
    parameters, optimizer = make(registry, name)
    step(parameters, optimizer, 1)
    state = dict(optimizer.state_dict())
    change(state)
    with pytest.raises(ValueError, match=sentence):
        make(registry, name)[1].set_state_dict(state)
