"""What the kit works out of an attention that was written without paddle_tfm."""

import math

import paddle
import paddle.nn.functional as F
import pytest
from paddle import nn

from paddle_tfm.testing import FAIL, Outcome, Report, checks
from paddle_tfm.testing.adapters.attention import CONVENTIONS, Call


class Base(nn.Layer):
    def __init__(self, d_model=16, num_heads=2):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, d_model // num_heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in range(4))

    def split(self, x):
        return x.reshape([x.shape[0], x.shape[1], self.num_heads, self.head_dim]).transpose([0, 2, 1, 3])

    def scores(self, x, source):
        return self.split(self.q(x)) @ self.split(self.k(source)).transpose([0, 1, 3, 2]) / math.sqrt(self.head_dim)

    def attend(self, scores, source):
        out = F.softmax(scores, -1) @ self.split(self.v(source))
        return self.out(out.transpose([0, 2, 1, 3]).reshape([out.shape[0], out.shape[2], -1]))


def masked(scores, mask, meaning):
    if meaning == "additive":
        return scores + mask
    if meaning == "allowed as numbers":
        return scores * mask - 1e4 * (1.0 - mask)
    if meaning == "hidden as numbers":
        return paddle.where(mask.exp() > 1.0, paddle.full_like(scores, -1e9), scores)  # no exp of bool
    hidden = mask if meaning == "hidden" else paddle.logical_not(mask)
    return paddle.where(hidden, paddle.full_like(scores, -1e9), scores)


def of_one_text(meaning):
    class OfOneText(Base):
        def forward(self, x, mask):
            return self.attend(masked(self.scores(x, x), mask, meaning), x)

    return OfOneText


def of_two_texts(meaning):
    class OfTwoTexts(Base):
        def forward(self, query, key, value, attn_mask):
            return self.attend(masked(self.scores(query, key), attn_mask, meaning), value)

    return OfTwoTexts


class Distances(Base):
    """A bias for each distance, inside."""

    def __init__(self):
        super().__init__()
        self.bias = self.create_parameter([9], default_initializer=nn.initializer.Normal())

    def forward(self, x, mask):
        places = paddle.arange(x.shape[1])
        scores = self.scores(x, x) + self.bias[(places - places.unsqueeze(1)).clip(-4, 4) + 4]
        return self.attend(masked(scores, mask, "allowed"), x)


class BackOnly(Base):
    def forward(self, x):
        past = paddle.tril(paddle.ones([x.shape[1]] * 2, "bool"))
        return self.attend(masked(self.scores(x, x), past, "allowed"), x)


class MixesHeadsAndTokens(Base):
    def forward(self, query, key, value, mask):
        weights = F.softmax(masked(self.scores(query, key), mask, "allowed"), -1)
        return self.out((weights @ self.split(self.v(value))).reshape(query.shape))


def settled(cls):
    call = Call(cls, None)
    call.settle(cls(), 16)
    return call


@pytest.mark.parametrize("meaning", list(CONVENTIONS))
@pytest.mark.parametrize("layer", [of_one_text, of_two_texts])
def test_what_the_mask_means_is_worked_out(layer, meaning):
    call = settled(layer(meaning))
    assert call.form == (meaning, 4)
    assert not call.has_positions and not call.looks_back_only


def test_a_mask_that_hides_nothing_is_said_first():
    class Unread(Base):
        def forward(self, x, mask):
            return self.attend(self.scores(x, x), x)

    class Zeros(Base):
        def forward(self, x, mask):
            return self.attend(paddle.where(mask, self.scores(x, x), paddle.zeros([])), x)

    assert settled(Unread).disobeys == "`mask` is never read: outputs are the same whatever it hides"
    assert settled(Zeros).disobeys.startswith("no form of `mask` that was tried hides the future from it: True where")
    assert settled(of_one_text("allowed")).disobeys == ""
    failed = Outcome(checks("attention")[0], FAIL, "seen")
    assert Report("attention", "Mine", [failed], cause="because").most_likely == "because"


def test_positions_inside_and_looking_back_alone_are_seen():
    assert (settled(Distances).has_positions, settled(Distances).looks_back_only) == (True, False)
    assert settled(BackOnly).looks_back_only
    assert settled(Distances).description().endswith("; it tells places apart by itself")
    assert settled(BackOnly).description() == "it takes no mask; no token sees a later one"


def test_a_layer_that_mixes_tokens_has_no_positions():
    assert not settled(MixesHeadsAndTokens).has_positions
