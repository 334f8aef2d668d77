"""The recipe that all sides of a benchmark are built from: sizes, and what `paddle.nn.Transformer` has."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from paddle_tfm.bench.sizes import SIZES
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.merging import override

PLACEMENTS = ("pre", "post")
# What `paddle.nn.Transformer` has, in place of the recipe's values; data, sizes and dropout are the recipe's.
SAME: dict[str, object] = {
    "model.attention": "multihead",
    "model.norm": "layer",
    "model.position": "sinusoidal",
    "model.head": "linear",
    "model.share_embeddings": False,
    "train.accumulate": 1,
    "train.optimizer": "adam",
    "train.schedule": {"name": "constant", "learning_rate": 1e-4},
    "train.label_smoothing": 0.0,
}


def settings(
    recipe: str | None = None, overrides: Sequence[str] = (), size: str | None = None, placement: str = "pre"
) -> dict:
    """The resolved recipe that all sides are built from; arguments as for `measure`.

    Raises:
        UserError: an unknown size or placement; an override of what must be the same; whatever is wrong in the recipe.
    """
    size = "small" if size is None and recipe is None else size
    if size is not None and size not in SIZES:
        raise UserError(unknown("size", size, SIZES))
    if placement not in PLACEMENTS:
        raise UserError(unknown("placement", placement, PLACEMENTS))
    for key in (text.partition("=")[0].strip() for text in overrides):
        if any(f"{key}.".startswith(f"{path}.") for path in (*SAME, "model.placement", "model.feed_forward")):
            raise UserError(f"override '{key}': the benchmark sets it to what `paddle.nn.Transformer` has")
    lines = [f"model.{key}={value}" for key, value in ({} if size is None else SIZES[size]).items()]
    if recipe is None:
        lines += [f"task={json.dumps(_text())}", "vocabulary.max_size=8000", "train.max_tokens=1024"]
    loaded = recipes.load(recipe or "base", [*lines, *overrides])
    loaded.require_one_model()
    for path, value in {**SAME, "model.placement": placement}.items():
        override(loaded.data, path, value, loaded.origins, {})
    # By default, `nn.Transformer` applies the same dropout to the hidden layer of the feed-forward.
    relu = {"name": "relu", "inner_dropout": loaded.data["model"].get("dropout", 0.0)}
    override(loaded.data, "model.feed_forward", relu, loaded.origins, {})
    for key in ("variants", "grid", "baseline", "ladder", "equal"):
        loaded.data.pop(key, None)
    if isinstance(loaded.data.get("seeds"), list):
        loaded.data["seeds"] = loaded.data["seeds"][:1]
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


def prepare(
    folder: Path, resolved: dict, batches: int, plugins: Sequence[str | Path] = (), length: int | None = None
) -> None:
    """Write the recipe and the request for the worker of our side."""
    (folder / "recipe.yaml").write_text(yaml_lines.dump(resolved), "utf-8")
    request = {"batches": batches, "length": length, "plugins": [str(Path(file).resolve()) for file in plugins]}
    (folder / "request.json").write_text(json.dumps(request), "utf-8")
