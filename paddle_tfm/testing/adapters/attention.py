"""An attention of anybody's, `forward(query, key, value, mask)` and the like, as a component.

The form of the mask differs from author to author; it is worked out here, and reported.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.protocols import MASKED_SCORE, Attention, KeyValue, LayerSite, Mask, Tap, TokenInfo
from paddle_tfm.testing.adapters.arguments import OWN_DROPOUT, adapted, built, first, without_dropout
from paddle_tfm.testing.results import some

NUMBERS = " as numbers"
CONVENTIONS = {
    "allowed": "True where it may look",
    "hidden": "True where it may not look",
    f"allowed{NUMBERS}": "1.0 where it may look, 0.0 where it may not",
    f"hidden{NUMBERS}": "0.0 where it may look, 1.0 where it may not",
    "additive": "added to the scores",  # last: very low numbers hide something in a layer that multiplies by them too
}
LENGTHS = "how many keys, from the first, each query may look at"
SHAPES = {4: "[B, 1, Tq, Tk]", 3: "[B, Tq, Tk]", 2: "[Tq, Tk]"}
OF_LENGTHS = ("lengths", 2)  # [B, Tq]
MEMORY = ("memory", "context", "kv", "encoder_output", "enc_output", "encoder_hidden_states", "key_value_states")
QUERY, KEY, VALUE = (
    ("query", "q", "queries", "x", "hidden_states"),
    ("key", "k", "keys", *MEMORY),
    ("value", "v", "values"),
)
MASK = ("mask", "attn_mask", "attention_mask", "src_mask", "tgt_mask", "masks", "causal_mask")
VALID_LENGTHS = ("valid_lens", "valid_len", "valid_lengths", "valid_length", "lengths", "lens", "seq_lens")


class Call:
    """How to call `forward`: which parameter is what, and what a mask looks like."""

    def __init__(self, cls: type[Any], convention: str | None):
        names = [
            name
            for name, p in list(inspect.signature(cls.forward).parameters.items())[1:]
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        self.cls, self.conventions = cls, [name for name in CONVENTIONS if name.startswith(convention or "")]
        self.mask = next((name for name in names if name.lower() in (*MASK, *VALID_LENGTHS)), None)
        rest = [name for name in names if name != self.mask]
        self.key, self.value = _called(rest, KEY), _called(rest, VALUE)
        query = _called(rest, QUERY) or (rest[0] if rest else None)
        if query is None:
            raise UserError(f"{cls.__name__}.forward takes no input; it should be forward(query, key, value, mask)")
        self.query: str = query
        self.form: tuple[str, int] | None = None
        """(convention, dimensions) of the mask, once it is worked out."""
        self.is_settled = False
        self.disobeys = ""
        """Why the mask does not hide the future, in words; "" where it does, or there is none."""
        self.looks_back_only = False
        """Whether a token sees none behind it, although the mask hides nothing."""
        self.has_positions = False
        """Whether the layer tells places apart by itself, as with rotary positions or a bias inside."""

    def __call__(self, layer: nn.Layer, x: Tensor, key: Tensor, value: Tensor, allowed: Tensor) -> Tensor:
        """allowed bool [B, 1, Tq, Tk]."""
        return first(layer(**self._arguments(x, key, value, allowed, self.form or next(self._forms()))))

    def _arguments(self, x, key, value, allowed, form: tuple[str, int]) -> dict[str, Tensor]:
        arguments = {self.query: x}
        if self.key is not None:
            arguments[self.key] = key
        if self.value is not None:
            arguments[self.value] = value
        if self.mask is not None:
            arguments[self.mask] = mask_of_form(allowed, *form, x.dtype)
        return arguments

    def settle(self, layer: nn.Layer, width: int) -> None:
        """Work out the form of the mask: the one under which the future is hidden and the past is not; if there is
        none, the first that runs, so that the checks say what is wrong. Then what the layer does where the mask hides
        nothing.

        Raises:
            UserError: the layer fails whatever mask it gets.
        """
        if self.is_settled:
            return
        self.is_settled = True
        layer.eval()
        obeys = self.mask is None or self._work_out_mask(layer, width)
        if obeys:
            with contextlib.suppress(Exception):  # `runs` says what it is
                self._look_everywhere(layer, width)
        layer.train()

    def _work_out_mask(self, layer: nn.Layer, width: int) -> bool:
        """Whether a causal mask of the form that was found hides the future."""
        errors: list[Exception] = []
        ran: list[tuple[str, int]] = []
        for form in self._forms():
            try:
                hides = self._hides_the_future(layer, width, form)
            except UserError:
                raise
            except Exception as error:
                errors.append(error)
                continue
            ran.append(form)
            if hides:
                self.form = form
                return True
        if not ran:
            text = " ".join(str(errors[0]).split())[:300]
            raise UserError(f"{self.cls.__name__}.forward fails on [2, 4, {width}] with any mask: {text}")
        # Numbers may be added as well, to no effect: what is added is more usual.
        self.form = next((form for form in ran if not form[0].endswith(NUMBERS)), ran[0])
        with contextlib.suppress(Exception):  # `runs` says what it is
            self._look_everywhere(layer, width)
        if not self.has_positions:  # otherwise it mixes tokens up, or tells places apart: the mask is not to blame
            is_read = any(self._reads_the_mask(layer, width, form) for form in ran)
            text = (
                _(
                    "no form of `{mask}` that was tried hides the future from it: {forms}; it may be applied after the "
                    "softmax, or to queries in the place of keys"
                )
                if is_read
                else _("`{mask}` is never read: outputs are the same whatever it hides")
            )
            self.disobeys = text.format(mask=self.mask, forms=some(CONVENTIONS[name] for name in self.conventions))
        # Tokens may be mixed up, which is no knowledge of their places.
        self.has_positions = self.looks_back_only = False
        return False

    def _reads_the_mask(self, layer: nn.Layer, width: int, form: tuple[str, int]) -> bool:
        """Whether outputs differ between a mask that hides the future and one that hides nothing."""
        x = paddle.to_tensor(np.random.default_rng(4).normal(size=(2, 4, width)).astype(paddle.get_default_dtype()))
        everything = paddle.ones([2, 1, 4, 4], "bool")
        with paddle.no_grad():
            one, other = (
                first(layer(**self._arguments(x, x, x, allowed, form))) for allowed in (everything, everything.tril())
            )
        return not bool(paddle.allclose(one, other, equal_nan=True))

    def _look_everywhere(self, layer: nn.Layer, width: int) -> None:
        """Five tokens under a mask that hides none: as they are, with another last one, and two exchanged."""
        x = paddle.to_tensor(np.random.default_rng(3).normal(size=(2, 5, width)).astype(paddle.get_default_dtype()))
        other_end = paddle.concat([x[:, :4], x[:, 4:] + 1.0], 1)
        order = paddle.to_tensor([0, 3, 2, 1, 4])
        exchanged = x.index_select(order, 1)
        everything = paddle.ones([2, 1, 5, 5], "bool")
        with paddle.no_grad():
            usual, end, moved = (self(layer, y, y, y, everything) for y in (x, other_end, exchanged))
            self.looks_back_only = float((end - usual)[:, :4].abs().max()) < 1e-6 * float(usual.abs().max())
            self.has_positions = not bool(paddle.allclose(moved, usual.index_select(order, 1), rtol=1e-4, atol=1e-5))

    def _hides_the_future(self, layer: nn.Layer, width: int, form: tuple[str, int]) -> bool:
        """Whether, under a causal mask of this form, other first tokens change the last output and no other way
        round."""
        rng = np.random.default_rng(2)
        x = paddle.to_tensor(rng.normal(size=(2, 4, width)).astype(paddle.get_default_dtype()))
        texts = [x, x.clone(), x.clone()]
        for text, t in zip(texts[1:], (0, 3)):
            text[:, t] = x[:, t] + 1.0
        past = paddle.tril(paddle.ones([4, 4])).astype("bool").expand([2, 1, 4, 4])
        with paddle.no_grad():
            usual, early, late = (
                first(layer(**self._arguments(y if self.key is None else x, y, y, past, form))).numpy() for y in texts
            )
        if list(usual.shape) != [2, 4, width]:
            raise ValueError(f"it returns {list(usual.shape)}")
        effect, leak = np.abs(early - usual)[:, 3].max(), np.abs(late - usual)[:, :3].max()
        return bool(np.isfinite(usual).all() and leak < 1e-6 < effect)

    def _forms(self) -> Iterator[tuple[str, int]]:
        if self.mask is not None and self.mask.lower() in VALID_LENGTHS:
            yield OF_LENGTHS
            return
        for convention in self.conventions:
            yield from ((convention, dimensions) for dimensions in SHAPES)

    def expected_failures(self) -> dict[str, str]:
        """What cannot be seen of a layer that is called like this."""
        failures = {}
        if self.key is None:
            failures["attends"] = "queries, keys and values are one text"
        failures |= without_dropout(self.cls)
        if self.mask is None:
            failures["bidirectional"] = "it takes no mask"
        return failures

    def description(self) -> str:
        """What was worked out about the mask, and about positions, for people."""
        places = "it tells places apart by itself" if self.has_positions else "all places of a text are alike to it"
        if self.looks_back_only:  # so that exchanged tokens say nothing of positions
            places = "no token sees a later one"
        if self.mask is None:
            return f"it takes no mask; {places}"
        convention, dimensions = form = self.form or next(self._forms())
        if form == OF_LENGTHS:
            return f"`{self.mask}` [B, Tq]: {LENGTHS}; {places}"
        return f"mask `{self.mask}` {SHAPES[dimensions]}: {CONVENTIONS[convention]}; {places}"


def _called(names: list[str], usual: tuple[str, ...]) -> str | None:
    """The first of `names` that is a usual one, or is one in longer words: `input_Q`, `query_states`."""
    for name in names:
        short = re.sub(r"^(inputs?|x)_|_(inputs?|states?|tensor|layer)$", "", name.lower())
        if name.lower() in usual or short in usual:
            return name
    return None


def mask_of_form(allowed: Tensor, convention: str, dimensions: int, dtype) -> Tensor:
    """A mask bool [B, 1, Tq, Tk] in somebody's form. Nothing here hides a key that stands before a visible one."""
    if (convention, dimensions) == OF_LENGTHS:
        return allowed.astype("int64").sum(-1)[:, 0]
    if convention.startswith("hidden"):
        allowed = paddle.logical_not(allowed)
    if convention == "additive":
        allowed = (1.0 - allowed.astype(dtype)) * MASKED_SCORE
    elif convention.endswith(NUMBERS):
        allowed = allowed.astype(dtype)
    return {4: allowed, 3: allowed[:, 0], 2: allowed[0, 0]}[dimensions]


