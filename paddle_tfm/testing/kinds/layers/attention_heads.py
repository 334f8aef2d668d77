"""What holds for an attention's heads, and in long texts: which keys count, and whether heads differ."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.protocols import KeyValue
from paddle_tfm.testing.kinds.layers.attention import AttentionProbe
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.model_under_test import gradient_through
from paddle_tfm.testing.models.probe import Probe
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import CLOSE, Failed, Note, Passed, Result, Skip, difference, distance

LONG = 72  # tokens: more than a table or a mask of 32 or 64 reaches
WIDTH = 32
# Of several texts: sparse weights, as entmax's or those of the highest scores alone, are 0 in one and not in another
SCALES = (1.0, 0.1, 0.01) * 16
GAIN = 1e3  # times as large as usual
EARLY = 6  # tokens of 12
ALIKE = 1e-4  # of a weight
DEAD = 1e-12  # of the largest gradient
QUERY_HEADS, TEXTS, RANK = 4, 2 * WIDTH, 1e-4  # of the largest singular value
QUERIES, WINDOWS, SEEN = 16, (3, 6), 1e-7  # of the largest change
MAX_BEND = 1e-3  # of the largest change, which a straight line may miss a point by
FACTOR_OFF = 0.02


class LongProbe(AttentionProbe):
    """The same with texts [2, 72, C], and gradients."""

    def __init__(self, subject: ComponentUnderTest, site: str):
        super().__init__(subject, WIDTH, 2, site)
        self.x = self.normal(2, LONG, WIDTH)
        self.source = self.x if self.site.sublayer == "self" else self.normal(2, LONG, WIDTH)

    def looks_at(self, x: Tensor, source: Tensor, real: int | None = None) -> Tensor:
        """x [2, T, C] attends to `source` [2, S, C], of which the first `real` tokens are no padding."""
        there = self.info(source, real)
        return self.attend(x, self.attention.project(source, there), there, there if x is source else None)


@check(
    "attention",
    invariant="in a text of 72 tokens each token has an effect, and each query's output depends on the text",
    consequence="words beyond a fixed length are ignored: long sentences are translated in part",
    hint="a table or a mask of a fixed size; positions taken modulo something",
)
def reaches(subject: ComponentUnderTest) -> Result:
    for site in subject.site_names:
        probe = LongProbe(subject, site)
        counts, sees = np.zeros(LONG, bool), np.zeros(LONG, bool)
        if probe.site.causal:  # none need look at its own token: nobody else sees the last, nor the first another
            counts[-1] = sees[0] = True
        for scale in SCALES:
            if counts.all() and sees.all():
                break
            x = scale * probe.normal(*probe.x.shape)
            source = x.clone() if probe.site.sublayer == "self" else scale * probe.normal(*probe.source.shape)
            source.stop_gradient = False
            out = probe.looks_at(x, source)
            gradient = gradient_through(probe.attention, (out * probe.normal(*out.shape)).sum(), source)
            if not bool(gradient.any()):
                return Failed(f"{site}: no output depends on the text that it attends to")
            by_token = gradient.abs().sum([0, 2]).numpy()
            counts |= by_token > DEAD * by_token.max()
            with paddle.no_grad():
                moved = (probe.looks_at(x, scale * probe.normal(*source.shape)) - out).abs().amax([0, 2]).numpy()
            sees |= moved > CLOSE * moved.max()
        if not counts.all():
            return Failed(f"{site}: of {LONG} tokens, that at position {counts.argmin()} changes no output")
        if not sees.all():
            return Failed(f"{site}: the query at position {sees.argmin()} gives the same whatever the text is")
    return Passed()


@check(
    "attention",
    invariant="heads differ: they do not all look at the same keys",
    consequence="several heads do the work of one",
    hint="one head's queries and keys repeated for all; an index that is always 0; shared keys are one head of keys",
)
def heads_differ(subject: ComponentUnderTest) -> Result:
    if "values" in subject.expected_failures:
        return Skip("weights cannot be read off an output that is not linear in the values")
    probe = AttentionProbe(subject)
    kv = probe.key_value()
    if isinstance(kv, Skip):
        return kv
    if kv.value.shape[1] < 2:
        return Skip("it has one head of values")
    weights = weights_of_last(probe, kv)
    weights = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30)
    if np.ptp(weights, axis=0).max() < ALIKE:
        return Failed(f"all {len(weights)} heads give every key the same weight")
    return Passed()


def weights_of_last(probe: AttentionProbe, kv: KeyValue) -> np.ndarray:
    """[H, S]: how much the last query takes of each key's value, up to a factor for each head."""
    value = kv.value.detach()
    value.stop_gradient = False
    last = probe.attend(probe.x, KeyValue(kv.key, value), probe.info(probe.x))[0, -1]
    direction = paddle.to_tensor(np.random.default_rng(21).normal(size=last.shape).astype("float32"))
    (gradient,) = paddle.grad((last * direction).sum(), value)
    return gradient.norm(axis=-1)[0].numpy()


