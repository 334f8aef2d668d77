"""The parameters of a model with the component: registered, reached by gradients, and worth training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import paddle
from paddle import nn

from paddle_tfm.testing.invariants import LAYERS, WHOLE_MODEL
from paddle_tfm.testing.models.model_under_test import ModelUnderTest
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result

ONLY_AFTER = "exists only after"
NUM_BATCHES = 4  # an expert may have no token in one batch
FIRST_SEED, NUM_MODELS = 3, 6


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="every parameter is registered, once, and belongs to one model",
    consequence="what is not registered is not saved, and no optimizer ever sees it: it stays at its initial value",
    hint="layers kept in a plain list, tuple or dict (use nn.LayerList), tensors that should be parameters "
    "(create_parameter), parameters held under two names, or made in `forward`",
    each_scene=True,
)
def registered(model_under_test: ModelUnderTest) -> Result:
    model = model_under_test.model(moved=False)
    known = {id(parameter) for parameter in model.parameters()}
    for path, layer in model.named_sublayers(include_self=True):
        for name, parameter in reachable(vars(layer)):
            if id(parameter) not in known:
                where = f"{path}.{name}".strip(".")
                return Failed(f"{where} {list(parameter.shape)} is used, and not among the model's parameters")
        for name, buffer in layer.named_buffers(include_sublayers=False):  # tensors assigned to attributes, too
            if not buffer.stop_gradient:
                where = f"{path}.{name}".strip(".")
                return Failed(f"{where} {list(buffer.shape)} gets a gradient, but is a plain tensor: nothing trains or "
                              f"saves it (create_parameter)")  # fmt: skip
        if several := _one_for_several(layer):
            return Failed(f"{path}: one layer stands at {several} places of it: they have one set of weights")
    before = dict(model.named_parameters())
    model_under_test.outputs(model, model_under_test.batch())
    if late := [name for name, _ in model.named_parameters() if name not in before]:
        return Failed(f"{late[0]} {ONLY_AFTER} a call of `forward`: no optimizer and no checkpoint sees it before")
    if failed := _held_by_nothing(model_under_test):
        return failed
    if model_under_test.foreign:
        return Passed()
    names: dict[int, str] = {}
    for name, tensor in model.state_dict().items():
        if id(tensor) in names:
            return Failed(f"{name} and {names[id(tensor)]} are one tensor, saved twice: hold it in a tuple")
        names[id(tensor)] = name
    for name, tensor in model_under_test.model(moved=False).state_dict().items():
        if id(tensor) in names:
            return Failed(f"{name} is one tensor in two models: an attribute of the class holds it")
    return Passed()


def _held_by_nothing(model_under_test: ModelUnderTest) -> Failed | None:
    """Failed where a step of training uses a parameter that the model does not have: one that its constructor keeps in
    a function, say, or one that is made in the step."""
    made: list[Any] = []
    usual = nn.Parameter.__init__

    def noted(parameter: Any, *args: Any, **kwargs: Any) -> None:
        usual(parameter, *args, **kwargs)
        made.append(parameter)

    with patch.object(nn.Parameter, "__init__", noted):
        model = model_under_test.model(moved=False)
        count = len(made)
        model.train()
        model_under_test.losses(model, model_under_test.batch())[1].backward()
    if made[count:]:
        return Failed(
            f"a parameter {list(made[count].shape)} is made in each pass: it is new each time, and learns nothing"
        )
    known = {id(parameter) for parameter in model.parameters()}
    for parameter in made:
        if parameter.grad is not None and id(parameter) not in known:
            return Failed(
                f"a parameter {list(parameter.shape)} that the constructor makes is used, and no layer holds it"
            )
    return None


def _one_for_several(layer: nn.Layer) -> int:
    """How many places of a list of layers one object with parameters holds; 0: each has its own."""
    if not isinstance(layer, (nn.LayerList, nn.Sequential)):
        return 0
    children = [layer[i] for i in range(len(layer))]
    counts = Counter(id(child) for child in children if child.parameters())
    return max((count for count in counts.values() if count > 1), default=0)


def reachable(value: object, name: str = "", depth: int = 5) -> Iterator[tuple[str, paddle.Tensor]]:
    """(where, parameter) of all trainable tensors inside attributes, lists, tuples, dicts and layers."""
    if depth == 0:
        return
    if isinstance(value, paddle.Tensor):
        if not value.stop_gradient and value.is_leaf:
            yield name, value
    elif isinstance(value, nn.Layer):
        for key, parameter in value.named_parameters():
            yield f"{name}.{key}", parameter
        yield from reachable({k: v for k, v in vars(value).items() if not k.startswith("_")}, name, depth - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in ("_parameters", "_sub_layers", "_buffers"):
                yield from reachable(item, f"{name}.{key}".lstrip("."), depth - 1)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from reachable(item, f"{name}[{i}]", depth - 1)


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="every parameter gets a gradient",
    consequence="a part of it does not learn, or has no effect on the output",
    hint="tensors that went through NumPy, `detach`, `no_grad` or an argmax; parameters that nothing uses; a table "
    "that is fixed on purpose (`stop_gradient = True` of the parameter itself, or a buffer); what is not finite at "
    "padding: 0 · NaN is NaN; experts that no token of a small batch is given to are declared by "
    "name, `trains *experts*`, in `expected_failures`",
    each_scene=True,
)
def trains(model_under_test: ModelUnderTest) -> Result:
    moved: dict[str, np.ndarray] = {}  # which numbers of a parameter got a gradient in some batch
    wrong: dict[str, str] = {}
    for seed in range(NUM_MODELS):  # units of a ReLU may be shut for all of a few tokens: another draw opens them
        model = model_under_test.model(seed=FIRST_SEED + seed, moved=False)
        model.train()
        rng = np.random.default_rng(1 + seed)
        with paddle.no_grad():  # a gate that starts at zero lets nothing through in the first step
            for parameter in model.parameters():
                noise = rng.normal(scale=1e-2, size=parameter.shape).astype("float32")
                parameter.set_value(parameter + paddle.to_tensor(noise))
        if failed := _note_gradients(model_under_test, model, moved):
            return failed
        wrong = _without_gradient(model_under_test, model, moved)
        if not wrong:
            return Passed()
    return Failed(next(iter(wrong.values())), tuple(wrong))


def _note_gradients(model_under_test: ModelUnderTest, model: nn.Layer, moved: dict[str, np.ndarray]) -> Failed | None:
    """Add to `moved` which numbers get a gradient in a few batches; Failed where one is not finite."""
    for seed in range(NUM_BATCHES):
        model.clear_gradients()
        model_under_test.losses(model, model_under_test.batch(seed=seed))[1].backward()
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                if not np.isfinite(parameter.grad.numpy()).all():
                    return Failed(f"the gradient of {name} {list(parameter.shape)} is not finite")
                now = parameter.grad.numpy() != 0
                moved[name] = moved[name] | now if name in moved else now
    return None


def _without_gradient(
    model_under_test: ModelUnderTest, model: nn.Layer, moved: dict[str, np.ndarray]
) -> dict[str, str]:
    """Parameter -> what of it gets no gradient, in words."""
    wrong = {}
    for name, parameter in model.named_parameters():
        if model_under_test.foreign and parameter.stop_gradient:
            continue
        if name not in moved:
            wrong[name] = f"no gradient reaches {name} {list(parameter.shape)}"
        elif not moved[name].any():
            if parameter.ndim > 1 or not name.endswith("bias"):  # softmax forgets a key's bias
                wrong[name] = f"the gradient of {name} {list(parameter.shape)} is zero"
        elif part := _idle_part(moved[name]):
            wrong[name] = f"{part} of {name} {list(parameter.shape)} get no gradient: nothing uses them"
    return wrong


def _idle_part(moved: np.ndarray) -> str:
    """Which part of a parameter no gradient reaches, "16 of 32 columns"; "" where there is none. A part is a block at
    either end, of at least a quarter: hidden units that ReLU shuts off lie scattered. Rows of a matrix do not count:
    those of a table are tokens or distances, which a few batches need not hold."""
    if moved.ndim > 1:
        axis = 1 if moved.ndim == 2 else 0  # of more axes the others may be a table too
        used = np.asarray(np.moveaxis(moved, axis, 0).reshape(moved.shape[axis], -1).any(1))
        idle = int(used.size - used.sum())
        if 4 * idle >= used.size > idle and (used[idle:].all() or used[: used.size - idle].all()):
            return f"{idle} of {used.size} {'columns' if moved.ndim == 2 else f'slices of axis {axis}'}"
    return ""


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="training lowers the loss",
    consequence="it learns nothing, or too slowly to be of use",
    hint="scales and signs; what is lost on the way from the input to the output; initial values; a softmax in the "
    "model and another in the loss",
)
def learns(subject) -> Result:
    model_under_test: ModelUnderTest = subject.scenes[0]
    model, batch, steps = model_under_test.model(moved=False), model_under_test.batch(), model_under_test.steps
    model.train()
    optimizer = paddle.optimizer.Adam(learning_rate=model_under_test.learning_rate, parameters=model.parameters())
    history = []
    for _ in range(steps):
        cross_entropy, loss = model_under_test.losses(model, batch)
        history.append(float(cross_entropy) / batch.tokens)
        (loss / batch.tokens).backward()
        optimizer.step()
        optimizer.clear_grad()
    if not history[-1] < model_under_test.loss_ratio * history[0]:
        return Failed(f"{steps} steps of Adam on one batch: {history[0]:.3g} nats a token, then {history[-1]:.3g}")
    return Passed()
