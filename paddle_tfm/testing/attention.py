"""What holds for an attention by itself: what it looks at, and how softly."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.errors import RecipeError
from paddle_tfm.protocols import KeyValue, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm.testing.laws import apart, demand_same
from paddle_tfm.testing.probe import Probe
from paddle_tfm.testing.report import Failed, NotHere, check
from paddle_tfm.testing.subject import Subject, open_gates

LENGTH = 32  # keys
TOO_SHARP = 0.4  # Σ weight²: 1 is all on one key
TOO_SOFT = 1.02  # the same, times LENGTH: 1 is the same for all keys


class Alone:
    """An attention with weights that keep variances (normal, of variance 1 / fan-in), looking from one text at another."""

    def __init__(self, subject: Subject, d_model: int = 32, num_heads: int = 2, site: str = "decoder.cross"):
        self.site = subject.site(site)
        self.offset = 0
        self.rng = np.random.default_rng(5)
        self.attention = subject.build(self.site, d_model=d_model, num_heads=num_heads)
        self.attention.eval()
        redraw(self.attention, self.rng)
        open_gates(self.attention, self.rng)
        self.x = self.normal(1, LENGTH, d_model)
        self.source = self.x if self.site.sublayer == "self" else self.normal(1, LENGTH, d_model)
        self.encoding = PositionalEncoding()

    def normal(self, *shape: int) -> Tensor:
        return paddle.to_tensor(self.rng.normal(size=shape).astype("float32"))

    def info(self, x: Tensor) -> TokenInfo:
        positions = paddle.arange(self.offset, self.offset + x.shape[1], dtype="int64").unsqueeze(0)
        return TokenInfo(self.encoding, positions, paddle.ones(x.shape[:2], dtype="bool"))

    def project(self, source: Tensor):
        with paddle.no_grad():
            return self.attention.project(source, self.info(source))

    def __call__(self, x: Tensor, kv, keys: int = LENGTH) -> np.ndarray:
        """[B, T, C]; only the first `keys` keys may be seen."""
        info = self.info(x)
        valid = (paddle.arange(LENGTH) < keys).expand([x.shape[0], LENGTH])
        there = paddle.arange(self.offset, self.offset + LENGTH, dtype="int64").unsqueeze(0)
        mask = Mask(info.positions, there, valid, self.site.causal, self.encoding)
        with paddle.no_grad():
            return self.attention(x, kv, info, mask, Tap()).numpy()


def redraw(layer: nn.Layer, rng: np.random.Generator) -> None:
    """Matrices normal with variance 1 / fan-in; vectors stay."""
    for parameter in layer.parameters():
        if parameter.ndim > 1 and not getattr(parameter, "keep_initial", False):
            drawn = rng.normal(size=parameter.shape) / np.sqrt(parameter.shape[0])
            parameter.set_value(drawn.astype("float32"))


def _key_value(alone: Alone) -> KeyValue:
    kv = alone.project(alone.source)
    if not isinstance(kv, KeyValue):
        raise NotHere(f"it keeps {type(kv).__name__} instead of keys and values")
    return kv


@check(
    "attention",
    law="the output depends on the queries' text, on the keys and on the values",
    means="it does not attend: it looks at the wrong text, or at nothing",
    look="which input each projection gets: keys and values come from `source`, queries from `x`",
)
def looks(subject: Subject) -> None:
    alone = Alone(subject)
    kv = alone.project(alone.source)
    out = alone(alone.x, kv)
    elsewhere = alone.project(alone.normal(*alone.source.shape))
    if differs(out, alone(alone.x, elsewhere)) < 1e-3:
        raise Failed("another text to look at changes nothing")
    if differs(out, alone(alone.normal(*alone.x.shape), kv)) < 1e-3:
        raise Failed("other queries change nothing")
    if isinstance(kv, KeyValue):
        noise = paddle.to_tensor(alone.rng.normal(size=kv.key.shape).astype("float32"))
        if differs(out, alone(alone.x, KeyValue(noise, kv.value))) < 1e-3:
            raise Failed("other keys change nothing")
        noise = paddle.to_tensor(alone.rng.normal(size=kv.value.shape).astype("float32"))
        if differs(out, alone(alone.x, KeyValue(kv.key, noise))) < 1e-3:
            raise Failed("other values change nothing")


@check(
    "attention",
    law="in an encoder it looks both ways: a text turned around gives the same, turned around, where positions are not told",
    means="what follows a word is not seen, or seen otherwise than what precedes it",
    look="a causal mask where the whole text should be seen (`mask.causal`); a window without the distance's absolute value; weights of its own for each direction, by design: declare it",
)
def both_ways(subject: Subject) -> None:
    if "encoder.self" not in subject.places:
        raise NotHere("it does not stand in an encoder")
    alone = Alone(subject, site="encoder.self")
    turned = alone.x.flip([1])
    found = alone(turned, alone.project(turned))[:, ::-1]
    demand_same(alone(alone.x, alone.project(alone.x)), found, "a text, and the same text turned around", 1e-4)


def differs(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference as a share of the largest number, however small that is."""
    return float(np.abs(a - b).max() / max(1e-30, np.abs(a).max()))


