"""Marian's Transformer in NumPy, as src/models/transformer.h of marian-dev has it, with its own names; and a model of
random numbers under any options, as Marian writes it."""

from __future__ import annotations

import io
import math
import zipfile

import numpy as np
import yaml

OPTIONS = {
    "type": "transformer",
    "version": "v1.12.42",
    "dim-emb": 16,
    "dim-vocabs": [30, 30],
    "enc-depth": 2,
    "dec-depth": 2,
    "transformer-heads": 4,
    "transformer-dim-ffn": 24,
    "transformer-ffn-depth": 2,
    "transformer-ffn-activation": "swish",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-decoder-autoreg": "self-attention",
    "tied-embeddings": False,
    "tied-embeddings-src": False,
    "tied-embeddings-all": True,
    "output-omit-bias": False,
    "lemma-dim-emb": 0,
    "input-types": [],
}
erf = np.vectorize(math.erf)
ACTIVATIONS = {
    "relu": lambda y: np.maximum(y, 0),
    "swish": lambda y: y / (1 + np.exp(-y)),
    "gelu": lambda y: y * (1 + erf(y / math.sqrt(2))) / 2,
    "old gelu": lambda y: y / (1 + np.exp(-1.702 * y)),
}


def random_weights(options, seed=0):
    """Name → array of all that these options need."""
    rng, width = np.random.default_rng(seed), options["dim-emb"]
    weights = {}

    def add(name, *shape, scale=0.3, around=0.0):
        weights[name] = (around + scale * rng.normal(size=shape)).astype("float32")

    def norm(name, letters, suffix=""):
        if "n" in letters:
            add(f"{name}_ln_scale{suffix}", 1, width, around=1.0)
            add(f"{name}_ln_bias{suffix}", 1, width)
        if "r" in letters:
            add(f"{name}_rms_scale{suffix}", 1, width, around=1.0)

    before, after = options["transformer-preprocess"], options["transformer-postprocess"]
    shared = options["tied-embeddings-all"] or options["tied-embeddings-src"]
    for side, depth, size in zip(
        ("encoder", "decoder"), (options["enc-depth"], options["dec-depth"]), options["dim-vocabs"]
    ):
        add("Wemb" if shared else f"{side}_Wemb", size, width)
        inner = options["transformer-dim-ffn"]
        inner = (side == "decoder" and options.get("transformer-decoder-dim-ffn")) or inner
        for i in range(1, depth + 1):
            for block in ("self", "context") if side == "decoder" else ("self",):
                for part in "qkvo":
                    add(f"{side}_l{i}_{block}_W{part}", width, width)
                    add(f"{side}_l{i}_{block}_b{part}", 1, width)
                norm(f"{side}_l{i}_{block}_Wo", before, "_pre")
                norm(f"{side}_l{i}_{block}_Wo", after)
            for number, rows, columns in (("1", width, inner), ("2", inner, width)):
                add(f"{side}_l{i}_ffn_W{number}", rows, columns)
                add(f"{side}_l{i}_ffn_b{number}", 1, columns)
            norm(f"{side}_l{i}_ffn_ffn", before, "_pre")
            norm(f"{side}_l{i}_ffn_ffn", after)
        norm(f"{side}_emb", options["transformer-postprocess-emb"], "_pre")
        norm(f"{side}_top", options["transformer-postprocess-top"])
    if not (options["tied-embeddings"] or options["tied-embeddings-all"]):
        add("decoder_ff_logit_out_Wt", options["dim-vocabs"][1], width)
    if not options["output-omit-bias"]:
        add("decoder_ff_logit_out_b", 1, options["dim-vocabs"][1])
    return weights


def write(folder, options, weights, extra=None):
    """A folder with model.npz and vocab.yml, the pieces of which are w2, w3, …"""
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(options).encode() + b"\0" * 3
    arrays = {**weights, "special:model.yml": np.frombuffer(text, np.int8), **(extra or {})}
    with zipfile.ZipFile(folder / "model.npz", "w") as file:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array)
            file.writestr(f"{name}.npy", content.getvalue())
    size = max(options["dim-vocabs"])
    pieces = ["</s>", "<unk>", *(f"w{i}" for i in range(2, size))]
    (folder / "vocab.yml").write_text("".join(f'"{piece}": {i}\n' for i, piece in enumerate(pieces)))
    return folder


