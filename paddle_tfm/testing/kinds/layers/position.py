"""What holds for a positional encoding by itself, and in a one-layer model."""

from __future__ import annotations

from functools import partial

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.testing.adapters.layers import OrdinaryEncoding
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.hook_outputs import (
    HEAD_DIM,
    HEADS,
    WIDTH,
    hook_outputs,
    noise,
    outputs_by_position,
    position_ids,
    terms,
    trained,
    two_alike,
)
from paddle_tfm.testing.models.scene import default_dtype, encoder_output
from paddle_tfm.testing.models.size import FIRST_WORD, MAX_LENGTH, Size
from paddle_tfm.testing.models.word_orders import word_orders
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip, difference, distance, relative_distance

MAX_SIZE_RATIO = 3.0  # how many times the size of a token what is added to it may have
TEXT = 24  # words
BEYOND = 500  # a position beyond the length for which an encoding is made here
MIN_EFFECT = 1e-9  # of the largest output in float64, where rounding leaves 1e-15


def encoding_of(subject: ComponentUnderTest, prefer: str = "") -> PositionalEncoding:
    encoding = subject.build(subject.site(prefer), d_model=WIDTH, num_heads=HEADS, head_dim=HEAD_DIM)
    encoding.eval()
    return encoding


@check(
    "position",
    invariant="a pure function of positions: which other positions come with one, in which order and how many, "
    "changes nothing",
    consequence="cached decoding, where one position comes at a time, gives other numbers than training",
    hint="arange over a tensor's length; tables cut to the length at hand; positions read from anywhere but the "
    "argument",
)
def pure(subject: ComponentUnderTest) -> Result:
    for site in subject.site_names:
        encoding = encoding_of(subject, site)
        if failed := _others_count(encoding, 0):
            return failed
        try:
            failed = _others_count(encoding, BEYOND)
        except Exception:  # beyond its length it may refuse; `beyond_length` sees how
            failed = None
        if failed:
            return failed
        if failed := _rows_differ(encoding, paddle.concat([position_ids(*range(6)), position_ids(4, 5, 8, 9, 15, 30)])):
            return failed
    return Passed()


def _others_count(encoding: PositionalEncoding, first: int) -> Failed | None:
    """Failed where some of twelve positions from `first` on are others by themselves than among all of them."""
    some = [7, 3, 4, 9]
    subset, every = position_ids(*(first + i for i in some)), position_ids(*range(first, first + 12))
    together = hook_outputs(encoding, every, every)
    alone, last = hook_outputs(encoding, subset, every), hook_outputs(encoding, position_ids(first + 11), every)
    pairs = [("key", some, hook_outputs(encoding, subset, subset))] if "key" in together else []
    pairs += [(hook, some, alone) for hook in together if hook != "key"]
    pairs += [(hook, [11], last) for hook in together if hook != "key"]
    for hook, indices, outputs in pairs:
        what = f"{hook} of positions {[first + i for i in indices]}, alone and among {first} … {first + 11}"
        if failed := difference(together[hook][indices], outputs[hook], what):
            return failed
    return None


def _rows_differ(encoding: PositionalEncoding, positions: Tensor) -> Failed | None:
    """Failed where positions of their own for each sentence [B, T] are not those of each sentence."""
    x, q, k = noise(4, 2, 6, WIDTH), noise(5, 2, HEADS, 6, HEAD_DIM), noise(6, 2, HEADS, 6, HEAD_DIM)
    weights = F.softmax(noise(7, 2, HEADS, 6, 6), -1)

    def outputs(rows: slice) -> dict[str, Tensor]:
        at = positions[rows]
        return terms(encoding, x[rows], q[rows], k[rows], weights[rows], at, at)

    with paddle.no_grad():
        together, *separate = (outputs(rows) for rows in (slice(0, 2), slice(0, 1), slice(1, 2)))
    for hook, output in together.items():
        alone = np.concatenate([each[hook].numpy() for each in separate])
        whole = np.broadcast_to(output.numpy(), alone.shape)
        if failed := difference(whole, alone, f"{hook} with positions of their own for each sentence"):
            return failed
    return None


