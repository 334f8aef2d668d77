"""Ten recipes that together use every kind of component, and four that decode; all of them tiny, over texts that are made
here or by a task. None of them needs a file from elsewhere."""

from __future__ import annotations

import random
from pathlib import Path

STEPS, STEPS_OF_A_FINISHED_RUN = 20, 300
RATE = {"name": "cosine", "peak": 1.0e-2, "warmup": 20}  # of a finished run
SMALL = {
    "base": "base.yaml",
    "summary": "one of the goldens",
    "model": {"d_model": 16, "num_heads": 2, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 2, "max_length": 64},
    "train": {"steps": STEPS, "max_tokens": 300},
    "evaluate": {"every": 10, "examples": 20},
}
NUMBERS = {"symbols": 12, "min_length": 2, "max_length": 7, "train": 600, "valid": 30, "test": 30}
CORPUS = {"name": "parallel", "train": "train.tsv", "valid": "valid.tsv", "test": "test.tsv"}

TEN = {
    "plain": {"task": {"name": "copy", **NUMBERS}},
    "r-drop": {
        "task": {"name": "reverse", **NUMBERS},
        "model": {"placement": "post", "head": "tied", "feed_forward": "gelu", "attention": "qk_norm", "norm": "layer_std"},
        "train": {"r_drop": 1.0, "label_smoothing": 0.1, "ema": 0.9, "optimizer": "adamw", "schedule": "noam"},
        "search": {"name": "beam", "size": 3},
    },
    "shards": {
        "task": {"name": "sort", **NUMBERS},
        "vocabulary": {"shared": True},
        "model": {
            "share_embeddings": True, "norm": "rms", "placement": "sandwich", "position": "rotary",
            "feed_forward": "swiglu", "head": "tied", "initializer": "small",
        },
        "train": {
            "shards": 3, "accumulate": 2, "gradient_norms": 5, "label_smoothing": 0.1,
            "optimizer": "lion", "schedule": {"name": "wsd", "peak": 1.0e-3},
        },
    },
    "bfloat16": {
        "task": {"name": "dates", "train": 600, "valid": 30, "test": 30},
        "tokenizer": {"source": "word", "target": "mixed"},
        "model": {"attention": "grouped_query", "feed_forward": "geglu", "position": "alibi"},
        "train": {"products": "bfloat16", "optimizer": {"name": "adam", "beta2": 0.99}},
    },
    "decoder-only": {
        "task": {"name": "text", "train": "train.txt", "valid": "valid.txt", "test": "test.txt", "block": 40},
        "tokenizer": "char",
        "model": {"encoder_layers": 0, "position": "learned", "feed_forward": "gelu", "initializer": "gpt2"},
        "train": {"optimizer": "adafactor", "schedule": {"name": "cosine", "peak": 3.0e-3, "warmup": 5}},
        "evaluate": {"metrics": ["bits_per_character", "perplexity", "token_accuracy"], "best": "perplexity"},
        "search": {"name": "sampling", "top_p": 0.9},
    },
    "encoder-only": {
        "task": CORPUS,
        "tokenizer": "space",
        "model": {
            "decoder_layers": 0, "attention": "talking_heads", "norm": {"name": "batch", "population": 4},
            "placement": "res_post", "position": "t5", "head": "fix",
        },
        "train": {"batches": "mixed", "optimizer": "muon", "schedule": {"name": "constant", "learning_rate": 1.0e-3}},
        "evaluate": {"metrics": ["token_error_rate", "exact_match"], "best": "token_error_rate"},
    },
    "experts": {
        "task": {"name": "reverse", **NUMBERS},
        "model": {
            "feed_forward": {"encoder": "mixture_of_experts", "decoder": "deepseek_moe"}, "norm": "scale",
            "placement": "residual_dual", "attention": "gated", "position": {"name": "chain", "parts": ["sinusoidal", "kerple"]},
        },
        "train": {"shards": 2},
    },
    "pointer": {
        "task": {"name": "names", "train": 400, "valid": 20, "test": 20},
        "vocabulary": {"min_frequency": 20},
        "model": {
            "head": "pointer", "norm": {"encoder": "regularized_batch", "decoder": "layer"},
            "placement": "hyper_connections", "attention": "sinks", "position": {"name": "shaw", "clip": 4},
        },
        "train": {"max_ratio": 3.0},
        "evaluate": {"metrics": ["exact_match", "word_error_rate"]},
    },
    "subwords": {
        "task": CORPUS,
        "tokenizer": {"name": "sentencepiece", "size": 300},
        "model": {
            "head": "adaptive", "attention": {"encoder": "multihead", "decoder": "mla"}, "feed_forward": "relu_squared", "placement": "deepnorm",
            "position": {"encoder": "transformer_xl", "decoder": "fire"}, "initializer": "normal",
        },
        "train": {"average": 2, "label_smoothing": 0.0},
        "evaluate": {"metrics": ["chrf", "bleu", "ter", "perplexity"], "best": "chrf"},
    },
    "linear": {
        "task": {"name": "copy", **NUMBERS},
        "model": {
            "attention": {"encoder": "linear", "decoder": {"self": "gated_deltanet", "cross": "differential"}},
            "norm": "dyt", "placement": "admin", "position": "scaled_sinusoidal", "feed_forward": "reglu",
            "initializer": "mup", "dropout": 0.2, "embedding_dropout": 0.0,
        },
        "train": {"clip_norm": None},
        "evaluate": {
            "tests": {"alone": {"batch": 1}, "padded": {"padding": 3}, "longer": {"task": {"test_min_length": 8, "test_max_length": 9}}},
        },
    },
}  # fmt: skip