@check(
    "attention",
    invariant="each head of values serves as many heads of queries",
    consequence="one group of heads shares more than another: some heads of keys and values are hardly used",
    hint="head h of H has the keys h // (H / G) of G, or h % G, in both products alike",
)
def groups(subject: ComponentUnderTest) -> Result:
    try:
        probe = AttentionProbe(subject, WIDTH, QUERY_HEADS)
    except RecipeError as error:
        return Skip(f"it refuses {QUERY_HEADS} heads: {error}")
    kv = probe.key_value()
    if isinstance(kv, Skip):
        return kv
    own = subject.spec.get("num_heads")
    heads = own if isinstance(own, int) else QUERY_HEADS
    if not 1 < kv.value.shape[1] < heads:
        return Skip("heads of queries share no heads of values, or all of them one")
    rows = kv.select(paddle.zeros([TEXTS], "int64"))
    ranks = []
    for head in range(kv.value.shape[1]):  # how many directions of the output its values reach
        moved = rows.value.clone()
        moved[:, head] = probe.normal(TEXTS, *kv.value.shape[2:])
        out = probe(probe.x.expand([TEXTS, *probe.x.shape[1:]]), KeyValue(rows.key, moved))[:, -1].astype("float64")
        sizes = np.linalg.svd(out - out.mean(0), compute_uv=False)
        ranks.append(int((sizes > RANK * sizes[0]).sum()))
    if len(set(ranks)) > 1:
        reached = ", ".join(map(str, ranks))
        return Failed(f"with {heads} heads of queries, heads of values reach {reached} channels of {WIDTH}")
    return Passed()


@check(
    "attention",
    invariant="a `window` of w shows w keys, or w before the query and itself",
    consequence="the variant that is compared is not the one that its recipe names",
    hint="`<` and `<=`; what w counts: the query's own key, one side or both",
)
def window(subject: ComponentUnderTest) -> Result:
    if not subject.takes("window"):
        return Skip("it has no `window`")
    seen = []
    for width in WINDOWS:
        try:
            probe = LongProbe(subject.with_options({"window": width}), "decoder.self")
        except UserError as error:
            return Skip(str(error))
        if not probe.site.causal:
            return Skip("it does not stand in a decoder")
        source = probe.source[:1, :QUERIES].expand([QUERIES, QUERIES, WIDTH]).clone()
        x = probe.normal(1, QUERIES, WIDTH).expand(source.shape)
        with paddle.no_grad():
            usual = probe.looks_at(x, source).numpy()
            for t in range(QUERIES):
                source[t, t] = -source[t, t]
            moved = np.abs(probe.looks_at(x, source).numpy() - usual).max(-1)  # [key, query]
        count = int((moved > SEEN * moved.max()).sum(0).max())
        if count == QUERIES:
            return Skip("it sees the whole text here")
        if count not in (width, width + 1):
            return Failed(f"with `window` {width} a query sees {count} keys")
        seen.append(f"{count} keys with `window` {width}")
    return Note(f"in a decoder a query sees {', '.join(seen)}")


