"""What holds for a positional encoding by itself, and in a one-layer model."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.model.build import build
from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.recipe.model_plan import plan_model
from paddle_tfm.testing.laws import apart, demand_same
from paddle_tfm.testing.report import Failed, NotHere, Seen, check
from paddle_tfm.testing.subject import MAX_LENGTH, VOCABULARY, Size, Subject

WIDTH, HEADS, HEAD_DIM = 16, 2, 8
FAR = 4 * MAX_LENGTH
LOUD = 3.0  # how many times the size of a token what is added to it may have


def _alone(subject: Subject, prefer: str = "") -> PositionalEncoding:
    made = subject.build(subject.site(prefer), d_model=WIDTH, num_heads=HEADS, head_dim=HEAD_DIM)
    made.eval()
    return made


def _at(*positions: int) -> Tensor:
    return paddle.to_tensor([list(positions)], dtype="int64")


def _noise(seed: int, *shape: int) -> Tensor:
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))


def ways(encoding: PositionalEncoding, at: Tensor, look_at: Tensor) -> dict[str, np.ndarray]:
    """All that an encoding does for queries at positions `at` [1, T] and keys at `look_at`, with the time axes of each
    result first: what stands at a position must depend on that position alone."""
    queries, keys = at.shape[1], look_at.shape[1]
    uses, found = encoding.uses(), {}
    with paddle.no_grad():
        same_q = _noise(1, 1, HEADS, 1, HEAD_DIM).expand([1, HEADS, queries, HEAD_DIM])
        same_k = _noise(2, 1, HEADS, 1, HEAD_DIM).expand([1, HEADS, keys, HEAD_DIM])
        if "embed" in uses:
            x = _noise(3, 1, 1, WIDTH).expand([1, queries, WIDTH])
            found["embed"] = encoding.embed(x, at).numpy()[0]
        if "rotate" in uses:
            found["query"] = encoding.query(same_q, at).numpy()[0].transpose(1, 0, 2)
            found["key"] = encoding.key(same_k, at if keys == queries else look_at).numpy()[0].transpose(1, 0, 2)
        if "bias" in uses:
            found["bias"] = _pairs(encoding.bias(at, look_at), queries, keys)
        if "scores" in uses:
            found["scores"] = _pairs(encoding.scores(same_q, same_k, at, look_at), queries, keys)
        if "values" in uses:
            weights = paddle.full([1, HEADS, queries, keys], 1.0 / keys)
            found["values"] = encoding.values(weights, at, look_at).numpy()[0].transpose(1, 0, 2)
    return found


def _pairs(term: Tensor, queries: int, keys: int) -> np.ndarray:
    """[B|1, H|1, Tq, Tk] → [Tq, Tk, H]."""
    return np.broadcast_to(term.numpy()[0], (term.shape[1], queries, keys)).transpose(1, 2, 0)


@check(
    "position",
    law="a pure function of positions: other positions beside it, their order and their number change nothing",
    means="cached decoding, where one position comes at a time, gives other numbers than training",
    look="arange over a tensor's length; tables cut to the length at hand; positions read from anywhere but the argument",
)
def pure(subject: Subject) -> None:
    for place in subject.places:
        encoding = _alone(subject, place)
        whole = ways(encoding, _at(*range(12)), _at(*range(12)))
        chosen = [7, 3, 4, 9]
        some = ways(encoding, _at(*chosen), _at(*range(12)))
        last = ways(encoding, _at(11), _at(*range(12)))
        for way in whole:
            if way == "key":
                continue
            demand_same(whole[way][chosen], some[way], f"{way} of positions {chosen}, alone and among 0 … 11")
            demand_same(whole[way][11:], last[way], f"{way} of position 11, alone and among 0 … 11")
        if "key" in whole:
            keys = ways(encoding, _at(*chosen), _at(*chosen))["key"]
            demand_same(whole["key"][chosen], keys, f"keys of positions {chosen}, alone and among 0 … 11")
        both = paddle.concat([_at(*range(6)), _at(*range(4, 10))])
        _rows(encoding, both)


def _rows(encoding: PositionalEncoding, both: Tensor) -> None:
    """Positions given for each sentence [B, T] are those of each sentence."""
    if "embed" in encoding.uses():
        x = _noise(4, 2, 6, WIDTH)
        with paddle.no_grad():
            together = encoding.embed(x, both).numpy()
            each = [encoding.embed(x[i : i + 1], both[i : i + 1]).numpy()[0] for i in range(2)]
        demand_same(together, np.stack(each), "embed with positions of their own for each sentence")
    if "bias" in encoding.uses():
        with paddle.no_grad():
            together = encoding.bias(both, both).numpy()
            each = [encoding.bias(both[i : i + 1], both[i : i + 1]).numpy()[0] for i in range(2)]
        demand_same(
            np.broadcast_to(together, (2, *each[0].shape)), np.stack(each), "bias with positions for each sentence"
        )


@check(
    "position",
    law="different positions look different",
    means="the model cannot tell where a word stands: one vector was added to all, or to none",
    look="indexing by `positions`; a table filled for one position only; broadcasting over the time axis",
)
def positions_differ(subject: Subject) -> None:
    encoding = _alone(subject)
    if not encoding.uses():
        raise Failed("it does nothing: it overrides none of embed, query and key, bias, scores, values")
    _trained(encoding)
    told = []
    for way, found in ways(encoding, _at(*range(8)), _at(*range(8))).items():
        rows = found.reshape(len(found), -1)
        near = min(float(np.abs(rows[i] - rows[j]).max()) for i in range(8) for j in range(i))
        told.append((way, near))
    if max(near for _, near in told) < 1e-5:
        raise Failed(f"of positions 0 … 7, two or more get the same ({', '.join(way for way, _ in told)})")


def _trained(encoding: PositionalEncoding) -> None:
    """Parameters as after some training: not at an initial zero."""
    rng = np.random.default_rng(12)
    for parameter in encoding.parameters():
        drawn = rng.normal(scale=0.2, size=parameter.shape).astype("float32")
        parameter.set_value(parameter + paddle.to_tensor(drawn))


@check(
    "position",
    law="order matters: a sentence with two words exchanged is another sentence",
    means="the model sees a bag of words",
    look="whether the encoding reaches the scores or the embeddings at all",
)
def order_matters(subject: Subject) -> None:
    size = Size(WIDTH, HEADS, 16, 1, 1, (6,), (6,))
    for place in subject.places:
        if place.endswith("cross"):
            continue
        model = build(plan_model(subject.settings(size, subject.at([place])), subject.registry), VOCABULARY, VOCABULARY)
        model.eval()
        for encoding in model.sublayers():
            if isinstance(encoding, subject.cls):
                _trained(encoding)
        tokens, turned = paddle.to_tensor([[4, 5, 6, 7, 8, 9]]), paddle.to_tensor([[5, 4, 6, 7, 8, 9]])
        valid = paddle.ones([1, 6], dtype="bool")
        with paddle.no_grad():
            if place.startswith("encoder"):
                found = [model.encode(ids, valid).x.numpy()[:, -1] for ids in (tokens, turned)]
            else:
                memory = model.encode(tokens, valid)
                found = [model.decode(ids, model.start(memory))[0].numpy()[:, -1] for ids in (tokens, turned)]
        if apart(*found) < 1e-6:
            raise Failed(f"{place}: the first two words exchanged, the last position's output is the same")


@check(
    "position",
    law="an encoder tells before from after: positions mirrored are other positions",
    means="“dog bites man” and “man bites dog” look the same from the verb",
    look="the distance's absolute value; buckets or a table for one direction only",
)
def direction(subject: Subject) -> None:
    if "encoder.self" not in subject.places:
        raise NotHere("it does not stand in an encoder")
    encoding = _alone(subject, "encoder.self")
    _trained(encoding)
    there, back = _at(*range(8)), _at(*range(7, -1, -1))
    found, mirrored = ways(encoding, there, there), ways(encoding, back, back)
    for each in (found, mirrored):
        if "key" in each:  # turned by its position, a vector says nothing: the angle between two does
            each["rotate"] = np.einsum("qhd,khd->qkh", each.pop("query"), each.pop("key"))
    if all(apart(found[way], mirrored[way]) < 1e-5 for way in found):
        raise Failed("positions 0 … 7 and 7 … 0 are the same to it")


@check(
    "position",
    law="positions drawn for training stand in the order of the text",
    means="in training words have no order, and the model learns none",
    look="`remap`: sort what was drawn",
)
def in_order(subject: Subject) -> None:
    if subject.cls.remap is PositionalEncoding.remap:
        raise NotHere("it draws no positions")
    for place in subject.places:
        encoding = _alone(subject, place)
        encoding.train()
        for seed in range(8):
            rng = np.random.default_rng(seed)
            found = encoding.remap(_at(*range(8)), lambda rng=rng: rng).numpy()
            if (np.diff(found) <= 0).any():
                raise Failed(f"{place}: positions 0 … 7 become {', '.join(map(str, found[0].tolist()))}")


@check(
    "position",
    law="what is added to a token is not much louder than the token",
    means="positions drown words: all tokens look alike",
    look="`+ sqrt(d_model)` where `* sqrt(d_model)` was meant; the scale of a table's initial values",
)
def magnitude(subject: Subject) -> None:
    encoding = _alone(subject)
    if "embed" not in encoding.uses():
        raise NotHere("it adds nothing to the embeddings")
    x = _noise(6, 4, 20, WIDTH)  # tokens of size 1, as with embeddings times sqrt(d_model)
    with paddle.no_grad():
        added = encoding.embed(x, _at(*range(20))) - x
    ratio = float((added * added).mean().sqrt() / (x * x).mean().sqrt())
    if ratio > LOUD:
        raise Failed(f"what is added is {ratio:.1f} times as large as the tokens")


@check(
    "position",
    law="with rotated queries and keys, scores depend on distances only",
    means="the same words at another place of the text get other scores",
    look="the sign of the rotation of keys; both rotated by their own position; the same frequencies for both",
)
def relative(subject: Subject) -> None:
    encoding = _alone(subject)
    if "rotate" not in encoding.uses():
        raise NotHere("it rotates nothing")
    q, k = _noise(7, 1, HEADS, 1, HEAD_DIM), _noise(8, 1, HEADS, 1, HEAD_DIM)

    def score(i: int, j: int) -> np.ndarray:
        with paddle.no_grad():
            return (encoding.query(q, _at(i)) * encoding.key(k, _at(j))).sum(-1).numpy()

    for i, j in ((3, 1), (9, 2), (5, 5)):
        demand_same(score(i, j), score(i + 11, j + 11), f"the score of positions {i} and {j}, and 11 further on", 1e-4)
    if apart(score(3, 1), score(9, 1)) < 1e-5:
        raise Failed("scores do not depend on the distance")


@check(
    "position",
    law="a bias does not grow with distance without end",
    means="the farthest word gets all attention, more so the longer the text is",
    look="the sign of the slope; which of the two positions is subtracted from which",
)
def nearness(subject: Subject) -> None:
    told = None
    for place in subject.places:
        encoding = _alone(subject, place)
        if "bias" not in encoding.uses():
            raise NotHere("it has no bias")
        with paddle.no_grad():
            bias = encoding.bias(_at(2000), _at(*range(0, 2001, 50)))
        rows = np.broadcast_to(bias.numpy()[0], (bias.shape[1], 1, 41))[:, 0]
        told = float((rows[:, 0] - rows[:, -1]).max())
        if told > 30.0:
            raise Failed(f"{place}: a key 2,000 positions away gets a score {told:.0f} higher than the nearest one")


@check(
    "position",
    law="beyond the trained length the behaviour is clear: finite numbers, or a refusal in words",
    means="a long sentence ends in a crash, or in NaN",
    look="indices beyond a table (clip them, and say so), functions of the position that overflow",
)
def beyond_length(subject: Subject) -> None:
    for place in subject.places:
        encoding = _alone(subject, place)
        positions = _at(*range(0, FAR, 3))
        try:
            found = ways(encoding, positions, positions)
        except ValueError as error:
            if "InvalidArgument" in str(error) or "[Hint" in str(error):  # Paddle's, of an operator
                raise Failed(
                    f"{place}: positions up to {FAR} (max_length {MAX_LENGTH}) end in an error of Paddle's"
                ) from None
            raise Seen(f"beyond {MAX_LENGTH} positions it refuses: {error}") from None
        for way, numbers in found.items():
            if not np.isfinite(numbers).all():
                raise Failed(f"{way} is not finite at positions up to {FAR} (max_length {MAX_LENGTH})")
