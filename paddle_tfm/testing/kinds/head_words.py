"""What a head owes each word: a probability, and a loss that can be learned from; and the words of the source that the
vocabulary lacks."""

from __future__ import annotations

import numpy as np
import paddle

from paddle_tfm.data.batches import Batch
from paddle_tfm.data.vocabulary import EOS
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, Skip
from paddle_tfm.testing.scene import Scene, real
from paddle_tfm.testing.size import VOCABULARY

IMPOSSIBLE = -1000.0  # nats: floors such as log(1e-30) are above, numbers that rule a word out are below
EXTRA = 2  # words of the first source that the vocabulary lacks
NO_MASS = 1e-6


@check(
    "head",
    invariant="every word may come: each id that a target may hold has a probability, a finite loss and a finite "
    "gradient",
    consequence="one rare word among the targets, and the loss is infinite or 1e9: a step of nothing but that word",
    hint="−inf or −1e9 at an id: only padding and the begin are never targets, the unknown word is one; the logarithm "
    "of a sum that may be 0 (a floor below it); 0 · −inf in a mean over words",
    each_scene=True,
)
def every_word(scene: Scene) -> Result:
    model, batch = scene.model(), scene.batch()
    with paddle.no_grad():
        h, memory = model(batch)
        log_probs = real(model.head.log_probs(h, memory), batch)
    h.stop_gradient = False
    for word in range(EOS, VOCABULARY):
        lowest = float(log_probs[:, word].min())
        if not lowest > IMPOSSIBLE:
            return Failed(f"the word of id {word} of {VOCABULARY} has the log-probability {lowest:.3g}")
    count = VOCABULARY - EOS
    for shift in (0, count // 2):
        every = EOS + (paddle.arange(batch.target_out.size).reshape(batch.target_out.shape) + shift) % count
        target = paddle.where(batch.target_valid, every, batch.target_out)
        for smoothing in (0.0, 0.1):
            losses = model.head.loss(h, target, memory, smoothing)
            (gradient,) = paddle.grad(losses.sum(), h)
            worst = float(losses.abs().max())
            if not (worst < -IMPOSSIBLE and np.isfinite(gradient.numpy()).all()):
                return Failed(
                    f"label smoothing {smoothing}, each word as a target: a loss of {worst:.3g}, or a gradient that is "
                    "not finite"
                )
    return Passed()


def _with_foreign_words(batch: Batch) -> Batch:
    """The first sentence's first two source words are of ids beyond the vocabulary, and so is its first target."""
    copied, target = batch.copy_ids.clone(), batch.target_copy.clone()
    for i in range(min(EXTRA, copied.shape[1])):
        copied[0, i] = VOCABULARY + i
    target[0, 0] = VOCABULARY
    return batch.replace(copy_ids=copied, target_copy=target, extra=EXTRA)


@check(
    "head",
    invariant="words of the source that the vocabulary lacks: a head with `extends_vocabulary` gives each a "
    "probability where the source has it, and any other head goes without them",
    consequence="names that are copied come out as other words, or the first sentence with such a name ends the run",
    hint="`memory.extra` more columns, filled by `memory.copy_ids`; a target's id may be V or more; the source's real "
    "tokens only",
    each_scene=True,
)
def foreign_words(scene: Scene) -> Result:
    model, batch = scene.model(), _with_foreign_words(scene.batch())
    if model.encoder is None:
        return Skip("there is no source to copy from")
    with paddle.no_grad():
        h, memory = model(batch)
        log_probs = model.head.log_probs(h, memory).numpy()
        losses = model.head.loss(h, model.target(batch), memory).numpy()
        step = model.head.step(h[:, :1], memory)[0].numpy()
    extends = model.head.extends_vocabulary
    width = VOCABULARY + EXTRA * extends
    for what, shape in (("log_probs", log_probs.shape), ("step", step.shape)):
        if shape[-1] != width:
            return Failed(
                f"with {EXTRA} words beyond {VOCABULARY}, `{what}` gives {shape[-1]} columns instead of {width}"
            )
    total = np.exp(log_probs[batch.target_valid.numpy()].astype(np.float64)).sum(-1)
    if not np.abs(total - 1).max() < 1e-4:
        return Failed(
            f"with {EXTRA} words beyond the vocabulary, probabilities sum to {total.min():.4g} … {total.max():.4g}"
        )
    if not extends:
        return Passed()
    if not abs(float(losses[0, 0]) + float(log_probs[0, 0, VOCABULARY])) < 1e-3 * max(1.0, abs(float(losses[0, 0]))):
        seen = f"the loss of a copied word beyond the vocabulary is {losses[0, 0]:.4g}"
        return Failed(f"{seen}, its log-probability {log_probs[0, 0, VOCABULARY]:.4g}")
    if not log_probs[0, 0, VOCABULARY] > np.log(NO_MASS):
        return Failed("a word of the source beyond the vocabulary has no probability")
    for row in range(1, log_probs.shape[0]):
        if np.exp(log_probs[row, :, VOCABULARY:]).max() > NO_MASS:
            return Failed("a sentence gives probability to a word beyond the vocabulary that another sentence has")
    return Passed()