@check(
    "position",
    invariant="different positions give different numbers",
    consequence="the model cannot tell where a word stands: one vector was added to all, or to none",
    hint="indexing by `positions`; a table filled for one position only; broadcasting over the time axis",
)
def positions_differ(subject: ComponentUnderTest) -> Result:
    encoding = encoding_of(subject)
    if not encoding.uses():
        return Failed("it does nothing: it overrides none of embed, query and key, bias, scores, values")
    trained(encoding)
    rows = outputs_by_position(encoding, TEXT)
    if pair := two_alike(rows):
        return Failed(
            f"of positions 0 … {TEXT - 1}, two or more get the same from all its hooks ({', '.join(rows)}): "
            f"{pair[0]} and {pair[1]}, say"
        )
    if encoding.uses() & {"embed", "rotate"}:  # what belongs to one position; a distance may be clipped
        rows = outputs_by_position(encoding, MAX_LENGTH)
        whole = np.concatenate(list(rows.values()), 1).round(5)
        if len(np.unique(whole, axis=0)) < MAX_LENGTH:
            return Failed(
                f"of positions 0 … {MAX_LENGTH - 1}, two or more get the same from all its hooks ({', '.join(rows)})"
            )
    return Passed()


@check(
    "position",
    invariant="order matters: a sentence with two words exchanged is another sentence",
    consequence="the model sees a bag of words",
    hint="whether the encoding reaches the scores or the embeddings at all, and tells more than the first position",
)
def order_matters(subject: ComponentUnderTest) -> Result:
    size = Size(WIDTH, HEADS, 16, 1, 1, (TEXT,), (TEXT,))
    words = np.arange(FIRST_WORD, FIRST_WORD + TEXT)
    for site in subject.site_names:
        if site.endswith("cross"):
            continue
        with default_dtype("float64"):
            model = subject.make(subject.settings(size, subject.at([site])), vocabulary=FIRST_WORD + TEXT)
        model.eval()
        for encoding in model.sublayers():
            if isinstance(encoding, subject.cls):
                trained(encoding)
        usual, effects = _output(model, site, words), []
        for order in word_orders(TEXT):
            stays = order == np.arange(TEXT)
            if not site.startswith("encoder"):  # only behind those that moved are all of them seen
                stays[: int(np.flatnonzero(~stays)[-1])] = False
            effects.append(relative_distance(usual[stays], _output(model, site, words[order])[stays]))
        if max(effects) < MIN_EFFECT:
            return Failed(
                f"{site}: words of a text of {TEXT} exchanged or shuffled in {len(effects)} ways, the outputs of those "
                "that stay in their places are the same"
            )
    return Passed()


def _output(model: Transformer, site: str, text: np.ndarray) -> np.ndarray:
    """What the stack of this site makes of a text [T]: [T, C]."""
    ids, valid = paddle.to_tensor(text).unsqueeze(0), paddle.ones([1, len(text)], dtype="bool")
    with paddle.no_grad():
        if site.startswith("encoder"):
            return encoder_output(model.encode(ids, valid)).numpy()[0]
        same = paddle.to_tensor(np.sort(text)).unsqueeze(0)  # in the encoder, whatever the order is
        return model.decode(ids, model.start(model.encode(same, valid)))[0].numpy()[0]


@check(
    "position",
    invariant="an encoder tells before from after: positions mirrored are other positions, but to a bias by distances",
    consequence="“dog bites man” and “man bites dog” look the same from the verb",
    hint="the distance's absolute value; buckets or a table for one direction only",
)
def direction(subject: ComponentUnderTest) -> Result:
    if "encoder.self" not in subject.site_names:
        return Skip("it does not stand in an encoder")
    encoding = encoding_of(subject, "encoder.self")
    trained(encoding)
    forward, backward = position_ids(*range(8)), position_ids(*range(7, -1, -1))
    usual, mirrored = hook_outputs(encoding, forward, forward), hook_outputs(encoding, backward, backward)
    for outputs in (usual, mirrored):
        if "key" in outputs:  # rotated by its position, a vector says nothing: the angle between two does
            outputs["rotate"] = np.einsum("qhd,khd->qkh", outputs.pop("query"), outputs.pop("key"))
    if any(distance(usual[hook], mirrored[hook]) >= 1e-5 for hook in usual):
        return Passed()
    if encoding.uses() == {"bias"}:  # ALiBi of an encoder, and most biases by distances after it
        return Note("both directions are alike to it: by distances alone, words before are not told from words after")
    return Failed("positions 0 … 7 and 7 … 0 are the same to it")


