"""What every optimizer does beside what the kit asks: where it updates, what it refuses to load, and a run
resumed in the trainer."""

import paddle_tfm  # noqa: F401  before Paddle: it sets the environment that Paddle reads

# isort: split
import numpy as np
import paddle
import pytest
import yaml

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.data.vocabulary import PAD
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.train.run import create
from paddle_tfm.train.trainer import Interrupted, Trainer

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


def values(parameters):
    return [parameter.numpy().copy() for parameter in parameters]


@every
def test_updates_are_made_where_the_parameters_lie(registry, name):
    """Helpers of a shared step read the weights there."""
    parameters, optimizer = make(registry, name)
    before = [parameter.data_ptr() for parameter in parameters]
    for number in (1, 2):
        step(parameters, optimizer, number)
    assert [parameter.data_ptr() for parameter in parameters] == before


@every
def test_loading_does_not_tie_two_optimizers(registry, name):
    parameters, optimizer = make(registry, name)
    step(parameters, optimizer, 1)
    state = {key: value for key, value in optimizer.state_dict().items() if hasattr(value, "numpy")}
    twins, other = make(registry, name)
    for twin, parameter in zip(twins, parameters):
        twin.set_value(parameter)
    other.set_state_dict(state)
    for number in (2, 3):
        step(twins, other, number)
    again, third = make(registry, name)
    step(again, third, 1)
    for number in (2, 3):
        step(parameters, optimizer, number)
        step(again, third, number)
    for a, b in zip(values(parameters), values(again)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "name", ["adafactor", "lion", "radam", "muon", "normuon", "cautious_adamw", "sgd", "soap", "schedule_free"]
)
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


# ---------------------------------------------------------------------------------------------------- in the trainer

TINY = [
    "task={name: reverse, symbols: 5, min_length: 2, max_length: 4, train: 60, valid: 4, test: 4}",
    "model.d_model=8", "model.num_heads=2", "model.d_ff=12", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.dropout=0.1", "train.max_tokens=8", "train.steps=7", "evaluate.every=3",
    "evaluate.metrics=[perplexity]", "evaluate.best=perplexity",
    "train.schedule={name: inverse_sqrt, peak: 3e-3, warmup: 4}",
    "model.feed_forward={encoder: {name: mixture_of_experts, experts: 12, top_k: 1}, decoder: relu}",
]  # fmt: skip
STOPPED = 2


def trainer(registry, name, folder):
    plan = plan_run(load_recipe("base", [*TINY, f"train.optimizer={name}"]).runs()[0], registry)
    run = create(plan, folder, load_corpus(plan))
    return Trainer(run, registry.plugins)


@pytest.mark.reliability
@every
def test_a_resumed_run_equals_an_uninterrupted_one(registry, name, tmp_path):
    """To the bit, with experts that have had no token before the interruption, or have none right after it."""
    whole, has_gradient = trainer(registry, name, tmp_path / "whole"), []
    parameters, optimizer_step = whole.step.parameters, whole.step.optimizer.step

    def watched_step():
        has_gradient.append([parameter.grad is not None for parameter in parameters])
        optimizer_step()

    whole.step.optimizer.step = watched_step
    whole.train()
    before, after = np.any(has_gradient[:STOPPED], 0), np.any(has_gradient[STOPPED:], 0)
    assert np.any(~before & after) and np.any(before & ~np.array(has_gradient[STOPPED]))
    first = trainer(registry, name, tmp_path / "parts")
    first.stop = lambda: first.run.step >= STOPPED
    with pytest.raises(Interrupted):
        first.train()
    second = trainer(registry, name, tmp_path / "parts")
    second.train(resume=True)
    for a, b in zip(parameters, second.step.parameters):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=a.name)
    logs = [(tmp_path / part / "metrics.jsonl").read_text() for part in ("whole", "parts")]
    assert logs[0] == logs[1]
    table = whole.run.model.target_embedding.weight.numpy()
    assert not table[PAD].any() and table[PAD + 1 :].any(1).all()  # the embedding of padding stays zero
