"""One training step and two steps of decoding on a few random tokens: what breaks only when a model is used."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import paddle

from paddle_tfm.data.batches import Batch, collate
from paddle_tfm.data.codec import Encoded
from paddle_tfm.data.vocabulary import BOS, EOS
from paddle_tfm.errors import Problem
from paddle_tfm.language import _
from paddle_tfm.model.initialize import calibrate
from paddle_tfm.model.size import trained_parameters
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.plugin_errors import SHOW_ALL, of_plugin, summary
from paddle_tfm.protocols import Example
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.recipe.settings import ModelSettings
from paddle_tfm.recipe.sites import DECODER_ONLY, ENCODER_ONLY
from paddle_tfm.search.decoding import ModelDecoding
from paddle_tfm.train.step import Step

FIRST_WORD = 4  # the ids before it have meanings of their own
LENGTHS = ((5, 4), (3, 2))  # source and target tokens of each sentence


def first_step(plan: Plan, model: Transformer, vocabulary: int) -> Iterator[Problem]:
    """What goes wrong when `model`, built from `plan` with so many words on both sides, takes one training step
    (forward, loss, backward, update) and decodes two tokens.

    An exception in the code of a plugin is a problem of its component, and so is any other where a plugin takes part.
    What fails without one is our own error, and is raised.
    """
    batch = random_batch(plan.settings.model, vocabulary)
    stage = "a training step"
    try:
        loss = _train(plan, model, batch)
        if not math.isfinite(loss):
            yield Problem(
                "model",
                _("the loss of a first step on random tokens is {loss}, and should be a number").format(loss=loss),
            )
        stage = "a step of decoding"
        _decode(model, batch)
    except Exception as error:
        yield _problem(plan, error, stage)


def random_batch(settings: ModelSettings, vocabulary: int) -> Batch[np.ndarray]:
    """Two sentences of random words and unequal lengths, of a form that a model of this shape learns from."""
    rng = np.random.default_rng(0)
    return collate([random_example(settings, rng, vocabulary, *lengths) for lengths in LENGTHS])


def random_example(
    settings: ModelSettings, rng: np.random.Generator, vocabulary: int, source_length: int, target_length: int
) -> Encoded:
    """A sentence of random words, of a form that a model of this shape learns from."""
    source = _words(rng, min(source_length, settings.max_length), vocabulary)
    target = _words(rng, min(target_length, settings.max_length), vocabulary)
    if settings.shape == DECODER_ONLY:
        source = [EOS]
    if settings.shape == ENCODER_ONLY:  # labels: one for the text, or for each piece before the end
        number = 1 if settings.labels == "sequence" else len(source) - 1
        target = [FIRST_WORD] * number
    return Encoded(Example("", ""), source, source, target, target, ())


def _words(rng: np.random.Generator, length: int, vocabulary: int) -> list[int]:
    return [*rng.integers(FIRST_WORD, vocabulary, length - 1).tolist(), EOS]


def _train(plan: Plan, model: Transformer, batch: Batch[np.ndarray]) -> float:
    settings = plan.settings.train.model_copy(update={"precision": "float32"})  # the others need a GPU
    components, steps = plan.components, settings.steps
    schedule = components["train.schedule"].build(d_model=plan.settings.model.d_model, steps=steps)
    parameters = trained_parameters(model)
    optimizer = components["train.optimizer"].build().create(parameters)
    calibrate(model, batch.tensors())
    model.train()
    return Step(model, parameters, optimizer, schedule, settings, plan.run.seed)(1, [batch]).loss


def _decode(model: Transformer, batch: Batch[np.ndarray]) -> None:
    model.eval()
    with paddle.no_grad():
        tensors, rows = batch.tensors(), len(batch.index)
        memory = model.encode(tensors.source, tensors.source_valid, tensors.copy_ids)
        if model.decoder is None:
            model.head.log_probs(model.label_states(memory), memory)
            return
        decoding = ModelDecoding(model, memory, [2] * rows, list(range(rows)))
        decoding.advance(paddle.full([rows], BOS, "int64"))
        decoding.select(paddle.arange(rows - 1, -1, -1))
        decoding.advance(paddle.full([rows], FIRST_WORD, "int64"))


def _problem(plan: Plan, error: Exception, stage: str) -> Problem:
    plugin_error = of_plugin(error)
    others = plan.plugins_of_others()
    if plugin_error is None and not others:
        raise error
    if plugin_error is None:
        names = ", ".join(f"{part.kind} '{part.name}'" for part in others)
        check = f"`paddle-tfm plugin check {others[0].kind}:{others[0].name}` examines it alone"
        return Problem(others[0].path, f"{stage} with {names} fails: {summary(error)}; {check}")
    sentence = "; ".join(line.strip() for line in str(plugin_error).removesuffix(SHOW_ALL).splitlines())
    paths = [part.path for part in others if plugin_error.cls in (None, part.cls)]
    return Problem(paths[0] if paths else "model", f"{stage} fails: {sentence}")
