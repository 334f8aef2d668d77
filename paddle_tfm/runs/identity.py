"""The identity of a run: everything that determines its numbers. Runs of equal identity have equal numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paddle

from paddle_tfm import blas, place, processes, runtime
from paddle_tfm.kernels.cpu import products
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.registry import Registry
from paddle_tfm.runs.changes import DESCRIPTIVE_KEYS
from paddle_tfm.runs.forms import read_stored_identity

HISTORY = ("start", "continued")  # of an identity, where there is one
KEYS = ("recipe", "components", "data", "paddle", "blas", "products", "shards", "threads", "processes")


def identity(
    plan: Plan, data: Mapping[str, str], shards: int = 0, processes: int = 1, history: Mapping[str, Any] = {}
) -> dict[str, Any]:
    """What determines a run's numbers: the resolved recipe, the plugins, the hashes of its `data`, Paddle's build, and
    what decides the last bit of every product and sum: the path of Paddle's BLAS, who computes the products of a
    training step, into how many shards that divides its batches (0: nobody has chosen yet), the threads of each, and
    how many processes (ranks) share its batches. `hash` covers all of it. Beside it: where the plugins' files were.

    history: of which weights it began (`start`), and where it was continued (`continued`), if it did or was.
    """
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
        **history,
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


def read_identity(folder: Path) -> dict[str, Any]:
    """The identity that was stored when the run started.

    Raises:
        UserError: it is missing or broken.
    """
    return read_stored_identity(folder, KEYS)


def history_of(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What an identity says of weights that a run began with, and of where it was continued."""
    return {key: stored[key] for key in HISTORY if key in stored}


def missing_plugins(stored: Mapping[str, Any], registry: Registry) -> str:
    """What to add so that a run's components are known: `--plugin FILE.py` for each file that it was trained with, or
    the names of plugins to install; "" if none is missing."""
    plugins = dict.fromkeys(provider.split(" ")[0] for provider in stored["components"].values())
    missing = [plugin for plugin in plugins if plugin not in registry.plugins.providers]
    files = stored.get("plugin_files", {})
    return " ".join(f"--plugin {files[plugin]}" if plugin in files else f"plugin '{plugin}'" for plugin in missing)
