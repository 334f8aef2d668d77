"""What holds for an attention's heads, and in long texts: which keys count, and whether heads differ."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.protocols import KeyValue, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm.testing.kinds.attention import AttentionProbe
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import CLOSE, Failed, Passed, Result, Skip, difference
from paddle_tfm.testing.subject import Subject

LONG = 72  # tokens: more than a table or a mask of 32 or 64 reaches
WIDTH = 32
GAIN = 1e3  # times as large as usual
ALIKE = 1e-4  # of a weight
DEAD = 1e-12  # of the largest gradient


class LongProbe(AttentionProbe):
    """The same with texts [2, 72, C], and gradients."""

    def __init__(self, subject: Subject, site: str):
        super().__init__(subject, WIDTH, 2, site)
        self.x = self.normal(2, LONG, WIDTH)
        self.source = self.x if self.site.sublayer == "self" else self.normal(2, LONG, WIDTH)

    def attend(self, x: Tensor, source: Tensor) -> Tensor:
        """x [2, T, C] attends to `source` [2, S, C]."""
        info, other = self._all_real(x), self._all_real(source)
        mask = Mask(info.positions, other.positions, other.valid, self.site.causal, self.encoding)
        return self.attention(x, self.attention.project(source, other), info, mask, Tap())

    def _all_real(self, x: Tensor) -> TokenInfo:
        positions = paddle.arange(x.shape[1], dtype="int64").unsqueeze(0)
        return TokenInfo(PositionalEncoding(), positions, paddle.ones(x.shape[:2], "bool"))


@check(
    "attention",
    invariant="in a text of 72 tokens each token counts, and each query sees something of it",
    consequence="what stands behind a fixed length is never looked at: long sentences are translated by halves",
    hint="a table or a mask of a fixed size; positions taken modulo something",
)
def reaches(subject: Subject) -> Result:
    for site in subject.site_names:
        probe = LongProbe(subject, site)
        source = probe.source.detach()
        source.stop_gradient = False
        out = probe.attend(probe.x, source)
        (gradient,) = paddle.grad((out * probe.normal(*out.shape)).sum(), source)
        by_token = gradient.abs().sum([0, 2]).numpy()
        if (unseen := np.flatnonzero(by_token <= DEAD * by_token.max())).size:
            return Failed(f"{site}: of {LONG} tokens, that at position {unseen[0]} changes no output")
        with paddle.no_grad():
            moved = (probe.attend(probe.x, probe.normal(*source.shape)) - out).abs().amax([0, 2]).numpy()
        if (blind := np.flatnonzero(moved <= CLOSE * moved.max())).size:
            return Failed(f"{site}: the query at position {blind[0]} gives the same whatever the text is")
    return Passed()


@check(
    "attention",
    invariant="heads differ: they do not all look at the same keys",
    consequence="several heads cost what they cost, and are worth one",
    hint="one head's queries and keys repeated for all; an index that is always 0; shared keys are one head of keys",
)
def heads_differ(subject: Subject) -> Result:
    if "values" in subject.expected_failures:
        return Skip("weights cannot be read off an output that is not linear in the values")
    probe = AttentionProbe(subject)
    kv = probe.key_value()
    if isinstance(kv, Skip):
        return kv
    if kv.value.shape[1] < 2:
        return Skip("it has one head of values")
    value = kv.value.detach()
    value.stop_gradient = False
    info = probe.info(probe.x)
    mask = Mask(info.positions, info.positions, info.valid, probe.site.causal, probe.encoding)
    out = probe.attention(probe.x, KeyValue(kv.key, value), info, mask, Tap())
    last = out[0, -1]
    (gradient,) = paddle.grad((last * probe.normal(*last.shape)).sum(), value)
    weights = gradient.norm(axis=-1)[0].numpy()  # [H, S], up to a factor for each head
    weights = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30)
    if np.ptp(weights, axis=0).max() < ALIKE:
        return Failed(f"all {len(weights)} heads give every key the same weight")
    return Passed()


@check(
    "attention",
    invariant="numbers of one sentence, or of later tokens, however large, take no precision from others",
    consequence="beside one outlier a translation is another one",
    hint="a maximum over the whole tensor before `exp` (take it over the keys that the query sees); one scale for all "
    "rows when numbers are rounded",
    name="precision",
)
def attention_precision(subject: Subject) -> Result:
    probe = LongProbe(subject, subject.site_names[0])
    x, source = probe.x[:, :12], probe.source[:, :12]
    loud = paddle.to_tensor([1.0, GAIN]).reshape([2, 1, 1])
    with paddle.no_grad():
        usual, beside = (probe.attend(x * gain, source * gain)[0].numpy() for gain in (1.0, loud))
    return difference(usual, beside, f"beside a sentence whose numbers are {GAIN:g} times as large") or Passed()
