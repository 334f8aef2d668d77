"""What holds for a head by itself, and what it owes each word: a probability, and a loss that can be learned from."""

from __future__ import annotations

import numpy as np
import paddle

from paddle_tfm.data.batches import Batch
from paddle_tfm.data.vocabulary import EOS, PAD
from paddle_tfm.testing.models.scene import MIN_LOG_PROB, Scene, real
from paddle_tfm.testing.models.size import FIRST_WORD, VOCABULARY
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, Skip, difference

FIRST_ID = PAD + 1
CHUNKS = ((3, 1, 2), (1, 4))  # tokens fed at once


def _predictions(
    scene: Scene, smoothing: float = 0.0, mode: str = "evaluation", shift: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(log-probabilities [N, V], losses [N], targets [N]) of the real tokens; `shift`: of other targets, so many ids
    further on."""
    model, batch = scene.model(), scene.batch()
    model.head.train() if mode == "training" else model.head.eval()
    with paddle.no_grad():
        h, memory = model(batch)
        target = model.target(batch)
        other = (target - FIRST_ID + shift) % (VOCABULARY - FIRST_ID) + FIRST_ID
        target = paddle.where(target == PAD, target, other)
        log_probs, losses = model.head.log_probs(h, memory), model.head.loss(h, target, memory, smoothing)
    return real(log_probs, batch), real(losses, batch), real(target, batch)


@check(
    "head",
    invariant="probabilities sum to one",
    consequence="scores of hypotheses mean nothing, and perplexity is wrong",
    hint="the axis of the softmax; words that are counted twice or left out",
    each_scene=True,
)
def sums_to_one(scene: Scene) -> Result:
    log_probs, _, _ = _predictions(scene)
    total = np.exp(log_probs.astype(np.float64)).sum(-1)
    worst = float(np.abs(total - 1).max())
    if not worst < 1e-4:
        return Failed(f"Σ exp(log_probs) is between {total.min():.4g} and {total.max():.4g}")
    return Passed()


@check(
    "head",
    invariant="the loss is −log_probs of the target",
    consequence="what is trained is not what is searched",
    hint="`loss` and `log_probs` compute the same distribution; sums where means are meant, and the reverse",
    each_scene=True,
    long=True,
)
def loss_is_log_prob(scene: Scene) -> Result:
    for mode, shift in (("evaluation", 0), ("training", 0), ("evaluation", FIRST_WORD)):
        log_probs, losses, target = _predictions(scene, mode=mode, shift=shift)
        picked = np.take_along_axis(log_probs, target[:, None], -1)[:, 0]
        targets = "special tokens among the targets" if shift else "words as targets"
        if failed := difference(-picked, losses, f"−log_probs of the target, and the loss, in {mode}, {targets}", 1e-4):
            return failed
    return Passed()


@check(
    "head",
    invariant="label smoothing ε gives (1 − ε) of the target's loss and ε of the mean over all words but padding",
    consequence="the smoothed loss rewards something else, padding for instance",
    hint="what the mean runs over, and its weight",
    each_scene=True,
)
def smoothing(scene: Scene) -> Result:
    for mode in ("evaluation", "training"):
        log_probs, losses, target = _predictions(scene, smoothing=0.2, mode=mode)
        picked = np.take_along_axis(log_probs, target[:, None], -1)[:, 0]
        words = np.delete(log_probs[:, :VOCABULARY], PAD, axis=1)
        if failed := difference(-0.8 * picked - 0.2 * words.mean(-1), losses, f"the smoothed loss, in {mode}", 1e-4):
            return failed
    return Passed()


@check(
    "head",
    invariant="a step with several new tokens predicts what follows the last one, and continues as after single steps",
    consequence="a translation that continues a given text follows the wrong word",
    hint="`h[:, -1]`, not `h[:, 0]`, in `step`; a state that takes in all of the tokens",
    each_scene=True,
)
def several_at_once(scene: Scene) -> Result:
    model, batch = scene.evaluated_model, scene.batch()
    everyone = batch.replace(target_valid=paddle.ones_like(batch.target_valid))
    with paddle.no_grad():
        h, memory = model(everyone)
        full = model.head.log_probs(h, memory).clip(min=MIN_LOG_PROB).numpy()
        for chunks in CHUNKS:
            end = 0
            state: tuple[paddle.Tensor, ...] = ()
            for chunk in chunks:
                begin, end = end, min(end + chunk, h.shape[1])
                if begin == end:
                    break
                log_probs, state = model.head.step(h[:, begin:end], memory, state)
                what = f"log-probabilities after tokens {begin + 1} to {end} at once, and of the full pass"
                if failed := difference(full[:, end - 1], log_probs.clip(min=MIN_LOG_PROB).numpy(), what):
                    return failed
    return Passed()


IMPOSSIBLE = -1000.0  # nats: floors such as log(1e-30) are above, numbers that rule a word out are below
EXTRA = 2  # words of the first source that the vocabulary lacks
NO_MASS = 1e-6


@check(
    "head",
    invariant="every word is possible: each id that a target may hold has a probability, a finite loss and a "
    "finite gradient, beside padding too",
    consequence="a rare word among the targets, or a padded row, makes the loss infinite, 1e9 or NaN",
    hint="−inf or −1e9 at an id: only padding and the begin are never targets, the unknown word is one; the logarithm "
    "of a sum that may be 0 (a floor below it); 0 · −inf in a mean over words, or where the target is padding",
    each_scene=True,
)
def every_word(scene: Scene) -> Result:
    model, batch = scene.model(), scene.batch(extra_padding=2)
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
    invariant="source words outside the vocabulary: a head with `extends_vocabulary` gives each a probability "
    "where the source has it; other heads ignore them",
    consequence="copied names become other words, or the first sentence with such a name ends the run",
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
