"""What decides the numbers of a run, so that one can tell whether another would have the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import paddle

from paddle_tfm.files import read_json
from paddle_tfm.recipe.settings import components
from paddle_tfm.registry import Registry, Spec


def component_providers(recipe: dict, registry: Registry) -> dict[str, str]:
    """component → plugin and version that provide it, those inside of others too."""
    providers, pending = {}, [(kind, spec, path) for kind, path, spec in components(recipe)]
    while pending:
        kind, spec, path = pending.pop()
        entry = registry.entry(kind, Spec.parse(spec).name)
        providers[f"{kind} {entry.name}"] = f"{entry.provider.plugin} {entry.provider.version}"
        pending += registry.parts(kind, spec, path)
    return dict(sorted(providers.items()))


def identity(recipe: dict, registry: Registry, data: dict[str, str]) -> dict[str, object]:
    """What decides a run's numbers: the resolved recipe, plugins, the hashes of its `data`, Paddle's build. `hash` covers
    all of it."""
    relevant = {key: value for key, value in recipe.items() if key not in ("name", "summary", "duration", "variant")}
    parts = {
        "recipe": hashlib.sha256(json.dumps(relevant, sort_keys=True).encode()).hexdigest(),
        "components": component_providers(recipe, registry),
        "data": data,
        "paddle": f"{paddle.__version__} {paddle.version.commit}",
    }
    return {"hash": hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16], **parts}


def read_identity(folder: Path) -> dict:
    """The identity that a run had when it began.

    Raises:
        UserError: it is missing or broken.
    """
    return read_json(folder / "identity.json", ("recipe", "components", "data", "paddle"))


def changes(then: dict, now: dict) -> list[str]:
    """Sentences about what differs between two identities."""
    sentences = [f"{what} changed" for what in ("recipe", "data") if then.get(what) != now.get(what)]
    if then.get("paddle") != now.get("paddle"):
        sentences.append(f"Paddle was {then.get('paddle')} and is {now.get('paddle')}")
    before, after = (part["components"] if isinstance(part.get("components"), dict) else {} for part in (then, now))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            sentences.append(f"{name} was {before.get(name, 'absent')} and is {after.get(name, 'absent')}")
    return sentences
