"""What holds for an attention by itself: what it attends to, and how softly."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.errors import RecipeError
from paddle_tfm.protocols import KeyValue, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm.testing.adapters.attention import OneText
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.hook_outputs import trained
from paddle_tfm.testing.models.probe import Probe
from paddle_tfm.testing.models.scene import open_gates
from paddle_tfm.testing.models.size import MAX_LENGTH
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, Skip, difference, distance, relative_distance

LENGTH = 32  # keys
LONG = 160  # more than one block of 32, 64 or 128 keys
MAX_CONCENTRATION = 0.4  # Σ weight²: 1 is all on one key
MIN_CONCENTRATION = 1.02 / LENGTH  # 1 / LENGTH is the same for all keys
CHANCE = 1.1  # times Σ weight², as it is seen from outputs alone
MANY_TIMES = 1.8  # what it is for a query that is zero, to which all keys are alike
MIN_EFFECT = 1e-3  # of the largest output: what a change must move it by
NARROW = (32, 2)  # (d_model, heads)
WIDE = ((256, 1), (256, 2), (256, 4))  # the first that it takes
MANY_HEADS = (256, 16)  # as wide as in NARROW
SHARP = 0.6  # what unscaled scores pass at each width
GROWTH = 1.2  # times the concentration of few heads, which that of many may have
# Times as much as with 2 heads, with 16 of the same width. Variances of scores are the same for both, and an eighth of
# it where the number of heads is divided by too; this is half-way.
SHRINKING = (2 / 16) ** 0.5
MIN_SPREAD = 0.05  # of Σ weight² above its least: less is chance
SOFTMAXES = 64  # heads times queries, of which Σ weight² is the mean: that of 8 may be seven times what it is of all
OFFSETS = (0, 7)  # of all positions


class AttentionProbe:
    """An attention with weights that keep variances (normal, of variance 1 / fan-in), attending from one text to
    another."""

    def __init__(
        self,
        subject: ComponentUnderTest,
        d_model: int = 32,
        num_heads: int = 2,
        site: str = "decoder.cross",
        length: int = LENGTH,
        dropout: float = 0.0,
        norms: Mapping[str, object] | None = None,
        opened: bool = True,
    ):
        self.site, self.num_heads = subject.site(site), num_heads
        self.offset = 0
        self.rng = np.random.default_rng(5)
        size = {"d_model": d_model, "num_heads": num_heads, "max_length": max(MAX_LENGTH, length)}
        self.attention = subject.build(self.site, **size, dropout=dropout, **(norms or {}))
        self.attention.eval()
        self.has_positions = getattr(self.attention, "has_positions", False)  # inside: of an ordinary layer
        redraw(self.attention, self.rng)
        if opened:
            open_gates(self.attention, self.rng)
        self.x = self.normal(1, length, d_model)
        self.source = self.x if self.site.sublayer == "self" else self.normal(1, length, d_model)
        self.encoding = PositionalEncoding()

    def normal(self, *shape: int) -> Tensor:
        return paddle.to_tensor(self.rng.normal(size=shape).astype("float32"))

    def info(self, x: Tensor, real: int | None = None) -> TokenInfo:
        """About x [B, T, C], of which the first `real` tokens are no padding (None: all)."""
        positions = paddle.arange(self.offset, self.offset + x.shape[1], dtype="int64").unsqueeze(0)
        valid = paddle.arange(x.shape[1]) < (x.shape[1] if real is None else real)
        return TokenInfo(self.encoding, positions, valid.expand(x.shape[:2]))

    def project(self, source: Tensor):
        with paddle.no_grad():
            return self.attention.project(source, self.info(source))

    def key_value(self) -> KeyValue | Skip:
        """Keys and values of the source, or why there are none."""
        kv = self.project(self.source)
        if isinstance(kv, OneText):
            return Skip("keys and values are one text, so neither can be changed alone")
        plain = isinstance(kv, KeyValue) and not vars(kv).keys() > {"key", "value"}
        if not plain or 0 in (*kv.key.shape, *kv.value.shape):
            return Skip("it keeps something else than keys and values")
        return kv

    def of_text(self, source: Tensor, x: Tensor, keys: int | None = None) -> np.ndarray:
        """The output for x, attending to `source` [B, T, C], of which only the first `keys` tokens may be seen; in
        self-attention for the source."""
        return self(source if self.site.sublayer == "self" else x, self.project(source), keys)

    @property
    def is_of_one_text(self) -> bool:
        """Whether keys and values are one text: it is an ordinary layer, which shows its outputs alone."""
        return isinstance(self.project(self.source), OneText)

    def attend(self, x: Tensor, kv, seen: TokenInfo, info: TokenInfo | None = None) -> Tensor:
        """[B, T, C], with gradients. `seen`: which keys there are. `info`: about x."""
        info = info or self.info(x)
        mask = Mask(info.positions, seen.positions, seen.valid, self.site.causal, self.encoding)
        return self.attention(x, kv, info, mask, Tap())

    def __call__(self, x: Tensor, kv, keys: int | None = None) -> np.ndarray:
        """[B, T, C]; only the first `keys` keys may be seen (None: all)."""
        seen = self.info(self.source[:1].expand([x.shape[0], *self.source.shape[1:]]), keys)
        with paddle.no_grad():
            return self.attend(x, kv, seen).numpy()

    def attended(self) -> np.ndarray:
        """The output for x, attending to the source."""
        return self(self.x, self.project(self.source))


def redraw(layer: nn.Layer, rng: np.random.Generator) -> None:
    """Matrices normal with variance 1 / fan-in; vectors stay."""
    for parameter in layer.parameters():
        if parameter.ndim > 1 and not getattr(parameter, "keep_initial", False):
            value = rng.normal(size=parameter.shape) / np.sqrt(parameter.shape[0])
            parameter.set_value(value.astype("float32"))


@check(
    "attention",
    invariant="the output depends on the queries' text, on the keys and on the values",
    consequence="it does not attend: it looks at the wrong text, or at nothing",
    hint="which input each projection gets: keys and values come from `source`, queries from `x`",
)
def attends(subject: ComponentUnderTest) -> Result:
    probe = AttentionProbe(subject)
    if probe.has_positions:
        return Skip("it uses positions of its own, so its queries must come from the text that it attends to")
    kv = probe.project(probe.source)
    out = probe(probe.x, kv)
    changed = {"another text to attend to": probe(probe.x, probe.project(probe.normal(*probe.source.shape)))}
    changed["other queries"] = probe(probe.normal(*probe.x.shape), kv)
    separate = probe.key_value()
    if isinstance(separate, KeyValue):
        key, value = separate.key, separate.value
        changed["other keys"] = probe(probe.x, KeyValue(probe.normal(*key.shape), value))
        changed["other values"] = probe(probe.x, KeyValue(key, probe.normal(*value.shape)))
    for what, other in changed.items():
        if relative_distance(out, other) < MIN_EFFECT:
            return Failed(f"{what} {'changes' if what.startswith('another') else 'change'} nothing")
    return Passed()


@check(
    "attention",
    invariant="in an encoder it is bidirectional: without positions, a reversed text gives the reversed output",
    consequence="words after a token are ignored, or treated differently from words before it",
    hint="a causal mask where the whole text should be seen (`mask.causal`); a window without the distance's "
    "absolute value; weights of its own for each direction, by design: declare it in `expected_failures`",
)
def bidirectional(subject: ComponentUnderTest) -> Result:
    if "encoder.self" not in subject.site_names:
        return Skip("it does not stand in an encoder")
    for length in (LENGTH, LONG):
        probe = AttentionProbe(subject, site="encoder.self", length=length)
        if probe.has_positions:  # before is not after
            if failed := _one_way(probe, length // 2 + 1):
                return failed
            continue
        reversed_x = probe.x.flip([1])
        reversed_out = probe(reversed_x, probe.project(reversed_x))[:, ::-1]
        usual = probe(probe.x, probe.project(probe.x))
        what = f"a text of {length} tokens, and the same text turned around"
        if failed := difference(usual, reversed_out, what, 1e-4):
            return failed
    return Passed()


def _one_way(probe: AttentionProbe, middle: int) -> Failed | None:
    """Failed where no token before the middle of a text sees one behind it, or none behind it one before."""
    usual, other = probe(probe.x, probe.project(probe.x)), probe.normal(*probe.x.shape)
    halves = (probe.x[:, :middle], other[:, middle:]), (other[:, :middle], probe.x[:, middle:])
    for text, seen, what in zip(halves, (slice(middle), slice(middle, None)), ("later", "earlier")):
        x = paddle.concat(text, 1)
        if relative_distance(probe(x, probe.project(x))[:, seen], usual[:, seen]) < MIN_EFFECT:
            return Failed(f"other {what} tokens change nothing")
    return None


@check(
    "attention",
    invariant="weights sum to one: where all values are equal, the output is the same for every query",
    consequence="the size of the output depends on the number of keys",
    hint="softmax over the keys (the last axis), after the mask and not before it; nothing that scales weights "
    "afterwards; no residual and no norm inside the layer, which a model has around it",
)
def averages(subject: ComponentUnderTest) -> Result:
    for length in (LENGTH, LONG):
        probe = AttentionProbe(subject, length=length)
        kv = probe.key_value()
        if probe.is_of_one_text and not probe.has_positions:
            text = probe.source[:, :1].expand(probe.source.shape)
            out, fewer = probe.of_text(text, probe.x), probe.of_text(text, probe.x, length // 2)
        elif isinstance(kv, Skip):
            return kv
        else:
            equal = KeyValue(kv.key, kv.value[:, :, :1].expand(kv.value.shape))
            out, fewer = probe(probe.x, equal), probe(probe.x, equal, keys=length // 2)
        first = np.broadcast_to(out[:, :1], out.shape)
        what = f"{length} keys, all values equal: outputs"
        if failed := (
            difference(out, first, f"{what} of different queries", 1e-4)
            or difference(out, fewer, f"{what} with half of the keys hidden", 1e-4)
        ):
            return failed
    return Passed()


@check(
    "attention",
    invariant="the output is linear in the values: heads work in parallel, and none uses another's result",
    consequence="heads are chained, or something bends the values: it is another function than attention",
    hint="the loop over heads: every head gets the same query; nothing nonlinear after the weighted sum",
)
def values(subject: ComponentUnderTest) -> Result:
    probe = AttentionProbe(subject)
    kv = probe.key_value()
    if isinstance(kv, Skip):
        return kv
    other = probe.normal(*kv.value.shape)
    zero, one, two, total = (
        probe(probe.x, KeyValue(kv.key, value))
        for value in (paddle.zeros_like(kv.value), kv.value, other, kv.value + other)
    )
    return difference(total - zero, (one - zero) + (two - zero), "out(v + w) against out(v) + out(w)", 1e-4) or Passed()


@check(
    "attention",
    invariant="every positional-encoding hook in `supports` has an effect, and one by distances where the "
    "encoding goes by distances",
    consequence="an encoding that users combine with it does nothing, or something else",
    hint="queries and keys both through `info.encoding`, with their own positions; the mask's bias; the terms of "
    "scores and values",
)
def supported_hooks(subject: ComponentUnderTest) -> Result:
    for site in subject.site_names:
        if failed := _hooks_at(subject, site):
            return failed
    return Passed()


def _hooks_at(subject: ComponentUnderTest, site: str) -> Failed | None:
    """Failed where a hook does not act at this site, or not by distances, with values as they start or as after some
    training: gains that start at one hide where they stand."""
    probe = AttentionProbe(subject, site=site)
    if failed := _hooks_of(subject, probe, site):
        return failed
    trained(probe.attention)
    return _hooks_of(subject, probe, site)


def _hooks_of(subject: ComponentUnderTest, probe: AttentionProbe, site: str) -> Failed | None:
    geometry = subject.cls.geometry(32, 2, **subject.own_options)
    usual = probe.encoding

    def at_offsets() -> list[np.ndarray]:
        outputs = []
        for probe.offset in OFFSETS:
            outputs.append(probe.attended())
        return outputs

    without = at_offsets()
    by_distances = distance(*without) < 1e-4  # weights of its own may belong to places in the text
    impossible = {"rotate"} if geometry.head_dim < 2 else set()  # one channel cannot be turned
    for hook in sorted(subject.cls.supports - {"embed"} - impossible):
        probe.encoding = Probe(geometry.score_heads, geometry.head_dim, [hook])
        outputs = at_offsets()
        if distance(without[0], outputs[0]) < 1e-4:
            return Failed(f"{site}: it accepts encodings that act through {hook}, and one changes nothing")
        what = f"{site}: an encoding by distances through {hook}: text and queries moved by {OFFSETS[1]} positions"
        if by_distances and (failed := difference(outputs[0], outputs[1], what, 1e-3)):
            return failed
    probe.encoding = usual
    return None


@check(
    "attention",
    invariant="at initialization attention is neither concentrated on few keys nor uniform, whatever the width "
    "and the number of heads",
    consequence="scores grow with the width of a head, so that softmax saturates and gradients vanish; or scores "
    "are too small",
    hint="scores are divided by sqrt(head_dim), the width of what is multiplied, whatever d_model / num_heads is; not "
    "by sqrt(d_model). Weights of a kernel, φ(q)·φ(k) divided by their sum, grow alike in wide heads by nature: "
    "declare it",
)
def temperature(subject: ComponentUnderTest) -> Result:
    if "values" in subject.expected_failures:
        return Skip("weights cannot be read off an output that is not linear in the values")
    concentrations: dict[tuple[int, int], float] = {}
    spreads: dict[tuple[int, int], float] = {}  # Σ weight² above that of a query to which all keys are alike
    for shape in (NARROW, *WIDE, MANY_HEADS):
        if shape in WIDE and any(wide in concentrations for wide in WIDE):
            continue
        try:
            probe = AttentionProbe(subject, *shape, opened=False)
            if not probe.attended().any():  # a gate is shut at initialization
                probe = AttentionProbe(subject, *shape)
        except RecipeError:  # it refuses this number of heads
            continue
        kv = probe.key_value()
        if probe.is_of_one_text:
            concentration, even = _concentration_of_text(probe, 1.0), _concentration_of_text(probe, 0.01)
            # A norm of queries and keys gives small tokens the scores of large ones: that is not even.
            least = MIN_CONCENTRATION * LENGTH * even if concentration < CHANCE / LENGTH else 0.0
        elif isinstance(kv, Skip):
            return kv
        elif probe.site.causal:
            return Skip("it stands where only the past is seen")
        else:
            concentration, least = _concentration(probe, kv, probe.x), MIN_CONCENTRATION
            # A window has few keys to begin with. Narrow heads may be sharp by design, where the angle of two vectors
            # counts: two of many channels are nearly at right angles, two of few channels are not.
            even = _concentration(probe, kv, paddle.zeros_like(probe.x))
        concentrations[shape] = concentration
        what = f"d_model {shape[0]}, {shape[1]} heads, {LENGTH} keys: Σ weight² is {concentration:.2f}"
        if concentration < least:
            return Failed(f"{what}: all keys get the same, whatever they hold")
        spreads[shape] = concentration / max(even, 1 / LENGTH) - 1
        most = max(MAX_CONCENTRATION, MANY_TIMES * even)
        usual = concentrations.get(NARROW, 0.0)
        if shape == MANY_HEADS or usual < SHARP:  # sharp by design, as sparsemax: at every width alike
            most = max(most, GROWTH * usual)
        if shape != NARROW and concentration > most:
            return Failed(f"{what}; {1 / LENGTH:.2f} is even, 1 is all on one key")
    few, many = (spreads.get(shape, 0.0) for shape in (NARROW, MANY_HEADS))
    if MANY_HEADS in spreads and few > MIN_SPREAD and many < SHRINKING * few:
        return Failed(
            f"heads of 16 channels, {LENGTH} keys: with {MANY_HEADS[1]} heads Σ weight² is {many:.1%} above its least, "
            f"with {NARROW[1]} heads {few:.1%}: scores shrink with the number of heads"
        )
    return Passed()


def _concentration(probe: AttentionProbe, kv: KeyValue, x: Tensor) -> float:
    """The mean over heads and queries x of Σ weight², seen from outside: how much the output moves when one key's value
    does, for each key, against all at once."""
    delta = probe.normal(1, kv.value.shape[1], 1, kv.value.shape[3])
    one_hot = paddle.eye(LENGTH).reshape([LENGTH, 1, LENGTH, 1])
    moved = kv.value + delta * one_hot  # a row for each key that moves
    queries = x[:, : SOFTMAXES // probe.num_heads]
    usual = probe(queries, kv)
    rows = kv.select(paddle.zeros([LENGTH], "int64"))
    separate = probe(queries.expand([LENGTH, *queries.shape[1:]]), KeyValue(rows.key, moved))
    together = probe(queries, KeyValue(kv.key, kv.value + delta))
    effect = ((separate - usual) ** 2).sum(-1).sum(0)  # [Tq]
    return float(np.mean(effect / np.maximum(((together - usual) ** 2).sum(-1)[0], 1e-30)))


def _concentration_of_text(probe: AttentionProbe, factor: float) -> float:
    """The mean of Σ weight² of the last query of many texts, seen from their outputs alone: in a text of equal tokens
    each gives W_o W_v x, whatever the weights; means of independent ones vary by Σ weight² of that. `factor`: times the
    tokens; where it is small, scores are 0, and all keys alike."""
    rng = np.random.default_rng(11)
    shape = [SOFTMAXES, LENGTH, int(probe.x.shape[-1])]
    texts, queries = (paddle.to_tensor(factor * rng.normal(size=shape).astype("float32")) for _ in range(2))
    nothing, mixed, alone = (
        probe.of_text(source, queries)[:, -1] for source in (paddle.zeros(shape), texts, texts[:, -1:].expand(shape))
    )
    return float(((mixed - nothing) ** 2).mean() / max(((alone - nothing) ** 2).mean(), 1e-30))
