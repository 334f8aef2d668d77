"""A learner's ordinary layer as a component: `forward(query, key, value, mask)` and the like, checked as it is.

Names of constructor parameters and the form of the mask differ from author to author; both are worked out here, and what
was worked out is told.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.errors import UserError, unknown
from paddle_tfm.protocols import (
    MASKED_SCORE,
    Attention,
    KeyValue,
    LayerSite,
    Mask,
    Norm,
    PositionalEncoding,
    Tap,
    TokenInfo,
)

MASKS = ("allowed", "hidden", "additive")

OWN_DROPOUT = "Paddle's dropout draws from one stream for all layers; paddle_tfm.layers.Dropout gives each step its own"

# given -> what authors call it
NAMES: dict[str, tuple[str, ...]] = {
    "d_model": (
        "d_model", "embed_dim", "hidden_size", "hidden_dim", "model_dim", "dim", "n_embd", "emb_size", "embed_size",
        "embedding_dim", "d_embed", "emb_dim", "input_dim", "features", "num_features", "normalized_shape", "size", "d",
    ),
    "num_heads": ("num_heads", "n_heads", "nhead", "n_head", "num_head", "heads", "h", "num_attention_heads"),
    "head_dim": ("head_dim", "head_size", "d_k", "d_v", "d_q", "dim_head", "depth"),
    "dropout": (
        "dropout", "dropout_rate", "dropout_prob", "dropout_p", "drop", "drop_prob", "p", "attn_dropout", "attention_dropout",
        "drop_rate",
    ),
    "d_ff": ("d_ff", "dff", "ffn_dim", "ffn_hidden", "d_ffn", "dim_feedforward", "hidden_ff", "ff_dim", "d_inner", "pf_dim"),
    "layers": (
        "num_layers", "n_layers", "n_layer", "layers", "num_layer", "n", "num_encoder_layers", "num_decoder_layers",
        "encoder_layers", "decoder_layers", "n_encoder_layers", "n_decoder_layers",
    ),
    "vocabulary": (
        "vocab_size", "vocab", "n_vocab", "src_vocab_size", "tgt_vocab_size", "trg_vocab_size", "src_vocab", "tgt_vocab",
        "trg_vocab", "source_vocab_size", "target_vocab_size", "source_vocabulary", "target_vocabulary", "input_vocab_size",
        "enc_voc_size", "dec_voc_size", "output_dim",
    ),
    "pad_id": ("pad_id", "pad_idx", "padding_idx", "pad", "src_pad_idx", "tgt_pad_idx", "trg_pad_idx", "pad_token_id"),
    "max_length": ("max_length", "max_len", "maxlen", "max_seq_len", "max_position", "seq_len", "block_size", "context_length"),
}  # fmt: skip
SHORT = ("size", "d", "h", "depth", "p", "n")  # may mean something else: what has a default keeps it
QUERY, KEY, VALUE = ("query", "q", "queries", "x"), ("key", "k", "keys", "memory"), ("value", "v", "values")
MASK = ("mask", "attn_mask", "attention_mask", "src_mask", "tgt_mask", "masks", "causal_mask")


def constructor(cls: type, given: Mapping[str, object], options: Mapping[str, object]) -> dict[str, object]:
    """Arguments for a constructor: the options, and for its other parameters what the kit has under any usual name; numbers
    in the place of their defaults too, so that what is built is small.

    Raises:
        UserError: an option that it does not have, or a required parameter that nobody can fill.
    """
    signature = inspect.signature(cls.__init__).parameters
    accepted = {name: p for name, p in list(signature.items())[1:] if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    for name in options:
        if name not in accepted:
            raise UserError(unknown(f"option of {cls.__name__}", name, accepted))
    meaning = {alias: key for key, aliases in NAMES.items() for alias in aliases}
    found = {}
    for name, parameter in accepted.items():
        key = meaning.get(name.lower())
        if name in options:
            found[name] = options[name]
        elif key in given and (parameter.default is parameter.empty or _is_size(name, parameter.default)):
            found[name] = given[key]
        elif parameter.default is parameter.empty:
            raise UserError(
                f"{cls.__name__} needs the argument '{name}', which the kit does not know; give it: --option {name}=…"
            )
    return found


def _is_size(name: str, default: object) -> bool:
    return isinstance(default, (int, float)) and not isinstance(default, bool) and name.lower() not in SHORT


def first(out: object) -> Tensor:
    """The output of a layer that may return weights beside it."""
    out = out[0] if isinstance(out, (tuple, list)) else out
    if not isinstance(out, Tensor):
        raise UserError(
            f"`forward` returns {type(out).__name__}; it must return a tensor, or a tuple that begins with one"
        )
    return out


# ----------------------------------------------------------------------------------------------------------- attention


class Call:
    """How to call `forward`: which parameter is what, and what a mask looks like."""

    def __init__(self, cls: type, mask: str | None):
        names = [
            name
            for name, p in list(inspect.signature(cls.forward).parameters.items())[1:]
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        self.cls, self.stated = cls, mask
        self.mask = next((name for name in names if name.lower() in MASK), None)
        rest = [name for name in names if name != self.mask]
        self.key = next((name for name in rest if name.lower() in KEY), None)
        self.value = next((name for name in rest if name.lower() in VALUE), None)
        self.query = next((name for name in rest if name.lower() in QUERY), rest[0] if rest else None)
        if self.query is None:
            raise UserError(f"{cls.__name__}.forward takes no input; it should be forward(query, key, value, mask)")
        self.form: tuple[str, int] | None = None  # (convention, dimensions)

    def __call__(self, layer: nn.Layer, x: Tensor, key: Tensor, value: Tensor, allowed: Tensor) -> Tensor:
        """allowed bool [B, 1, Tq, Tk]."""
        form = self.form if self.form is not None else (self.stated or "allowed", 4)
        return first(layer(**self._arguments(x, key, value, allowed, form)))

    def _arguments(self, x, key, value, allowed, form: tuple[str, int]) -> dict[str, Tensor]:
        found = {self.query: x}
        if self.key is not None:
            found[self.key] = key
        if self.value is not None:
            found[self.value] = value
        if self.mask is not None:
            found[self.mask] = masked(allowed, *form, x.dtype)
        return found

    def settle(self, layer: nn.Layer, width: int) -> None:
        """Find the form of the mask under which the future is hidden and the past is not; if there is none, the first
        that runs, so that the checks say what is wrong.

        Raises:
            UserError: the layer fails whatever mask it is given.
        """
        if self.form is not None or self.mask is None:
            return
        rng = np.random.default_rng(2)
        x = paddle.to_tensor(rng.normal(size=(2, 4, width)).astype(paddle.get_default_dtype()))
        changed = {t: x.clone() for t in (0, 3)}
        for t, other in changed.items():
            other[:, t] = x[:, t] + 1.0
        past = paddle.tril(paddle.ones([4, 4])).astype("bool").expand([2, 1, 4, 4])
        runs, trouble = None, None
        training, layer.training = layer.training, False
        layer.eval()
        for form in self._forms():
            try:
                with paddle.no_grad():
                    outs = [
                        first(layer(**self._arguments(x, y, y, past, form))).numpy() for y in (x, *changed.values())
                    ]
            except UserError:
                raise
            except Exception as error:
                trouble = trouble or error
                continue
            if list(outs[0].shape) != [2, 4, width]:
                trouble = trouble or ValueError(f"it returns {list(outs[0].shape)}")
                continue
            runs = runs or form
            seen, hidden = np.abs(outs[1] - outs[0])[:, 3].max(), np.abs(outs[2] - outs[0])[:, :3].max()
            if np.isfinite(outs[0]).all() and hidden < 1e-6 < seen:
                runs = form
                break
        if training:
            layer.train()
        if runs is None:
            raise UserError(
                f"{self.cls.__name__}.forward fails on [2, 4, {width}] with any mask: {' '.join(str(trouble).split())[:300]}"
            )
        self.form = runs

    def _forms(self) -> Iterator[tuple[str, int]]:
        for convention in [self.stated] if self.stated else MASKS:
            yield from ((convention, dimensions) for dimensions in (4, 3, 2))

    def expected_failures(self) -> dict[str, str]:
        """What cannot be seen of a layer that is called like this."""
        found = {}
        if self.key is None:
            found["looks"] = "queries, keys and values are one text"
        if self.mask is None:
            found["both_ways"] = "it takes no mask: which way it looks, it decides itself"
        return found

    def told(self) -> str:
        """What was worked out about the mask, for people."""
        if self.mask is None:
            return "it takes no mask"
        convention, dimensions = self.form or ("allowed", 4)
        shape = {4: "[B, 1, Tq, Tk]", 3: "[B, Tq, Tk]", 2: "[Tq, Tk]"}[dimensions]
        meaning = {
            "allowed": "True where it may look",
            "hidden": "True where it may not look",
            "additive": "added to the scores",
        }
        return f"mask `{self.mask}` {shape}: {meaning[convention]}"


def masked(allowed: Tensor, convention: str, dimensions: int, dtype) -> Tensor:
    """A mask bool [B, 1, Tq, Tk] in somebody's form."""
    if convention == "hidden":
        allowed = paddle.logical_not(allowed)
    if convention == "additive":
        allowed = (1.0 - allowed.astype(dtype)) * MASKED_SCORE
    return {4: allowed, 3: allowed[:, 0], 2: allowed[0, 0]}[dimensions]


