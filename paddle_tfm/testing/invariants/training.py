"""A model with the component runs, keeps shapes, registers its parameters and learns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import paddle
from paddle import nn

from paddle_tfm.protocols import Norm, PositionalEncoding
from paddle_tfm.testing.forward_hooks import after_forward
from paddle_tfm.testing.invariants import COMPONENTS, LAYERS, WHOLE_MODEL
from paddle_tfm.testing.model_under_test import Dtype, ModelUnderTest
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import CLOSE, Failed, Passed, Result, Skip, difference, wrong_shape
from paddle_tfm.testing.scene import Scene

DTYPES: tuple[Dtype, ...] = ("float32", "float64")
BATCH_NORMS = (nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm)
NUM_BATCHES = 4  # an expert may have no token in one batch


@check(
    *COMPONENTS,
    invariant="a model with it runs, forwards and backwards",
    consequence="nothing else can be checked",
    hint="the error",
    decisive=True,
)
def runs(subject) -> Result:
    scene = subject.scenes[0]
    scene.model(moved=False).loss(scene.batch()).backward()
    return Passed()


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="a pass computed twice gives the same numbers: in evaluation, and in training without dropout",
    consequence="nothing else can be checked, no run can be repeated, and every result is partly chance",
    hint="draws in `forward`: a functional dropout (its `training` is True by default), noise, an order of a set; an "
    "empty tensor that is not filled; results that pile up in the layer",
    decisive=True,
)
def deterministic(subject) -> Result:
    model_under_test: ModelUnderTest = subject.scenes[0]
    batch = model_under_test.batch()
    for mode in ("evaluation", "training"):
        model = model_under_test.model()
        if mode == "training":
            model.train()
            if _has_running_statistics(model):
                continue
        once, again = (model_under_test.decoder_outputs(model, batch) for _ in range(2))
        tolerance = 0.0 if mode == "evaluation" else CLOSE
        if failed := difference(once, again, f"one batch computed twice in {mode}", tolerance):
            return failed
    return Passed()


def _has_running_statistics(model: nn.Layer) -> bool:
    """Whether a norm says that it has some: then training is another function than evaluation, by design."""
    return any(isinstance(layer, Norm) and layer.momentum is not None for layer in model.sublayers(include_self=True))


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="without dropout, training computes what evaluation computes (but for norms with running statistics, and "
    "positions that are drawn)",
    consequence="what is evaluated is not what was trained",
    hint="what depends on `self.training` besides dropout; a dropout that leaves out its factor 1 / (1 − rate)",
    each_scene=True,
)
def modes(model_under_test: ModelUnderTest) -> Result:
    model = model_under_test.training_model()
    if isinstance(model, Skip):
        return model
    if _has_running_statistics(model):
        return Skip("it has running statistics")
    if any(_draws_positions(layer) for layer in model.sublayers()):
        return Skip("it draws positions in training")
    if any(isinstance(layer, BATCH_NORMS) for layer in model.sublayers()):
        return Skip("it has Paddle's BatchNorm")
    batch = model_under_test.batch()
    real = model_under_test.compared_positions(batch)
    training = model_under_test.decoder_outputs(model, batch)[real]
    model.eval()
    return difference(model_under_test.decoder_outputs(model, batch)[real], training, "training") or Passed()


def _draws_positions(layer: nn.Layer) -> bool:
    return isinstance(layer, PositionalEncoding) and type(layer).remap is not PositionalEncoding.remap


@check(
    *LAYERS,
    invariant="outputs have the shape and dtype of inputs, in float32 and in float64",
    consequence="a sum with the residual would be broadcast, or computed in another precision, without an error",
    hint="the last reshape, and constants or casts with a fixed dtype",
    each_scene=True,
)
def shapes(scene: Scene) -> Result:
    for dtype in DTYPES:
        model, batch = scene.model(dtype, moved=False), scene.batch()
        problems: list[Failed] = []

        def compare(layer: nn.Layer, inputs: tuple, out: object, problems: list[Failed] = problems) -> None:
            x = inputs[0]
            if isinstance(x, paddle.Tensor) and isinstance(out, paddle.Tensor):
                name = str(x.dtype).removeprefix("paddle.")
                problem = wrong_shape(out, x.shape, name, f"the output of {type(layer).__name__}")
                problems += [problem] if problem else []

        for layer in scene.instances(model):
            if layer is not model.head:
                after_forward(layer, compare)
        try:
            h, memory = model(batch)
        except Exception:
            if problems:  # the sum after a wrong shape fails; the shape is what is wrong
                return problems[0]
            raise
        loss = model.head.loss(h, model.target(batch), memory)
        log_probs = model.head.log_probs(h, memory)
        expected = list(batch.target_out.shape)
        last = [
            wrong_shape(h, [*expected, scene.size.d_model], dtype, "the decoder's output"),
            wrong_shape(log_probs[..., 0], expected, None, "log_probs of one word"),
            wrong_shape(loss, expected, None, "the head's loss"),
        ]
        problems += [problem for problem in last if problem]
        if problems:
            return problems[0]
    return Passed()


@check(
    WHOLE_MODEL,
    name="shapes",
    invariant="the model returns logits [B, T, V]",
    consequence="the loss is computed of something else",
    hint="the last layer",
)
def logits(model_under_test: ModelUnderTest) -> Result:
    batch = model_under_test.batch()
    out = model_under_test.decoder_outputs(model_under_test.model(), batch)
    source, target = list(batch.source.shape), list(batch.target_in.shape)
    if out.ndim != 3 or list(out.shape[:2]) != target:
        return Failed(
            f"source {source} and target_in {target} give {list(out.shape)} instead of [{target[0]}, {target[1]}, V]"
        )
    if np.all(out >= 0) and np.allclose(out.sum(-1), 1, atol=1e-3):
        return Failed("rows sum to one: these are probabilities; the cross entropy would take a second softmax")
    return Passed()


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="every parameter is registered, once",
    consequence="what is not registered is not saved, and no optimizer ever sees it: it stays at its initial value",
    hint="layers kept in a plain list, tuple or dict (use nn.LayerList), tensors that should be parameters "
    "(create_parameter), parameters held under two names",
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
    if model_under_test.foreign:
        return Passed()
    names: dict[int, str] = {}
    for name, tensor in model.state_dict().items():
        if id(tensor) in names:
            return Failed(f"{name} and {names[id(tensor)]} are one tensor, saved twice")
        names[id(tensor)] = name
    return Passed()


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
    consequence="a part of it does not learn, or what it computes does not depend on what it holds",
    hint="tensors that went through NumPy, `detach`, `no_grad` or an argmax; parameters that nothing uses",
    each_scene=True,
)
def trains(model_under_test: ModelUnderTest) -> Result:
    model = model_under_test.model(moved=False)
    model.train()
    rng = np.random.default_rng(1)
    with paddle.no_grad():  # a gate that starts at zero lets nothing through in the first step
        for parameter in model.parameters():
            noise = rng.normal(scale=1e-2, size=parameter.shape).astype("float32")
            parameter.set_value(parameter + paddle.to_tensor(noise))
    moved: dict[str, np.ndarray] = {}  # which numbers of a parameter got a gradient in some batch
    for seed in range(NUM_BATCHES):
        model.clear_gradients()
        model_under_test.losses(model, model_under_test.batch(seed=seed))[1].backward()
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                now = parameter.grad.numpy() != 0
                moved[name] = moved[name] | now if name in moved else now
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
    return Failed(next(iter(wrong.values())), tuple(wrong)) if wrong else Passed()


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