@dataclass(frozen=True)
class OneText(KeyValue):
    """The cache of a layer that takes one text for keys and values, and may be for queries too: none of them can be
    changed alone."""


def attention(cls: type, options: Mapping[str, object], mask: str | None = None) -> tuple[type[Attention], Call]:
    """An attention `forward(query, key, value, mask)`, or `forward(x, mask)` for self-attention alone."""
    call = Call(cls, mask)

    class OrdinaryAttention(Attention):
        """The layer; what is cached of the past are the vectors that it gets."""

        def __init__(self, d_model: int, num_heads: int, dropout: float, site: LayerSite, max_length: int):
            super().__init__()
            if call.key is None and site.sublayer == "cross":
                raise ValueError(f"{cls.__name__}.forward takes no key and no value, so it cannot look at another text")
            if call.key is None and call.looks_back_only and not site.causal:
                raise ValueError(f"no token sees a later one in {cls.__name__}, whatever the mask: it is for a decoder")
            values = {"d_model": d_model, "num_heads": num_heads, "head_dim": d_model // num_heads}
            self.layer = built(cls, values | {"dropout": dropout, "max_length": max_length}, options)
            call.settle(self.layer, d_model)
            self.has_positions = call.has_positions
            if call.has_positions and site.sublayer == "cross":
                raise ValueError(f"{cls.__name__} tells places apart by itself, and two texts share none")

        def project(self, source: Tensor, info: TokenInfo) -> KeyValue:
            cache = OneText if call.value is None or self.has_positions else KeyValue
            return cache(source.unsqueeze(1), source.unsqueeze(1))  # [B, 1, T, C]

        def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
            key, value = kv.key.squeeze(1), kv.value.squeeze(1)
            queries, keys = x.shape[1], key.shape[1]
            allowed = mask.allowed().expand([x.shape[0], 1, queries, keys])
            if call.key is not None and not self.has_positions:
                return call(self.layer, x, key, value, allowed)
            # It gets the whole text, as its only input or to know where x stands; we want the outputs of x alone.
            before = paddle.ones([x.shape[0], 1, keys - queries, keys], "bool")
            if mask.causal:
                before = before & (paddle.arange(keys - queries).unsqueeze(1) >= paddle.arange(keys))
            return call(self.layer, key, key, value, paddle.concat([before, allowed], 2))[:, keys - queries :]

    failures = {"repeatable": OWN_DROPOUT} | call.expected_failures()
    return adapted(cls, OrdinaryAttention, failures), call
