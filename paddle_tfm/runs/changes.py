"""In what a run differs from another, or from what is asked of it now. Whoever compares runs, resumes one or shows two
beside each other asks `gaps`. Needs no Paddle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from paddle_tfm.language import _
from paddle_tfm.recipe.differences import ABSENT, DESCRIPTIVE, differences
from paddle_tfm.recipe.yaml_lines import recipe_text
from paddle_tfm.units import plural

SETTINGS, PLUGINS, DATA, BUILD = "settings", "plugins", "data", "build"
TEXTS, VOCABULARY = "texts of ", "vocabulary"  # what differs in data: `texts of train`
FIRST_WEIGHTS, CONTINUED = "weights that it began with", "steps after which it was continued"
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
    hashes = {f"{TEXTS}{split}": texts for split, texts in identity.get("data", {}).items()}
    hashes |= {VOCABULARY: identity[VOCABULARY]} if identity.get(VOCABULARY) else {}
    hashes |= {FIRST_WEIGHTS: identity["start"]["weights"]} if identity.get("start") else {}
    hashes |= {CONTINUED: ", ".join(f"{each['steps']:,}" for each in identity.get("continued", []))}
    return {
        PLUGINS: dict(identity.get("components", {})),
        DATA: {what: str(value)[:12] for what, value in hashes.items() if value},
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
            if here == there or (section == PLUGINS and ABSENT in (here, there) and _is_setting(what, a, b)):
                continue
            if what == VOCABULARY and ABSENT in (here, there):  # nobody has learned it yet
                continue
            items.append(Gap(section, what, here, there))
    return items


def _is_setting(component: str, one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether a setting says that one of them has this component and the other has not: one plugin provides it to both;
    or it is a kernel, and the other trains with none (`train.kernels`)."""
    with_kernels = [any(name.startswith("kernel ") for name in each) for each in (one, other)]
    return (component.startswith("kernel ") and not all(with_kernels)) or _plugins_of(one) == _plugins_of(other)


def _plugins_of(components: Mapping[str, object]) -> set[object]:
    """Who provides any of them, in which version: each component has code of its own."""
    return {" ".join(str(provider).split()[:2]) for provider in components.values()}


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One sentence for each difference between two identities that changes more than last bits."""
    differing = gaps(({}, facts(then)), ({}, facts(now)))
    sentences = [_(RECIPE_CHANGED)] if then.get("recipe") != now.get("recipe") else []
    splits = [gap.what.removeprefix(TEXTS) for gap in differing if gap.what.startswith(TEXTS)]
    sentences += [_("data changed (the texts of {splits})").format(splits=", ".join(splits))] if splits else []
    if then.get("paddle") != now.get("paddle"):
        sentences.append(_("Paddle was {then} and is {now}").format(then=then.get("paddle"), now=now.get("paddle")))
    if then["products"].split()[0] != now["products"].split()[0]:  # another machine, which has no bfloat16
        sentences.append(
            _("its matrix products were in {then} and would be in {now}").format(
                then=then["products"], now=now["products"]
            )
        )
    return [*sentences, *sorted(was_and_is(gap for gap in differing if gap.section == PLUGINS))]


def code_changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """One sentence for each component that another plugin, another version or other code of it provides now."""
    return sorted(was_and_is(gaps(({}, {PLUGINS: before}), ({}, {PLUGINS: after}))))


def was_and_is(gaps: Iterable[Gap]) -> list[str]:
    """`path was … and is …` of each."""
    return [
        _("{what} was {then} and is {now}").format(what=gap.what, then=recipe_text(gap.one), now=recipe_text(gap.other))
        for gap in gaps
    ]


def rounding(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One sentence for each difference that changes sums in their last bit and nothing else: such a run may be resumed,
    but its numbers will not be those of an uninterrupted one."""
    before, after = then["shards"], now["shards"]
    sentences = {
        "blas": _("its matrix products took the path '{then}' of Paddle's BLAS and now take '{now}'").format(
            then=then["blas"], now=now["blas"]
        ),
        "products": _("the matrix products of its training steps were in {then} and now are in {now}").format(
            then=then["products"], now=now["products"]
        ),
        "shards": _("its batches were divided into {then} and now into {now}").format(
            then=plural(before, "shard"), now=after
        ),
        "threads": _("the threads of each shard of its batches were {then} and now are {now}").format(
            then=then["threads"], now=now["threads"]
        ),
        "processes": _("its batches were those of {then} processes (--nproc, --nodes), and now are of {now}").format(
            then=then["processes"], now=now["processes"]
        ),
    }
    return [sentence for key, sentence in sentences.items() if then[key] != now[key]]