@check(
    "attention",
    law="weights sum to one: where all values are equal, the output is the same for every query",
    means="the size of the output depends on how much there is to look at",
    look="softmax over the keys (the last axis), after the mask and not before it; nothing that scales weights afterwards",
)
def averages(subject: Subject) -> None:
    alone = Alone(subject)
    kv = _key_value(alone)
    same = KeyValue(kv.key, kv.value[:, :, :1].expand(kv.value.shape))
    out, fewer = alone(alone.x, same), alone(alone.x, same, keys=LENGTH // 2)
    demand_same(out, np.broadcast_to(out[:, :1], out.shape), "all values equal: outputs of different queries", 1e-4)
    demand_same(out, fewer, "all values equal: outputs with half of the keys hidden", 1e-4)


@check(
    "attention",
    law="the output is linear in the values: heads look up side by side, none looks at what another found",
    means="heads are chained, or something bends the values: it is another function than attention",
    look="the loop over heads: every head gets the same query; nothing nonlinear after the lookup",
)
def values(subject: Subject) -> None:
    alone = Alone(subject)
    kv = _key_value(alone)
    other = paddle.to_tensor(alone.rng.normal(size=kv.value.shape).astype("float32"))
    zero, one, two, both = (
        alone(alone.x, KeyValue(kv.key, value))
        for value in (paddle.zeros_like(kv.value), kv.value, other, kv.value + other)
    )
    demand_same(both - zero, (one - zero) + (two - zero), "out(v + w) against out(v) + out(w)", 1e-4)


@check(
    "attention",
    law="every way of an encoding that it says it honours (`supports`) acts, and by distances where the encoding does",
    means="an encoding that users combine with it does nothing, or something else",
    look="queries and keys both through `info.encoding`, with their own positions; the mask's bias; the terms of scores and "
    "values",
)
def honours(subject: Subject) -> None:
    alone = Alone(subject)
    geometry = subject.cls.geometry(32, 2, **{key: value for key, value in subject.spec.items() if key != "name"})
    bare = []
    for alone.offset in (0, 7):
        bare.append(alone(alone.x, alone.project(alone.source)))
    by_distances = apart(*bare) < 1e-4  # weights of its own may belong to places in the text
    for way in sorted(subject.cls.supports - {"embed"}):
        found = []
        for alone.offset in (0, 7):
            alone.encoding = Probe(geometry.score_heads, geometry.head_dim, [way])
            found.append(alone(alone.x, alone.project(alone.source)))
        if apart(bare[0], found[0]) < 1e-4:
            raise Failed(f"it accepts encodings that act through {way}, and one changes nothing")
        if by_distances:
            demand_same(*found, f"an encoding by distances through {way}: text and queries moved by 7 positions", 1e-3)


@check(
    "attention",
    law="at initialization attention is soft, and not blind, whatever the width and the number of heads",
    means="scores grow with the width of a head, softmax saturates and hardly any gradient passes; or they vanish",
    look="scores are divided by sqrt(head_dim), the width of what is multiplied, whatever d_model / num_heads is",
)
def temperature(subject: Subject) -> None:
    for d_model, num_heads in ((256, 1), (256, 16), (32, 2)):
        try:
            weight = _sharpness(subject, d_model, num_heads)
        except RecipeError:  # it refuses this number of heads
            continue
        told = f"d_model {d_model}, {num_heads} heads, {LENGTH} keys: Σ weight² is {weight:.2f}"
        if weight > TOO_SHARP:
            raise Failed(f"{told}; {1 / LENGTH:.2f} is even, 1 is all on one key")
        if weight < TOO_SOFT / LENGTH:
            raise Failed(f"{told}: all keys get the same, whatever they hold")


def _sharpness(subject: Subject, d_model: int, num_heads: int) -> float:
    """The mean over heads and queries of Σ weight², seen from outside: how much the output moves when one key's value does,
    for each key, against all at once."""
    alone = Alone(subject, d_model, num_heads)
    kv = _key_value(alone)
    delta = paddle.to_tensor(alone.rng.normal(size=[1, *kv.value.shape[1:2], 1, kv.value.shape[3]]).astype("float32"))
    places = paddle.eye(LENGTH).reshape([LENGTH, 1, LENGTH, 1])
    moved = kv.value + delta * places  # a row for each key that moves
    queries = alone.x[:, -1:] if alone.site.causal else alone.x[:, :4]
    if alone.site.causal:
        raise NotHere("it stands where only the past is seen")
    here = alone(queries, kv)
    each = alone(
        queries.expand([LENGTH, *queries.shape[1:]]), KeyValue(kv.key.expand([LENGTH, *kv.key.shape[1:]]), moved)
    )
    together = alone(queries, KeyValue(kv.key, kv.value + delta))
    one = ((each - here) ** 2).sum(-1).sum(0)  # [Tq]
    return float(np.mean(one / np.maximum(((together - here) ** 2).sum(-1)[0], 1e-30)))