class Marian:
    """The formulas. keys: of a pre-norm self-attention's keys and values, by stack: normed, raw, or (as Marian decodes)
    raw but for the first token, `first`."""

    def __init__(self, options, weights, keys, activation):
        self.options, self.keys, self.activation = options, keys, ACTIVATIONS[activation]
        self.w = {name: array.astype("float64") for name, array in weights.items()}

    def norm(self, x, name, letter, suffix=""):
        if letter == "r":
            return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * self.w[f"{name}_rms_scale{suffix}"]
        x = x - x.mean(-1, keepdims=True)
        y = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
        return y * self.w[f"{name}_ln_scale{suffix}"] + self.w[f"{name}_ln_bias{suffix}"]

    def pre(self, name, letters, x):
        for letter in letters.replace("d", ""):
            x = self.norm(x, name, letter, "_pre")
        return x

    def post(self, name, letters, y, x):
        for letter in letters.replace("d", ""):
            y = y + x if letter == "a" else self.norm(y, name, letter)
        return y

    def affine(self, x, name, part):
        return x @ self.w[f"{name}_W{part}"] + self.w[f"{name}_b{part}"]

    def look(self, name, q, source, causal):
        heads = self.options["transformer-heads"]
        q, k, v = (
            self.affine(x, name, part).reshape(len(x), heads, -1).transpose(1, 0, 2)
            for part, x in (("q", q), ("k", source), ("v", source))
        )
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        scores = np.where(np.tri(*scores.shape[1:], dtype=bool) | (not causal), scores, -1e9)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return (weights / weights.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)

    def attention(self, name, x, source, keys="raw", causal=False):
        q = self.pre(f"{name}_Wo", self.options["transformer-preprocess"], x)
        y = self.look(name, q, q if keys == "normed" else source, causal)
        if keys == "first":
            y[0] = self.look(name, q[:1], q[:1], causal)
        return self.post(f"{name}_Wo", self.options["transformer-postprocess"], self.affine(y, name, "o"), x)

    def feed_forward(self, name, x):
        y = self.activation(self.affine(self.pre(f"{name}_ffn", self.options["transformer-preprocess"], x), name, "1"))
        return self.post(f"{name}_ffn", self.options["transformer-postprocess"], self.affine(y, name, "2"), x)

    def stack(self, side, x, memory=None):
        """x [T, C], embedded."""
        width, rows = x.shape[1], x
        angles = np.arange(len(x))[:, None] * np.exp(-np.arange(width // 2) * math.log(10000) / (width // 2 - 1))
        entered = rows * math.sqrt(width) + np.concatenate([np.sin(angles), np.cos(angles)], 1)
        x = self.pre(f"{side}_emb", self.options["transformer-postprocess-emb"], entered)
        for i in range(1, self.options[f"{side[:3]}-depth"] + 1):
            x = self.attention(f"{side}_l{i}_self", x, x, self.keys[side], side == "decoder")
            x = x if memory is None else self.attention(f"{side}_l{i}_context", x, memory)
            x = self.feed_forward(f"{side}_l{i}_ffn", x)
        return self.post(f"{side}_top", self.options["transformer-postprocess-top"], x, entered)

    def log_probs(self, source, target):
        """Of each next piece [T + 1, V], after none of `target` and after each, ids as Marian has them."""
        tables = {side: self.w.get("Wemb", self.w.get(f"{side}_Wemb")) for side in ("encoder", "decoder")}
        memory = self.stack("encoder", tables["encoder"][source])
        begun = np.concatenate([np.zeros((1, memory.shape[1])), tables["decoder"][target]])
        h = self.stack("decoder", begun, memory)
        tied = self.options["tied-embeddings"] or self.options["tied-embeddings-all"]
        logits = h @ (tables["decoder"] if tied else self.w["decoder_ff_logit_out_Wt"]).T
        logits = logits + self.w.get("decoder_ff_logit_out_b", 0.0)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))
