"""The identity of a run: everything that determines its numbers. Runs of equal identity have equal numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paddle

from paddle_tfm import blas, place, processes, runtime
from paddle_tfm.component_source import recipe_text
from paddle_tfm.onednn import products
from paddle_tfm.recipe.differences import differences
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.registry import Registry
from paddle_tfm.train.forms import read_stored_identity
from paddle_tfm.units import plural

RECIPE_CHANGED = "recipe changed"
DESCRIPTIVE_KEYS = ("name", "summary", "duration", "variant", "size")  # keys of a recipe that change no number


def identity(plan: Plan, data: Mapping[str, str], shards: int = 0, processes: int = 1) -> dict[str, Any]:
    """What determines a run's numbers: the resolved recipe, the plugins, the hashes of its `data`, Paddle's build, and
    what decides the last bit of every product and sum: the path of Paddle's BLAS, who computes the products of a
    training step, into how many shards that divides its batches (0: nobody has chosen yet), the threads of each, and
    how many processes (ranks) share its batches. `hash` covers all of it. Beside it: where the plugins' files were."""
    recipe = {key: value for key, value in plan.run.data.items() if key not in DESCRIPTIVE_KEYS}
    parts = {
        "recipe": hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest(),
        "components": plan.providers(),
        "data": data,
        "paddle": f"{paddle.__version__} {paddle.version.commit}",
        "blas": blas.path_in_use() if place.on_cpu() else "gpu",
        "products": _products(plan),
        "shards": shards,
        "threads": _threads(plan, shards),
        "processes": processes,
    }
    covered = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    return {"hash": covered, **parts, "plugin_files": plan.plugin_files()}


def _products(plan: Plan) -> str:
    """Who computes the products of a training step; GPUs have their own precision, which the recipe says."""
    if not place.on_cpu():
        return "gpu"
    return products.description(plan.settings.train.products)


def _threads(plan: Plan, shards: int) -> int:
    """The threads that compute a shard; 0 on a GPU."""
    if not place.on_cpu():
        return 0
    return max(1, training_threads(plan) // max(1, min(shards, processes.available_workers())))


def training_threads(plan: Plan) -> int:
    """The threads that a run's process takes for matrix products: one where its recipe says `train.shards`, because the
    last bits of some products depend on their number."""
    return runtime.threads() if plan.settings.train.shards is None else 1


def read_shards(stored: Mapping[str, Any]) -> int:
    """Into how many shards a run that was begun divides its batches; 0: it is older than that entry, or damaged."""
    shards = stored.get("shards")
    return shards if isinstance(shards, int) and shards > 0 else 0


def read_processes(stored: Mapping[str, Any]) -> int:
    """How many processes share the batches of a run that was begun; one where it is older than that entry."""
    processes = stored.get("processes")
    return processes if isinstance(processes, int) and processes > 0 else 1


def read_identity(folder: Path) -> dict[str, Any]:
    """The identity that was stored when the run started.

    Raises:
        UserError: it is missing or broken.
    """
    return read_stored_identity(folder, ("recipe", "components", "data", "paddle"))


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One sentence for each difference between two identities."""
    sentences = [RECIPE_CHANGED] if then.get("recipe") != now.get("recipe") else []
    sentences += _data_changes(then.get("data"), now.get("data"))
    if then.get("paddle") != now.get("paddle"):
        sentences.append(f"Paddle was {then.get('paddle')} and is {now.get('paddle')}")
    products_before, products_after = _products_of(then), _products_of(now)
    if products_before.split()[0] != products_after.split()[0]:  # another machine, which has no bfloat16
        sentences.append(f"its matrix products were in {products_before} and would be in {products_after}")
    return [*sentences, *component_changes(_components(then), _components(now))]


def component_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """One sentence for each component that another plugin, or another version of it, provides now."""
    return [
        f"{name} was {before.get(name, 'absent')} and is {after.get(name, 'absent')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def _data_changes(then: object, now: object) -> list[str]:
    """Which splits have other texts."""
    if then == now:
        return []
    if not isinstance(then, Mapping) or not isinstance(now, Mapping):
        return ["data changed"]
    splits = [split for split in {**then, **now} if then.get(split) != now.get(split)]
    return [f"data changed (the texts of {', '.join(splits)})"]


def recipe_changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """`path was … and is …` for each setting that differs between two resolved recipes, but for descriptive ones."""
    changed = differences(then, now, DESCRIPTIVE_KEYS)
    return [f"{path} was {recipe_text(was)} and is {recipe_text(now)}" for path, was, now in changed]


def rounding(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One sentence for each difference that changes sums in their last bit and nothing else: such a run may be resumed,
    but its numbers will not be those of an uninterrupted one. A run older than an entry is taken as the same, unless
    it does not say its shards: they were as many as its threads, which nobody knows."""
    before, after = then.get("blas", now.get("blas")), now.get("blas")
    sentences = []
    if before != after:
        sentences.append(f"its matrix products took the path '{before}' of Paddle's BLAS and now take '{after}'")
    before, after = _products_of(then), _products_of(now)
    if before != after:
        sentences.append(f"the matrix products of its training steps were in {before} and now are in {after}")
    before, after = read_shards(then), read_shards(now)
    if "shards" not in then:
        sentences.append("its folder is older than the entry that says into how many shards its batches are divided")
    elif before != after:
        sentences.append(f"its batches were divided into {plural(before, 'shard')} and now into {after}")
    before, after = then.get("threads", now.get("threads")), now.get("threads")
    if before != after:
        sentences.append(f"the threads of each shard of its batches were {before} and now are {after}")
    before, after = read_processes(then), read_processes(now)
    if before != after:
        sentences.append(f"its batches were those of {before} processes (--nproc, --nodes), and now are of {after}")
    return sentences


def _products_of(identity: Mapping[str, Any]) -> str:
    """`products`; a run older than that entry had Paddle's."""
    return str(identity.get("products", "float32 by Paddle"))


def missing_plugins(stored: Mapping[str, Any], registry: Registry) -> str:
    """What to add so that a run's components are known: `--plugin FILE.py` for each file that it was trained with, or
    the names of plugins to install; "" if none is missing."""
    plugins = dict.fromkeys(provider.split(" ")[0] for provider in _components(stored).values())
    missing = [plugin for plugin in plugins if plugin not in registry.plugins.providers]
    files = stored.get("plugin_files")
    files = files if isinstance(files, dict) else {}
    return " ".join(f"--plugin {files[plugin]}" if plugin in files else f"plugin '{plugin}'" for plugin in missing)


def _components(identity: Mapping[str, Any]) -> dict[str, str]:
    """component → provider; empty if the file is damaged."""
    components = identity.get("components")
    return components if isinstance(components, dict) else {}
