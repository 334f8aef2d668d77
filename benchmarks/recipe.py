"""The recipe that all sides of a training step are built from: sizes, and what `paddle.nn.Transformer` has."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from paddle_tfm.errors import UserError
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.recipe.merging import override

SIZES: dict[str, dict[str, int]] = {
    "tiny": {"d_model": 64, "num_heads": 4, "d_ff": 256, "encoder_layers": 2, "decoder_layers": 2},
    "small": {"d_model": 256, "num_heads": 4, "d_ff": 1024, "encoder_layers": 3, "decoder_layers": 3},
    "base": {"d_model": 512, "num_heads": 8, "d_ff": 2048, "encoder_layers": 6, "decoder_layers": 6},
}
# What `paddle.nn.Transformer` has.
SAME: dict[str, object] = {
    "model.attention": "multihead",
    "model.norm": "layer",
    "model.placement": "pre",
    "model.position": "sinusoidal",
    "model.head": "linear",
    "model.share_embeddings": False,
    "train.accumulate": 1,
    "train.optimizer": "adam",
    "train.schedule": {"name": "constant", "learning_rate": 1e-4},
    "train.label_smoothing": 0.0,
}


def common_recipe(size: str, overrides: Sequence[str] = ()) -> dict:
    """The resolved recipe of one of `SIZES` with `overrides` on top: Multi30k's English and German where the folder
    ``PADDLE_TFM_DATA`` has it, otherwise the task `dates`; batches of 1,024 tokens.

    Raises:
        UserError: an override of what must be the same; whatever is wrong in one.
    """
    for key in (text.partition("=")[0].strip() for text in overrides):
        if any(f"{key}.".startswith(f"{path}.") for path in (*SAME, "model.feed_forward", "seeds", "variants")):
            raise UserError(f"override '{key}': the benchmark sets it to what `paddle.nn.Transformer` has")
    lines = [f"model.{key}={value}" for key, value in SIZES[size].items()]
    lines += [f"task={json.dumps(_text())}", "vocabulary.max_size=8000", "train.max_tokens=1024", "seeds=[1]"]
    loaded = recipes.load("base", [*lines, *overrides])
    for path, value in SAME.items():
        override(loaded.data, path, value, loaded.origins, {})
    # By default, `nn.Transformer` applies the same dropout to the hidden layer of the feed-forward.
    relu = {"name": "relu", "inner_dropout": loaded.data["model"]["dropout"]}
    override(loaded.data, "model.feed_forward", relu, loaded.origins, {})
    (spec,) = loaded.runs()
    return spec.data


def _text() -> dict:
    """The task, as in a recipe: Multi30k if it is there, otherwise `dates`."""
    folder = os.environ.get("PADDLE_TFM_DATA")
    for parent in (Path(folder) / "multi30k", Path(folder)) if folder else ():
        files = [parent / f"train.{language}.gz" for language in ("en", "de")]
        if all(file.is_file() for file in files):
            return {"name": "parallel", "train": [str(file.resolve()) for file in files]}
    return {"name": "dates"}