@check(
    "position",
    invariant="positions drawn for training stand in the order of the text",
    consequence="the training texts lose their word order, and the model learns none",
    hint="`remap`: sort what was drawn",
)
def in_order(subject: ComponentUnderTest) -> Result:
    if subject.cls.remap is PositionalEncoding.remap:
        return Skip("it draws no positions")
    for site in subject.site_names:
        encoding = encoding_of(subject, site)
        encoding.train()
        for seed in range(8):
            positions = encoding.remap(position_ids(*range(8)), partial(np.random.default_rng, seed)).numpy()
            if (np.diff(positions) <= 0).any():
                return Failed(f"{site}: positions 0 … 7 become {', '.join(map(str, positions[0].tolist()))}")
    return Passed()


@check(
    "position",
    invariant="the vector added to a token is not much larger than the token's own",
    consequence="positions drown words: all tokens look alike",
    hint="`+ sqrt(d_model)` where `* sqrt(d_model)` was meant; the scale of a table's initial values",
)
def magnitude(subject: ComponentUnderTest) -> Result:
    encoding = encoding_of(subject)
    if "embed" not in encoding.uses():
        return Skip("it adds nothing to the embeddings")
    x = noise(6, 4, 20, WIDTH)  # tokens of size 1, as with embeddings times sqrt(d_model)
    with paddle.no_grad():
        added = encoding.embed(x, position_ids(*range(20))) - x
    ratio = float((added * added).mean().sqrt() / (x * x).mean().sqrt())
    if ratio > MAX_SIZE_RATIO:
        return Failed(f"what is added is {ratio:.1f} times as large as the tokens")
    if isinstance(encoding, OrdinaryEncoding) and encoding.factor(x) > 1:
        return Note("it multiplies tokens by sqrt(d_model) itself, which a recipe leaves to `model.scale_embedding`")
    return Passed()


@check(
    "position",
    invariant="with rotated queries and keys, scores depend on distances only, and at distance 0 are those without a "
    "rotation",
    consequence="the same words at another place of the text get other scores",
    hint="the sign of the rotation of keys; both rotated by their own position; the same frequencies for both; each "
    "channel turned once, and what does not turn kept",
)
def relative(subject: ComponentUnderTest) -> Result:
    encoding = encoding_of(subject)
    if "rotate" not in encoding.uses():
        return Skip("it rotates nothing")
    q, k = noise(7, 1, HEADS, 1, HEAD_DIM), noise(8, 1, HEADS, 1, HEAD_DIM)

    def score(i: int, j: int) -> np.ndarray:
        with paddle.no_grad():
            return (encoding.query(q, position_ids(i)) * encoding.key(k, position_ids(j))).sum(-1).numpy()

    for i, j in ((3, 1), (9, 2), (5, 5)):
        what = f"the score of positions {i} and {j}, and 11 further on"
        if failed := difference(score(i, j), score(i + 11, j + 11), what, 1e-4):
            return failed
    if distance(score(3, 1), score(9, 1)) < 1e-5:
        return Failed("scores do not depend on the distance")
    return _loses(encoding) or Passed()


def _loses(encoding: PositionalEncoding) -> Failed | None:
    """Failed where at distance 0 products of turned queries and keys are not those of what was turned, times one
    number. What bends a vector besides turning it is no rotation."""
    q, k = noise(9, 1, HEADS, TEXT, HEAD_DIM), noise(10, 1, HEADS, TEXT, HEAD_DIM)
    here = position_ids(*[3] * TEXT)
    with paddle.no_grad():
        turned = encoding.query(q, here)
        if distance(encoding.query(q + k, here).numpy(), (turned + encoding.query(k, here)).numpy()) > 1e-4:
            return None
        before, after = (q * k).sum(-1).numpy(), (turned * encoding.key(k, here)).sum(-1).numpy()  # [1, H, T]
    factor = (before * after).sum() / (before * before).sum()
    return difference(before * factor, after, "at distance 0, products before and after the rotation", 1e-4)
