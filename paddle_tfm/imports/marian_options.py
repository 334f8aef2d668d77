"""`special:model.yml` of a Marian model: what it asks for, in components of ours; what nothing here computes is refused
by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from paddle_tfm.errors import UserError
from paddle_tfm.language import _

NAME = "special:model.yml"
LONGEST = 1 << 20  # bytes of it
NORMS_KEYS = (1, 11, 0)  # from this version on, training normalizes keys and values of self-attention as queries
EXACT_GELU = (1, 12, 3)  # before, gelu was x σ(1.702 x)
EPS = 1e-6

REQUIRED = ("type", "dim-emb", "dim-vocabs", "enc-depth", "dec-depth", "transformer-heads", "transformer-dim-ffn")
READ = {
    *REQUIRED,
    "version",
    "output-omit-bias",
    "tied-embeddings",
    "tied-embeddings-all",
    "tied-embeddings-src",
    "transformer-decoder-dim-ffn",
    "transformer-ffn-activation",
    "transformer-preprocess",
    "transformer-postprocess",
    "transformer-postprocess-emb",
    "transformer-postprocess-top",
}
# What says nothing of a Transformer: of recurrent stacks, of BERT, of average attention, of alignments, of training.
OF_OTHERS = {
    "bert-train-type-embeddings",
    "bert-type-vocab-size",
    "dec-cell",
    "dec-cell-base-depth",
    "dec-cell-high-depth",
    "dim-rnn",
    "enc-cell",
    "enc-cell-depth",
    "enc-type",
    "factors-combine",
    "separator-symbol",
    "transformer-aan-activation",
    "transformer-aan-depth",
    "transformer-dim-aan",
    "transformer-depth-scaling",
    "transformer-guided-alignment-layer",
}
# What may be asked for beside nothing (false, 0, "", []), as it is what a Transformer does anyway.
USUAL = {
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-attention-mask": ("default",),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (2,),
    "input-types": (["sequence", "sequence"],),
}
ACTIVATIONS = ("relu", "swish", "gelu")


class Options:
    """The options of a Marian model.

    Args:
        content: of `special:model.yml`. file: which holds it.
        as_trained: whether keys and values of a pre-norm decoder are those of its training, and not those that Marian
            decodes with.
    Raises:
        UserError: it is no YAML, lacks an option, or asks for what nothing here computes.
    """

    def __init__(self, content: bytes, file: str, as_trained: bool = False):
        self.file, self.as_trained = file, as_trained
        try:
            values = yaml.safe_load(content[:LONGEST].rstrip(b"\0").decode())
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise UserError(f"{file}: {NAME} is no YAML") from error
        if not isinstance(values, Mapping):
            raise UserError(f"{file}: {NAME} holds no options")
        self.values = values
        for key in REQUIRED:
            if key not in values:
                raise UserError(f"{file}: {NAME} has no `{key}`")
        for key, value in values.items():
            usual = USUAL.get(str(key), ())
            if (
                key in OF_OTHERS
                or (key in READ and key not in USUAL)
                or value in usual
                or (not value and key != "type")
            ):
                continue
            allowed = _(" (known is {value})").format(value=usual[0]) if usual else ""
            text = _("{file}: it asks for `{key}: {value}`, which nothing here computes{allowed}")
            raise UserError(text.format(file=file, key=key, value=value, allowed=allowed))
        match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", str(values.get("version", "")))
        self.version = tuple(map(int, match.groups())) if match else (0, 0, 0)
        self.before, self.after = self._letters("preprocess", "dnr"), self._letters("postprocess", "danr")
        self.embedding, self.top = self._letters("postprocess-emb", "dnr"), self._letters("postprocess-top", "danr")
        norms = {"layer": "n", "rms": "r"}
        used = [
            name for name, letter in norms.items() if letter in self.before + self.after + self.embedding + self.top
        ]
        if len(used) > 1:
            sentence = f"{file}: it asks for layer norm (n) and RMS norm (r) in one model, which nothing here computes"
            raise UserError(sentence)
        self.norm = used[0] if used else "layer"
        steps = (self.before, self.after, self.embedding, self.top)
        self.before, self.after, self.embedding, self.top = (each.replace("r", "n") for each in steps)
        self.width, self.heads = self.number("dim-emb"), self.number("transformer-heads")
        if self.width % self.heads:
            sentence = f"{file}: `transformer-heads: {self.heads}` must divide `dim-emb: {self.width}`"
            raise UserError(sentence)
        self.depths = {"encoder": self.number("enc-depth"), "decoder": self.number("dec-depth")}
        inner = self.number("transformer-dim-ffn")
        self.inner = {"encoder": inner, "decoder": self.number("transformer-decoder-dim-ffn", inner) or inner}
        tied_all = bool(values.get("tied-embeddings-all"))
        self.shares_embeddings = tied_all or bool(values.get("tied-embeddings-src"))
        self.ties_output = tied_all or bool(values.get("tied-embeddings"))
        self.has_bias = not values.get("output-omit-bias")
        self.activation = values.get("transformer-ffn-activation", "swish")
        if self.activation not in ACTIVATIONS:
            text = "{file}: `transformer-ffn-activation` must be one of {known}, but is {value}"
            raise UserError(text.format(file=file, known=", ".join(ACTIVATIONS), value=self.activation))
        sizes = values["dim-vocabs"]
        if not isinstance(sizes, list) or len(sizes) != 2 or not all(isinstance(size, int) for size in sizes):
            sentence = f"{file}: `dim-vocabs` must be two numbers, of source and target, but is {sizes}"
            raise UserError(sentence)

    def number(self, key: str, default: int = 0) -> int:
        """An option that is a number from 0 on. Raises UserError: it is none, or 0 where there is no default."""
        value = self.values.get(key, default)
        if not isinstance(value, int) or value < (0 if default else 1):
            raise UserError(f"{self.file}: `{key}` must be a number, but is {value}")
        return value

    def _letters(self, key: str, allowed: str) -> str:
        key = f"transformer-{key}"
        letters = str(self.values.get(key, "dan" if key == "transformer-postprocess" else "") or "")
        if wrong := letters.strip(allowed):
            text = _("{file}: `{key}: {letters}`: {letter} is a step that nothing here computes (known are {known})")
            known = ", ".join(allowed)
            raise UserError(text.format(file=self.file, key=key, letters=letters, letter=wrong[0], known=known))
        return letters

    def raw_keys(self, side: str) -> dict[str, Any] | None:
        """The attention whose keys and values come from what is not normalized, where Marian has it; else None."""
        if "n" not in self.before or (self.version >= NORMS_KEYS and (side == "encoder" or self.as_trained)):
            return None
        if self.norm != "layer":
            text = "{file}: Marian decodes RMS norm before self-attention in a way that nothing here computes; {remedy}"
            remedy = "--as-trained computes what its training did"
            raise UserError(text.format(file=self.file, remedy=remedy))
        return {"name": "raw_keys", "eps": EPS, **({"first": True} if self.version >= NORMS_KEYS else {})}

    def model(self) -> dict[str, Any]:
        """The section `model:` of the recipe."""
        is_approximate = self.activation == "gelu" and self.version < EXACT_GELU
        of_stack: Any = {"name": "swish", "beta": 1.702} if is_approximate else {"name": self.activation}
        inner = self.inner["decoder"]
        if inner != self.inner["encoder"]:
            of_stack = {"encoder": of_stack, "decoder": {**of_stack, "d_ff": inner}}
        raw = {side: self.raw_keys(side) or "multihead" for side in self.depths}
        return {
            "d_model": self.width,
            "num_heads": self.heads,
            "d_ff": self.inner["encoder"],
            "encoder_layers": self.depths["encoder"],
            "decoder_layers": self.depths["decoder"],
            "embedding_dropout": None if self.is_post and self.embedding else 0.0,
            "max_length": 512,
            "scale_embedding": True,
            "share_embeddings": self.shares_embeddings,
            "attention": "multihead" if set(map(str, raw.values())) == {"multihead"} else {**raw, "cross": "multihead"},
            "norm": {"name": self.norm, "eps": EPS},
            "placement": "post" if self.is_post else {side: self._placement(side) for side in self.depths},
            "position": {"name": "sinusoidal", "halves": True},
            "feed_forward": of_stack,
            "head": {"name": "tied" if self.ties_output else "linear", "bias": True},
        }

    @property
    def is_post(self) -> bool:
        """Whether it is plain post-norm."""
        return (self.before, self.after, self.top) == ("", "dan", "") and self.embedding in ("", "d")

    def _placement(self, side: str) -> dict[str, Any]:
        steps = {"before": self.before, "after": self.after, "embedding": self.embedding, "top": self.top}
        return {"name": "steps", **steps, **({"self_before": ""} if self.raw_keys(side) else {})}