# Runs that can say something: learned long enough that beams differ.
FINISHED = {
    "plain": TEN["plain"],
    "shards": {**TEN["shards"], "train": {"label_smoothing": 0.1}},
    "pointer": TEN["pointer"],
    "linear": {key: value for key, value in TEN["linear"].items() if key != "evaluate"},
}
EXPORTED = ("plain", "shards", "decoder-only", "bfloat16", "r-drop", "pointer")  # the last two hold what it refuses


def written(name: str, folder: Path, finished: bool = False) -> None:
    """Write `recipe.yaml` and the texts that it names into a folder."""
    own = (FINISHED if finished else TEN)[name]
    recipe = {**SMALL, "name": name, **own}
    for section in ("model", "train", "evaluate"):
        recipe[section] = {**SMALL[section], **own.get(section, {})}
    if finished:
        recipe["train"] = {**recipe["train"], "steps": STEPS_OF_A_FINISHED_RUN, "schedule": RATE}
        recipe["evaluate"] = {**recipe["evaluate"], "every": STEPS_OF_A_FINISHED_RUN}
    write_yaml(folder / "recipe.yaml", recipe)
    for split, number, size in (("train", 1, 500), ("valid", 2, 30), ("test", 3, 30)):
        pairs = _pairs(number, size)
        (folder / f"{split}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")
        (folder / f"{split}.txt").write_text("".join(f"{a} .\n" for a, _ in pairs), "utf-8")


def write_yaml(file: Path, data: object) -> None:
    """JSON is YAML, but for its exponents: every float has a point."""
    import yaml

    file.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), "utf-8")


def _pairs(seed: int, size: int) -> list[tuple[str, str]]:
    """Sentences of made-up words, and the same in capitals with other endings: as many words on both sides."""
    draw = random.Random(seed)
    words = ["ka", "lo", "mi", "ne", "pu", "ra", "soti", "tavi", "wen", "yo", "zimu", "belo", "dari", "fo"]
    rows = [[draw.choice(words) for _ in range(draw.randint(2, 7))] for _ in range(size)]
    return [(" ".join(row), " ".join(word.capitalize() + "n" * (len(word) > 2) for word in row)) for row in rows]