@check(
    "attention",
    invariant="a bias is added to the scores after their division by sqrt(head_dim), the encoding's scores before it",
    consequence="ALiBi's slopes or Shaw's terms act with another strength than in their papers",
    hint="(q kᵀ + `scores`) / sqrt(head_dim) + `bias`",
)
def hooks_in_place(subject: ComponentUnderTest) -> Result:
    geometry = subject.cls.geometry(WIDTH, 2, **subject.own_options)
    probe = AttentionProbe(subject)
    kv = probe.key_value()
    if isinstance(kv, Skip):
        return kv
    usual = weights_of_last(probe, kv)
    for hook in sorted(subject.cls.supports & {"bias", "scores"}):
        probe.encoding = encoding = NotingProbe(geometry.score_heads, geometry.head_dim, [hook])
        weights = weights_of_last(probe, kv)
        term = encoding.term
        if term is None or term.shape != usual.shape or not (usual.all() and weights.all()):
            continue
        change = np.log(weights / usual)
        change, term = (each - each.mean(-1, keepdims=True) for each in (change, term))
        factor = float((change * term).sum() / (term * term).sum())
        if np.abs(change - factor * term).max() > MAX_BEND * np.abs(change).max():
            continue  # no softmax of a sum: how strongly a term acts is another question
        if hook == "bias" and abs(factor - 1) > FACTOR_OFF:
            return Failed(f"a bias changes the logarithms of weights by {factor:.3g} times its value")
        if hook == "scores" and abs(factor - 1) < FACTOR_OFF < abs(geometry.head_dim**-0.5 - 1):
            return Failed("the encoding's scores are added without the division by sqrt(head_dim)")
    return Passed()


class NotingProbe(Probe):
    """Notes the term of the last query for each head and key [H, S]."""

    term: np.ndarray | None = None

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        return self._noted(super().bias(q_positions, k_positions))

    def scores(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        return self._noted(super().scores(q, k, q_positions, k_positions))

    def _noted(self, term: Tensor | None) -> Tensor | None:
        if term is not None:
            self.term = term[0, :, -1].numpy()
        return term


@check(
    "attention",
    invariant="a class with `num_heads` uses it",
    consequence="a recipe's num_heads does nothing: every variant has one head, or a fixed number",
    hint="the reshape into heads; an option that is stored and not read",
)
def heads_used(subject: ComponentUnderTest) -> Result:
    if not subject.takes("num_heads"):
        return Skip("its constructor takes no `num_heads`")
    outputs, shapes = [], []
    for num_heads in (2, 4):
        try:
            probe = AttentionProbe(subject, WIDTH, num_heads)
        except RecipeError as error:
            return Skip(f"it refuses {num_heads} heads: {error}")
        shapes.append([parameter.shape for parameter in probe.attention.parameters()])
        outputs.append(probe.attended())
    if shapes[0] == shapes[1] and distance(*outputs) < CLOSE:
        return Failed("with the same weights, 2 heads and 4 give the same")
    return Passed()


@check(
    "attention",
    invariant="another sentence, later tokens and padding change nothing elsewhere, however large their numbers are",
    consequence="an outlier changes the translation of what stands beside it",
    hint="a maximum over the whole tensor, or over hidden keys too, before `exp` (take it over the keys that the query "
    "sees); a mask that is not negative enough, or no more after Paddle's `log_softmax`, which ends at -64 on a CPU; "
    "one scale for all rows when numbers are rounded",
    name="precision",
)
def attention_precision(subject: ComponentUnderTest) -> Result:
    early = paddle.arange(12).unsqueeze([0, 2]) < EARLY  # [1, 12, 1]
    rows = paddle.to_tensor([True, False]).reshape([2, 1, 1])
    for site in subject.site_names:
        probe = LongProbe(subject, site)
        is_self = probe.site.sublayer == "self"
        x, source = probe.x[:, :12], probe.source[:, :12]
        cases = {"a sentence": (rows, 12), "padding": (early, EARLY)}
        if probe.site.causal:
            cases["later tokens"] = (early, 12)
        for what, (quiet, real) in cases.items():
            outputs = []
            for gain in (1.0, 2.0, GAIN):
                loud = source * paddle.where(quiet, paddle.ones([1]), paddle.full([1], gain))
                with paddle.no_grad():
                    out = probe.looks_at(loud if is_self else x, loud, real)
                outputs.append(out[:1, : EARLY if is_self else 12].numpy())
            of = f"{site}: beside {what} whose numbers are {GAIN:g} times as large"
            if distance(outputs[0], outputs[1]) > CLOSE:
                continue  # any other number there changes it: that is a leak, which other checks name
            if failed := difference(outputs[0], outputs[2], of):
                return failed
    return Passed()
