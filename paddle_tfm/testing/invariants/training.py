"""A model with the component runs, gives the same again, in both modes, and keeps shapes."""

from __future__ import annotations

import inspect
import random
from typing import Any

import numpy as np
import paddle
from paddle import nn

from paddle_tfm.data.batches import Batch
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Norm, Placement, PositionalEncoding
from paddle_tfm.testing.backward_line import backward_line
from paddle_tfm.testing.invariants import COMPONENTS, LAYERS, WHOLE_MODEL
from paddle_tfm.testing.models.model_under_test import Dtype, ModelUnderTest
from paddle_tfm.testing.models.scene import Scene, with_log_probs
from paddle_tfm.testing.report import check, line_of
from paddle_tfm.testing.results import CLOSE, Failed, Passed, Result, Skip, difference, wrong_shape

DTYPES: tuple[Dtype, ...] = ("float32", "float64")
BATCH_NORMS = (nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm)


@check(
    *COMPONENTS,
    invariant="a model with it runs, forwards and backwards",
    consequence="nothing else can be checked",
    hint="the error",
    decisive=True,
)
def runs(subject) -> Result:
    if sentence := _cannot_be_called(subject.cls):
        return Failed(sentence, raised=True)
    scene = subject.scenes[0]
    model, batch = scene.model(moved=False), scene.batch()
    loss = model.loss(batch)
    try:
        loss.backward()
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        place = line_of(error) or backward_line(lambda: model.loss(batch))
        return Failed(f"{type(error).__name__}: {text}{place}", raised=True)
    return Passed()


def _cannot_be_called(cls: type) -> str:
    """The first method that takes other arguments than its protocol's, in words; "" if there is none."""
    protocol = next(each for each in cls.__mro__ if each.__module__.startswith("paddle_tfm.protocols."))
    for name, method in vars(protocol).items():
        if not inspect.isfunction(method) or name.startswith("_") or getattr(cls, name) is method:
            continue
        own, its_protocols = inspect.signature(getattr(cls, name)), inspect.signature(method)
        try:
            own.bind(*(each for each in its_protocols.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD))
        except TypeError:
            mine, its = (
                signature.replace(
                    parameters=[each.replace(annotation=each.empty) for each in signature.parameters.values()],
                    return_annotation=signature.empty,
                )
                for signature in (own, its_protocols)
            )
            return f"`{cls.__name__}.{name}{mine}` must take what it is called with: `def {name}{its}`"
    return ""


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
        if np.array_equal(once, again, equal_nan=True):  # what is not finite is for other checks
            continue
        if failed := difference(once, again, f"one batch computed twice in {mode}", tolerance):
            state = mode == "evaluation" and _draws_nothing(model_under_test, batch)
            return Failed(f"{failed.text}; two that are new compute the same" if state else failed.text)
    return Passed()


def _draws_nothing(model_under_test: ModelUnderTest, batch: Batch) -> bool:
    """Whether two new models compute the same though the generators that anybody may use were moved between them."""
    outputs = []
    for count in (1, 2):
        model = model_under_test.model()
        for draw in (lambda: paddle.rand([1]), np.random.random, random.random):
            for _ in range(count):
                draw()
        outputs.append(model_under_test.decoder_outputs(model, batch))
    one, other = outputs
    return difference(one, other, "", CLOSE) is None


def _has_running_statistics(model: nn.Layer) -> bool:
    """Whether a norm says that it has some: then training is another function than evaluation, by design."""
    return any(isinstance(layer, Norm) and layer.momentum is not None for layer in model.sublayers(include_self=True))


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="without dropout, training and evaluation compute the same (except norms with running statistics; "
    "encodings that draw positions are compared without drawing)",
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
    if any(isinstance(layer, BATCH_NORMS) for layer in model.sublayers()):
        return Skip("it has Paddle's BatchNorm")
    batch = model_under_test.batch()
    real = model_under_test.compared_positions(batch)
    training = model_under_test.decoder_outputs(model, batch)[real]
    undrawn = None
    encodings = [layer for layer in model.sublayers() if isinstance(layer, PositionalEncoding)]
    if isinstance(model, Transformer) and any(type(each).remap is not PositionalEncoding.remap for each in encodings):
        with paddle.no_grad():  # outside a training step there is no generator to draw with
            undrawn = with_log_probs(model, *model(batch)).numpy()[real]
    model.eval()
    usual = model_under_test.decoder_outputs(model, batch)[real]
    failed = difference(usual, training, "training")
    if failed and undrawn is not None:
        failed = difference(usual, undrawn, "training, no positions drawn")
    return failed or Passed()


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

        def compare(layer: nn.Layer, inputs: Any, out: Any, problems: list[Failed] = problems) -> Any:
            x = inputs[0]
            if isinstance(x, paddle.Tensor) and isinstance(out, paddle.Tensor):
                name = str(x.dtype).removeprefix("paddle.")
                shape = list(x.shape)
                if isinstance(layer, Placement) and type(layer).leave is not Placement.leave:
                    shape[2:] = out.shape[2:]  # streams between layers may grow (DenseFormer); `leave` ends them
                problem = wrong_shape(out, shape, name, f"the output of {type(layer).__name__}")
                problems += [problem] if problem else []

        for layer in scene.instances(model):
            if layer is not model.head:
                layer.register_forward_post_hook(compare)
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