@dataclass(frozen=True)
class OneText:
    """What a layer keeps that takes one text for queries, keys and values: none of them can be changed alone."""

    both: KeyValue

    def extend(self, new: OneText) -> OneText:
        return OneText(self.both.extend(new.both))

    def select(self, rows: Tensor) -> OneText:
        return OneText(self.both.select(rows))


def attention(cls: type, options: Mapping[str, object], mask: str | None = None) -> tuple[type[Attention], Call]:
    """An attention `forward(query, key, value, mask)`, or `forward(x, mask)` for self-attention alone."""
    call = Call(cls, mask)

    class Ordinary(Attention):
        """The layer, its past kept as the vectors that it was given."""

        failures = {"repeatable": OWN_DROPOUT, **call.expected_failures(), **getattr(cls, "expected_failures", {})}

        def __init__(self, d_model: int, num_heads: int, dropout: float, site: LayerSite, max_length: int):
            super().__init__()
            if call.key is None and site.sublayer == "cross":
                raise ValueError(f"{cls.__name__}.forward takes no key and no value, so it cannot look at another text")
            given = {"d_model": d_model, "num_heads": num_heads, "head_dim": d_model // num_heads}
            self.layer = cls(**constructor(cls, given | {"dropout": dropout, "max_length": max_length}, options))
            call.settle(self.layer, d_model)

        def project(self, source: Tensor, info: TokenInfo) -> KeyValue | OneText:
            kv = KeyValue(source.unsqueeze(1), source.unsqueeze(1))  # [B, 1, T, C]
            return kv if call.key is not None else OneText(kv)

        def forward(self, x: Tensor, kv: KeyValue | OneText, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
            kv = kv.both if isinstance(kv, OneText) else kv
            key, value = kv.key.squeeze(1), kv.value.squeeze(1)
            queries, keys = x.shape[1], key.shape[1]
            allowed = mask.allowed().expand([x.shape[0], 1, queries, keys])
            if call.key is not None:
                return call(self.layer, x, key, value, allowed)
            before = paddle.ones(
                [x.shape[0], 1, keys - queries, keys], "bool"
            )  # it looks from everywhere, we from x alone
            if mask.causal:
                before = before & (paddle.arange(keys - queries).unsqueeze(1) >= paddle.arange(keys))
            return call(self.layer, key, key, value, paddle.concat([before, allowed], 2))[:, keys - queries :]

    Ordinary.__name__ = Ordinary.__qualname__ = cls.__name__
    return Ordinary, call


# ---------------------------------------------------------------------------------------------------- norm and position


def norm(cls: type, options: Mapping[str, object]) -> type[Norm]:
    """A norm `forward(x)`."""

    class Ordinary(Norm):
        failures = getattr(cls, "expected_failures", {})

        def __init__(self, d_model: int):
            super().__init__()
            self.layer = cls(**constructor(cls, {"d_model": d_model}, options))

        def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
            return first(self.layer(x))

    Ordinary.__name__ = Ordinary.__qualname__ = cls.__name__
    return Ordinary


def position(cls: type, options: Mapping[str, object]) -> type[PositionalEncoding]:
    """An encoding `forward(x)` that returns x with positions added, or the positions' vectors alone."""

    class Ordinary(PositionalEncoding):
        failures = getattr(cls, "expected_failures", {})

        def __init__(self, d_model: int, max_length: int):
            super().__init__()
            given = {"d_model": d_model, "max_length": max_length, "dropout": 0.0}
            self.layer = cls(**constructor(cls, given, options))

        def embed(self, x: Tensor, positions: Tensor) -> Tensor:
            """x stands at its positions in a longer text whose other tokens are zero."""
            batch, length, width = x.shape
            places = positions.expand([batch, length])  # [B|1, T] -> [B, T]
            longest = int(positions.max()) + 1
            rows = paddle.stack([paddle.arange(batch).unsqueeze(1).expand([batch, length]), places.astype("int64")], -1)
            text = paddle.scatter_nd_add(paddle.zeros([batch, longest, width], x.dtype), rows, x)
            out = first(self.layer(text))
            if list(out.shape) != [batch, longest, width] and out.shape[-2:] != [longest, width]:
                raise ValueError(f"{cls.__name__} makes {out.shape} of {text.shape}")
            here = paddle.gather_nd(out.expand(text.shape), rows)
            return here + x if self._alone(x) else here

        def _alone(self, x: Tensor) -> bool:
            """Whether the layer returns positions without tokens."""
            with paddle.no_grad():
                zero = paddle.zeros([1, 2, x.shape[-1]], x.dtype)
                return bool((first(self.layer(zero)) == first(self.layer(zero + 1.0))).all())

    Ordinary.__name__ = Ordinary.__qualname__ = cls.__name__
    return Ordinary
