"""The identity of a run: everything that determines its numbers. Runs of equal identity have equal numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paddle

from paddle_tfm import blas
from paddle_tfm.files import read_json
from paddle_tfm.onednn import products
from paddle_tfm.recipe.plan import Plan

DESCRIPTIVE_KEYS = ("name", "summary", "duration", "variant")  # keys of a recipe that change no number


def identity(plan: Plan, data: Mapping[str, str]) -> dict[str, Any]:
    """What determines a run's numbers: the resolved recipe, the plugins, the hashes of its `data`, Paddle's build, and
    what decides the last bit of every product: the path of Paddle's BLAS, and who computes those of a training step.
    `hash` covers all of it."""
    recipe = {key: value for key, value in plan.run.data.items() if key not in DESCRIPTIVE_KEYS}
    parts = {
        "recipe": hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest(),
        "components": plan.providers(),
        "data": data,
        "paddle": f"{paddle.__version__} {paddle.version.commit}",
        "blas": blas.path_in_use() if paddle.device.get_device() == "cpu" else "gpu",
        "products": _products(plan),
    }
    return {"hash": hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16], **parts}


def _products(plan: Plan) -> str:
    """Who computes the products of a training step; GPUs have their own precision, which the recipe says."""
    if paddle.device.get_device() != "cpu":
        return "gpu"
    return products.description(plan.settings.train.products)


def read_identity(folder: Path) -> dict[str, Any]:
    """The identity that was stored when the run started.

    Raises:
        UserError: it is missing or broken.
    """
    return read_json(folder / "identity.json", ("recipe", "components", "data", "paddle"))


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One sentence for each difference between two identities."""
    sentences = [f"{part} changed" for part in ("recipe", "data") if then.get(part) != now.get(part)]
    if then.get("paddle") != now.get("paddle"):
        sentences.append(f"Paddle was {then.get('paddle')} and is {now.get('paddle')}")
    products_before, products_after = _products_of(then), _products_of(now)
    if products_before.split()[0] != products_after.split()[0]:  # another machine, which has no bfloat16
        sentences.append(f"its matrix products were in {products_before} and would be in {products_after}")
    before, after = _components(then), _components(now)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            sentences.append(f"{name} was {before.get(name, 'absent')} and is {after.get(name, 'absent')}")
    return sentences


def rounding(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One sentence for each difference that changes sums in their last bit and nothing else: such a run may be resumed,
    but its numbers will not be those of an uninterrupted one. A run older than the entry `blas` is taken as the
    same."""
    before, after = then.get("blas", now.get("blas")), now.get("blas")
    sentences = []
    if before != after:
        sentences.append(f"its matrix products took the path '{before}' of Paddle's BLAS and now take '{after}'")
    before, after = _products_of(then), _products_of(now)
    if before != after:
        sentences.append(f"the matrix products of its training steps were in {before} and now are in {after}")
    return sentences


def _products_of(identity: Mapping[str, Any]) -> str:
    """`products`; a run older than that entry had Paddle's."""
    return str(identity.get("products", "float32 by Paddle"))


def _components(identity: Mapping[str, Any]) -> dict[str, str]:
    """component → provider; empty if the file is damaged."""
    components = identity.get("components")
    return components if isinstance(components, dict) else {}
