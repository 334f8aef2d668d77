"""How the identity of a run (`identity.json`) differs from another. Needs no Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddle_tfm.component_source import recipe_text
from paddle_tfm.plugins import HASH
from paddle_tfm.recipe.differences import differences
from paddle_tfm.units import plural

RECIPE_CHANGED = "recipe changed"
DESCRIPTIVE_KEYS = ("name", "summary", "duration", "variant", "size")  # keys of a recipe that change no number


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One sentence for each difference between two identities."""
    sentences = [RECIPE_CHANGED] if then.get("recipe") != now.get("recipe") else []
    sentences += _data_changes(then.get("data"), now.get("data"))
    if then.get("paddle") != now.get("paddle"):
        sentences.append(f"Paddle was {then.get('paddle')} and is {now.get('paddle')}")
    products_before, products_after = _products_of(then), _products_of(now)
    if products_before.split()[0] != products_after.split()[0]:  # another machine, which has no bfloat16
        sentences.append(f"its matrix products were in {products_before} and would be in {products_after}")
    return [*sentences, *component_changes(components(then), components(now))]


def component_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """One sentence for each component that another plugin, another version or other code of it provides now."""
    return [
        f"{name} was {before.get(name, 'absent')} and is {after.get(name, 'absent')}"
        for name in sorted(before.keys() | after.keys())
        if not is_same_code(before.get(name), after.get(name))
    ]


def is_same_code(before: str | None, after: str | None) -> bool:
    """Whether two providers of a component are the same. A run may be older than the hash of an installed plugin's
    code: then it is taken as one of the same."""
    return before == after or f"{after}".startswith(f"{before} {HASH}")


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


def read_shards(stored: Mapping[str, Any]) -> int:
    """Into how many shards a run that was begun divides its batches; 0: it is older than that entry, or damaged."""
    shards = stored.get("shards")
    return shards if isinstance(shards, int) and shards > 0 else 0


def read_processes(stored: Mapping[str, Any]) -> int:
    """How many processes share the batches of a run that was begun; one where it is older than that entry."""
    processes = stored.get("processes")
    return processes if isinstance(processes, int) and processes > 0 else 1


def components(identity: Mapping[str, Any]) -> dict[str, str]:
    """component → provider; empty if the file is damaged."""
    components = identity.get("components")
    return components if isinstance(components, dict) else {}
