"""In what a run differs from another, or from what is asked of it now. Whoever compares runs, resumes one or shows two
beside each other asks `gaps`. Needs no Paddle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from paddle_tfm.plugins import HASH
from paddle_tfm.recipe.differences import ABSENT, DESCRIPTIVE, differences
from paddle_tfm.recipe.yaml_lines import recipe_text
from paddle_tfm.units import plural

SETTINGS, PLUGINS, DATA, BUILD = "settings", "plugins", "data", "build"
TEXTS, VOCABULARY = "texts of ", "vocabulary"  # what differs in data: `texts of train`
DIVISION = ("shards", "processes", "threads")  # who computes a batch: it decides how long that takes
OF_A_BUILD = ("paddle", "blas", "products", *DIVISION)
RECIPE_CHANGED = "recipe changed"
DESCRIPTIVE_KEYS = ("name", "summary", "duration", "variant", "size")  # keys of a recipe that change no number


class Gap(NamedTuple):
    """One thing in which two runs differ; `ABSENT` where one has none."""

    section: str
    what: str
    one: object
    other: object


def facts(identity: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    """What an identity says beside the recipe: section → what → how it is. A section of which it says nothing is
    empty."""
    hashes = {f"{TEXTS}{split}": texts for split, texts in _mapping(identity, "data").items()}
    hashes |= {VOCABULARY: identity[VOCABULARY]} if identity.get(VOCABULARY) else {}
    return {
        PLUGINS: dict(components(identity)),
        DATA: {what: str(value)[:12] for what, value in hashes.items()},
        BUILD: {key: identity[key] for key in OF_A_BUILD if identity.get(key)},
    }


def gaps(
    one: tuple[Mapping[str, Any], Mapping[str, Mapping[str, object]]],
    other: tuple[Mapping[str, Any], Mapping[str, Mapping[str, object]]],
    without: Collection[str] = DESCRIPTIVE,
) -> list[Gap]:
    """All in which two runs differ, each of them a resolved recipe and its `facts`: settings in the order of the
    recipe, but for the keys `without`, then the facts. A section that one of them lacks is not compared."""
    items = [Gap(SETTINGS, *item) for item in differences(one[0], other[0], without)]
    for section in one[1]:
        if section not in other[1]:
            continue
        a, b = one[1][section], other[1][section]
        for what in dict.fromkeys([*a, *b]):
            here, there = a.get(what, ABSENT), b.get(what, ABSENT)
            if here == there or (section == PLUGINS and _is_same_plugin(here, there, a, b)):
                continue
            if what == VOCABULARY and ABSENT in (here, there):  # nobody has learned it yet, or the run is older
                continue
            items.append(Gap(section, what, here, there))
    return items


def _is_same_plugin(one: object, other: object, ours: Mapping[str, object], theirs: Mapping[str, object]) -> bool:
    """A component that only one of them has is a setting; what matters is who provides it. A run may be older than the
    hash of an installed plugin's code: then it is taken as one of the same."""
    if ABSENT in (one, other):
        return _plugins_of(ours) == _plugins_of(theirs)
    older, newer = sorted(map(str, (one, other)))
    return newer.startswith(f"{older} {HASH}")


def _plugins_of(components: Mapping[str, object]) -> set[object]:
    """Who provides any of them, in which version: each component has code of its own."""
    return {" ".join(str(provider).split()[:2]) for provider in components.values()}


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One sentence for each difference between two identities that changes more than last bits."""
    differing = gaps(({}, facts(then)), ({}, facts(now)))
    sentences = [RECIPE_CHANGED] if then.get("recipe") != now.get("recipe") else []
    splits = [gap.what.removeprefix(TEXTS) for gap in differing if gap.section == DATA and gap.what != VOCABULARY]
    sentences += [f"data changed (the texts of {', '.join(splits)})"] if splits else []
    if then.get("paddle") != now.get("paddle"):
        sentences.append(f"Paddle was {then.get('paddle')} and is {now.get('paddle')}")
    products_before, products_after = _products_of(then), _products_of(now)
    if products_before.split()[0] != products_after.split()[0]:  # another machine, which has no bfloat16
        sentences.append(f"its matrix products were in {products_before} and would be in {products_after}")
    return [*sentences, *sorted(was_and_is(gap for gap in differing if gap.section == PLUGINS))]


def code_changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """One sentence for each component that another plugin, another version or other code of it provides now."""
    return sorted(was_and_is(gaps(({}, {PLUGINS: before}), ({}, {PLUGINS: after}))))


def was_and_is(gaps: Iterable[Gap]) -> list[str]:
    """`path was … and is …` of each."""
    return [f"{gap.what} was {recipe_text(gap.one)} and is {recipe_text(gap.other)}" for gap in gaps]


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
    return _mapping(identity, "components")


def _mapping(identity: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = identity.get(key)
    return value if isinstance(value, dict) else {}
