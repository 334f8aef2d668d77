"""What decides the numbers of a run, so that one can tell whether another would have the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paddle

from paddle_tfm.files import read_json
from paddle_tfm.recipe.plan import Plan

WORDS = ("name", "summary", "duration", "variant")  # of a recipe: they change no number


def identity(plan: Plan, data: Mapping[str, str]) -> dict[str, Any]:
    """What decides a run's numbers: the resolved recipe, plugins, the hashes of its `data`, Paddle's build. `hash` covers
    all of it."""
    recipe = {key: value for key, value in plan.run.data.items() if key not in WORDS}
    parts = {
        "recipe": hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest(),
        "components": plan.providers(),
        "data": data,
        "paddle": f"{paddle.__version__} {paddle.version.commit}",
    }
    return {"hash": hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16], **parts}


def read_identity(folder: Path) -> dict[str, Any]:
    """The identity that a run had when it began.

    Raises:
        UserError: it is missing or broken.
    """
    return read_json(folder / "identity.json", ("recipe", "components", "data", "paddle"))


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Sentences about what differs between two identities."""
    sentences = [f"{what} changed" for what in ("recipe", "data") if then.get(what) != now.get(what)]
    if then.get("paddle") != now.get("paddle"):
        sentences.append(f"Paddle was {then.get('paddle')} and is {now.get('paddle')}")
    before, after = _components(then), _components(now)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            sentences.append(f"{name} was {before.get(name, 'absent')} and is {after.get(name, 'absent')}")
    return sentences


def _components(identity: Mapping[str, Any]) -> dict[str, str]:
    """component → provider; nothing where the file was damaged."""
    components = identity.get("components")
    return components if isinstance(components, dict) else {}
