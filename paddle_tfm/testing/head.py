"""What holds for a head, and for initial values."""

from __future__ import annotations

import math

import numpy as np
import paddle

from paddle_tfm.data.vocabulary import PAD
from paddle_tfm.model.build import build
from paddle_tfm.recipe.model_plan import plan_model
from paddle_tfm.testing.laws import demand_same
from paddle_tfm.testing.report import Failed, Seen, check
from paddle_tfm.testing.subject import VOCABULARY, Scene, Size, Subject, batch


def _both(scene: Scene, smoothing: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(log-probabilities [N, V], losses [N], targets [N]) of the real tokens."""
    model, given = scene.model(), scene.batch()
    with paddle.no_grad():
        h, memory = model(given)
        target = model.target(given)
        parts = model.head.log_probs(h, memory), model.head.loss(h, target, memory, smoothing), target
    return tuple(part.numpy()[given.target_valid.numpy()] for part in parts)


@check(
    "head",
    law="probabilities sum to one",
    means="scores of hypotheses mean nothing, and perplexity is wrong",
    look="the axis of the softmax; words that are counted twice or left out",
    each_scene=True,
)
def sums_to_one(scene: Scene) -> None:
    log_probs, _, _ = _both(scene)
    total = np.exp(log_probs.astype(np.float64)).sum(-1)
    worst = float(np.abs(total - 1).max())
    if not worst < 1e-4:
        raise Failed(f"Σ exp(log_probs) is between {total.min():.4g} and {total.max():.4g}")


@check(
    "head",
    law="the loss is −log_probs of the target",
    means="what is trained is not what is searched",
    look="`loss` and `log_probs` compute the same distribution; sums where means are meant, and the reverse",
    each_scene=True,
)
def loss_is_log_prob(scene: Scene) -> None:
    log_probs, losses, target = _both(scene)
    picked = np.take_along_axis(log_probs, target[:, None], -1)[:, 0]
    demand_same(-picked, losses, "−log_probs of the target, and the loss", 1e-4)


@check(
    "head",
    law="label smoothing ε gives (1 − ε) of the target's loss and ε of the mean over all words but padding",
    means="the smoothed loss rewards something else, padding for instance",
    look="what the mean runs over, and its weight",
    each_scene=True,
)
def smoothing(scene: Scene) -> None:
    log_probs, losses, target = _both(scene, smoothing=0.2)
    picked = np.take_along_axis(log_probs, target[:, None], -1)[:, 0]
    words = np.delete(log_probs[:, :VOCABULARY], PAD, axis=1)
    demand_same(-0.8 * picked - 0.2 * words.mean(-1), losses, "the smoothed loss", 1e-4)


@check(
    "head",
    law="the loss is finite wherever the target is padding",
    means="0 × inf is NaN: one padded row ends the training",
    look="the loss of rows whose target is padding",
    each_scene=True,
)
def padded_targets(scene: Scene) -> None:
    model, given = scene.model(), scene.batch(extra_padding=2)
    with paddle.no_grad():
        h, memory = model(given)
        for share in (0.0, 0.1):
            if not np.isfinite(model.head.loss(h, model.target(given), memory, share).numpy()).all():
                raise Failed(f"label smoothing {share}: a loss at padding is not finite")


# ------------------------------------------------------------------------------------------------------- initial values


@check(
    "initializer",
    law="at the start the loss is about log V: the model has no opinion yet",
    means="training first has to undo the initial values; deep models never recover",
    look="the scale of matrices: variance about 1 / width; U(−1, 1) is far too wide",
)
def initial_loss(subject: Subject) -> None:
    size = Size(64, 4, 256, 4, 4, (9,) * 8, (9,) * 8)
    model = build(plan_model(subject.settings(size, subject.spec), subject.registry), 200, 200)
    model.eval()
    given = batch(size)
    with paddle.no_grad():
        loss = float(model.loss(given)) / given.tokens
    if not abs(loss - math.log(200)) < 1.5:
        raise Failed(f"{loss:.2f} nats a token, where log V is {math.log(200):.2f} (4+4 layers, d_model 64, V 200)")
    raise Seen(f"{loss:.2f} nats a token, log V is {math.log(200):.2f}")


@check(
    "initializer",
    law="values belong to the parameter's path: two parameters of one shape start differently, and no matrix is constant",
    means="parts that should learn different things start alike",
    look="draws from `rng`, nothing else",
)
def differing_values(subject: Subject) -> None:
    model = build(subject.settings(Size(16, 2, 24, 2, 2, (3,), (3,)), subject.spec), subject.registry, 13, 13)
    seen: dict[bytes, str] = {}
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            continue
        value = parameter.numpy()
        if not np.isfinite(value).all() or np.ptp(value) == 0:
            raise Failed(f"{name} is {value.flat[0]:.3g} all over")
        key = value.tobytes()
        if key in seen:
            raise Failed(f"{name} and {seen[key]} start with the same values")
        seen[key] = name
