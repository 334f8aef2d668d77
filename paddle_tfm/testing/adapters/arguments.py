"""Arguments of constructors whose names differ from author to author."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.errors import UserError, unknown
from paddle_tfm.protocols import keep_initial

# what the kit has -> what authors call it
NAMES: dict[str, tuple[str, ...]] = {
    "d_model": (
        "d_model", "embed_dim", "hidden_size", "hidden_dim", "model_dim", "dim", "n_embd", "emb_size", "embed_size",
        "embedding_dim", "d_embed", "emb_dim", "input_dim", "features", "num_features", "normalized_shape",
        "norm_shape", "hid_dim", "num_hiddens", "query_size", "key_size", "value_size", "ffn_num_input", "dim_model",
        "ndim", "channels", "dim_in", "model_size", "d_word_vec", "n_feat", "num_embed", "num_channels", "in_channels",
        "in_dim", "idim", "adim", "ninp", "emb", "feature_size", "in_features", "input_size", "size", "d",
    ),
    "num_heads": (
        "num_heads", "n_heads", "nhead", "n_head", "num_head", "heads", "h", "num_attention_heads", "enc_heads",
        "dec_heads", "encoder_attention_heads", "decoder_attention_heads", "head_count", "attn_heads",
        "attention_heads", "num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_kv_head", "kv_heads", "aheads",
    ),
    "head_dim": ("head_dim", "head_size", "d_k", "d_v", "d_q", "dim_head", "d_kv", "key_dim", "dim_per_head", "depth"),
    "dropout": (
        "dropout", "dropout_rate", "dropout_prob", "dropout_p", "drop", "drop_prob", "p", "attn_dropout",
        "attention_dropout", "drop_rate", "enc_dropout", "dec_dropout", "residual_dropout", "attn_pdrop", "resid_pdrop",
        "embd_pdrop", "attn_drop", "attention_probs_dropout_prob", "hidden_dropout_prob", "act_dropout",
        "activation_dropout",
    ),
    "d_ff": (
        "d_ff", "dff", "ffn_dim", "ffn_hidden", "d_ffn", "dim_feedforward", "hidden_ff", "ff_dim", "d_inner", "pf_dim",
        "ffn_num_hiddens", "intermediate_size", "dim_ff", "mlp_dim", "inner_dim", "filter_size",
        "d_inner_hid", "encoder_ffn_dim", "decoder_ffn_dim", "enc_pf_dim", "dec_pf_dim", "linear_units", "ff_size",
        "hidden_units", "d_hid", "n_inner", "ffn_embed_dim", "hidden_features", "ff_hidden", "ffn_dims",
        "ffn_hidden_size", "ffn_hidden_dim", "ffn_size", "mlp_hidden_dim",
    ),
    "layers": (
        "num_layers", "n_layers", "n_layer", "layers", "num_layer", "n", "num_encoder_layers", "num_decoder_layers",
        "encoder_layers", "decoder_layers", "n_encoder_layers", "n_decoder_layers", "num_blocks", "n_blocks",
        "num_blks", "num_hidden_layers", "enc_layers", "dec_layers",
    ),
    "vocabulary": (
        "vocab_size", "vocab", "n_vocab", "src_vocab_size", "tgt_vocab_size", "trg_vocab_size", "src_vocab",
        "tgt_vocab", "trg_vocab", "source_vocab_size", "target_vocab_size", "source_vocabulary", "target_vocabulary",
        "input_vocab_size", "enc_voc_size", "dec_voc_size", "output_dim", "n_src_vocab",
        "n_trg_vocab", "n_tgt_vocab", "num_tokens", "ntoken", "ntokens",
    ),
    "pad_id": ("pad_id", "pad_idx", "padding_idx", "pad", "src_pad_idx", "tgt_pad_idx", "trg_pad_idx", "pad_token_id"),
    "bos_id": ("bos_id", "bos_idx", "bos_token_id", "sos_id", "sos_idx", "src_sos_idx", "tgt_sos_idx", "trg_sos_idx"),
    "max_length": (
        "max_length", "max_len", "maxlen", "max_seq_len", "max_position", "seq_len", "block_size", "context_length",
        "max_position_embeddings", "n_positions", "num_positions", "max_positions", "max_seq_length",
        "max_sequence_length", "seq_length", "sequence_length", "n_ctx", "max_target_positions",
        "max_source_positions", "src_len", "src_seq_len", "n_position", "maximum_position_encoding",
        "num_embeddings", "init_size", "max_pos",
    ),
    "multiple": ("multiple_of",),
}  # fmt: skip
OWN_DROPOUT = "Paddle's dropout draws from one stream for all layers; paddle_tfm.layers.Dropout gives each step its own"
INSIDE = "layer."  # what paths of an ordinary layer's parameters begin with, in the component that holds it
INNER = ("hidden_dim", "hidden_size", "hid_dim", "hidden", "num_hiddens")
"""d_model; of a feed-forward d_ff where another parameter is called like d_model."""
CONFIGS = ("config", "cfg", "conf", "args", "configuration", "hparams", "hp", "params", "model_args", "opt")
SHORT = ("size", "d", "h", "depth", "p", "n")  # may mean something else: what has a default keeps it


def adapted(cls: type[Any], adapter: type[Any], failures: Mapping[str, str]) -> type[Any]:
    """An adapter that holds a layer of somebody's class, under its name and with its docstring, by which reports know
    it. failures: what cannot be seen of such a layer."""
    adapter.__name__ = adapter.__qualname__ = cls.__name__
    adapter.__doc__ = cls.__doc__
    adapter.inside, adapter.expected_failures = INSIDE, {**failures, **getattr(cls, "expected_failures", {})}
    return adapter


def constructor(
    cls: type[Any],
    values: Mapping[str, object],
    options: Mapping[str, object],
    advice: str = "",
) -> dict[str, object]:
    """Arguments for a constructor: the options, and for its other parameters the kit's `values` under any usual name;
    numbers in the place of their defaults too, so that what is built is small. An option that is the name of one of
    these, as in `hid_dim=d_model`, has its value. A config object is made of the same; options that the constructor
    does not have are its. `advice`: what to do about one that nobody can fill.

    Raises:
        UserError: an option that it does not have, or a required parameter that nobody can fill.
    """
    signature = inspect.signature(cls.__init__).parameters
    accepted = {name: p for name, p in list(signature.items())[1:] if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    configs = {
        name: config
        for name, p in accepted.items()
        if name not in options and p.default is p.empty and (config := _config_class(cls, name))
    }
    of_configs = {name: value for name, value in options.items() if name not in accepted}
    for name in of_configs:
        if not configs:
            raise UserError(unknown(f"option of {cls.__name__}", name, accepted))
    meaning = {alias: key for key, aliases in NAMES.items() for alias in aliases}
    of_a_feed_forward = "d_ff" in values and "layers" not in values
    widths = [name.lower() for name in accepted if meaning.get(name.lower()) == "d_model"]
    if of_a_feed_forward and any(name not in INNER for name in widths):
        meaning |= dict.fromkeys(INNER, "d_ff")
    arguments = {}
    for name, parameter in accepted.items():
        key = meaning.get(name.lower(), "")
        if name in options:
            value = options[name]
            arguments[name] = values[value] if isinstance(value, str) and value in values else value
        elif key == "max_length" and key in values and _is_size(name, parameter.default):
            arguments[name] = max(parameter.default, values[key])  # its own, where that is enough
        elif key in values and (parameter.default is parameter.empty or _is_size(name, parameter.default)):
            arguments[name] = values[key]
        elif configs.get(name) is Config:
            usual = {alias: values[key] for alias, key in meaning.items() if key in values}
            arguments[name] = Config({**usual, **of_configs})
        elif config := configs.get(name):
            arguments[name] = config(**constructor(config, values, of_configs))
        elif parameter.default is parameter.empty:
            known = [each for each in values if each in NAMES]
            advice = advice or (
                f"give it, --option {name}=…, or say which number of the model it is, --option {name}={known[0]} "
                f"({', '.join(known)}), or check a subclass that fills it in"
            )
            raise UserError(f"{cls.__name__} needs the argument '{name}', which the kit does not know; {advice}")
    return arguments


class Config(dict):
    """A config object, or mapping, of which nobody says what it holds: what the kit has, under any usual name."""

    def __getattr__(self, name: str) -> object:
        if name not in self:
            raise AttributeError(
                f"it reads `{name}` of its config, which the kit does not know: give --option {name}=…"
            )
        return self[name]


def _config_class(cls: type[Any], name: str) -> type[Any] | None:
    """What makes a constructor's argument `name`, if that is a config object: a dataclass by which it is annotated,
    or `Config`."""
    with contextlib.suppress(Exception):  # a name that stands in no module
        annotation = typing.get_type_hints(cls.__init__).get(name)
        if inspect.isclass(annotation) and dataclasses.is_dataclass(annotation):
            return annotation
    return Config if name.lower() in CONFIGS else None


def built(cls: type[Any], values: Mapping[str, object], options: Mapping[str, object]) -> nn.Layer:
    """An ordinary layer with what `constructor` finds for it. Its matrices get initial values of the engine's as any
    component's do; what it starts at one value all over, or keeps in one row, are gains, gates and scales, and stay:
    nobody who wrote it without paddle_tfm could mark them."""
    layer = cls(**constructor(cls, values, options))
    usual = paddle.get_default_dtype()  # "float32" stands in many a constructor; checks need float64 too
    if usual != "float32" and any(parameter.dtype == paddle.float32 for parameter in layer.parameters()):
        layer.to(dtype=usual)
    for parameter in layer.parameters():
        if parameter.ndim > 1 and (max(parameter.shape) == parameter.size or np.ptp(parameter.numpy()) == 0):
            keep_initial(parameter)
    return layer


def _is_size(name: str, default: object) -> bool:
    return isinstance(default, (int, float)) and not isinstance(default, bool) and name.lower() not in SHORT


def without_dropout(cls: type[Any]) -> dict[str, str]:
    """What cannot be seen of a layer whose constructor takes no dropout."""
    return {} if _names(cls) & {*NAMES["dropout"]} else {"dropout": "its constructor takes no dropout"}


def without_width(cls: type[Any]) -> dict[str, str]:
    """What cannot be seen of a feed-forward whose constructor takes no d_ff."""
    names = _names(cls)
    inner = names & {*INNER} and names & {*NAMES["d_model"]} - {*INNER}
    return {} if inner or names & {*NAMES["d_ff"]} else {"width": "its constructor takes no width of the hidden layer"}


def _names(cls: type[Any]) -> set[str]:
    """Of what a constructor takes; those of a config object stand in the source."""
    names = {name.lower() for name in inspect.signature(cls.__init__).parameters}
    if any(_config_class(cls, name) for name in names):
        names |= {*re.findall(r"\w+", inspect.getsource(cls).lower())}
    return names


def first(out: object) -> Tensor:
    """The output of a layer that may return weights beside it."""
    out = out[0] if isinstance(out, (tuple, list)) else out
    if not isinstance(out, Tensor):
        raise UserError(
            f"`forward` returns {type(out).__name__}; it must return a tensor, or a tuple that begins with one"
        )
    return out
