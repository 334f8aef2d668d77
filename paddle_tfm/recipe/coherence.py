"""What in a recipe does not fit together: its variants, sizes and baseline, and what the command line set in vain. Each
key by itself is `validation`'s to check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from paddle_tfm.errors import Problem, unknown
from paddle_tfm.files import PARTIAL
from paddle_tfm.recipe import claims, equal, ladder, tuning
from paddle_tfm.recipe.merging import is_replaced, leaves
from paddle_tfm.recipe.seeds import SeedPlan
from paddle_tfm.recipe.settings import OF_THE_RECIPE, Settings
from paddle_tfm.recipe.validation import locate
from paddle_tfm.recipe.yaml_lines import COMMAND_LINE, Origins

Overrides = dict[str, tuple[dict, Origins]]  # variant → what it sets, and where that was written

# What a sweep writes beside the folders of its variants, and how names end of what passes.
OF_A_SWEEP = {"command.json", "equal.json", "looks.json", tuning.RECORD, "comparison", "bootstrap.json"}
OF_A_SWEEP |= {f"comparison.{ending}" for ending in ("json", "md", "html", "png")}
PASSING = (PARTIAL, ".old")


class Written(Protocol):
    """A recipe, as far as it may contradict itself (`expansion.Recipe`)."""

    data: dict
    origins: Origins
    overridden: list[str]

    def variants(self) -> Overrides: ...
    def written_variants(self) -> Overrides: ...
    def grid(self) -> Iterator[tuple[str, tuple[dict, Origins]]]: ...
    def seed_plan(self) -> SeedPlan | None: ...


class Resolved(Protocol):
    """A run of it (`expansion.RunSpec`)."""

    variant: str
    seed: int
    data: dict
    settings: Settings | None


def problems(
    recipe: Written, runs: Sequence[Resolved], settings: Settings | None, sound_seeds: bool
) -> Iterator[Problem]:
    """All of them. `runs` have settings where they are sound. `settings` are those of the whole recipe, and
    `sound_seeds` says whether its seeds are right, where other parts may not be."""
    labels = Counter(label for label, _ in recipe.grid()) if recipe.data.get("grid") else Counter()
    for name, (overrides, _) in recipe.written_variants().items():
        yield from _variant_problems(recipe, name, overrides, labels[name])
    yield from _ladder_problems(recipe)
    data = {run.variant: run.data for run in runs}
    for each in equal.problems(recipe.written_variants(), recipe.data, data):
        yield locate(each, recipe.origins)
    yield from _baseline_problems(recipe)
    yield from _seed_problems(recipe, sound_seeds)
    if settings is not None:
        yield from _tune_problems(recipe, settings, runs)
        for each in claims.problems(settings.claims, data):
            yield locate(each, recipe.origins)


def _tune_problems(recipe: Written, settings: Settings, runs: Sequence[Resolved]) -> list[Problem]:
    """What is wrong with the space of tuning, beside the variants and what the command line set."""
    if settings.tune is None:
        return []
    overrides = {name: overrides for name, (overrides, _) in recipe.variants().items()}
    sound, seeds = {run.variant: run.data for run in runs if run.settings}, {run.seed for run in runs}
    wrong = tuning.problems(settings.tune, overrides, sound, seeds, settings.evaluate.best)
    return [locate(each, recipe.origins) for each in wrong]


def _variant_problems(recipe: Written, name: str, overrides: Mapping, combinations: int) -> Iterator[Problem]:
    """A name that is no folder's or that several combinations have, or a key that only the recipe has."""
    section = next((key for key in ("grid", "variants") if recipe.data.get(key)), "variant")
    path = f"variants.{name}" if section == "variants" else section
    if not re.fullmatch(r"[^/\\.\x00-\x1f][^/\\\x00-\x1f]{0,99}", name):
        sentence = (
            f"{name!r} must be a folder's name: at most 100 characters, no slash, no control character, no dot "
            "at its beginning"
        )
        yield locate(Problem(path, sentence), recipe.origins)
    if name in OF_A_SWEEP or name.endswith(PASSING):
        sentence = f"{name!r} is the name of what a sweep writes itself; call it otherwise"
        yield locate(Problem(path, sentence), recipe.origins)
    if combinations > 1:
        sentence = f"two combinations are called '{name}'; write `variants`, each with a name of its own"
        yield locate(Problem(path, sentence), recipe.origins)
    yield from _override_problems(recipe, f"variant '{name}'", path, overrides)


def _override_problems(recipe: Written, who: str, path: str, overrides: Mapping) -> Iterator[Problem]:
    """Keys that only the recipe has, and what the command line set in vain: `who`, at `path`, sets it too."""
    for key in overrides:
        if key.split(".")[0] in OF_THE_RECIPE:
            sentence = f"belongs to the recipe; a {who.split()[0]} cannot set it"
            yield locate(Problem(f"{path}.{key}", sentence), recipe.origins)
        for leaf in leaves(key, overrides[key]):
            for overridden in (overridden for overridden in recipe.overridden if is_replaced(overridden, leaf)):
                sentence = f"{who} sets {leaf} itself, so this would change nothing there"
                another = f"several values, {key}=…,…, take the place of the grid's"
                instead = another if path == "grid" else f"override {path}.{leaf}"
                yield Problem(overridden, f"{sentence}; {instead}", COMMAND_LINE)


def _ladder_problems(recipe: Written) -> Iterator[Problem]:
    """What of the ladder does not fit to the rest, and to what the command line set."""
    for problem in ladder.problems(recipe.written_variants(), recipe.data):
        yield locate(problem, recipe.origins)
    for size, settings in ladder.sizes_of(recipe.data).items():
        yield from _override_problems(recipe, f"size '{size}'", f"ladder.sizes.{size}", settings)


def _seed_problems(recipe: Written, sound_seeds: bool) -> list[Problem]:
    """Seeds are added for variants that are compared, and claims know nothing of looks."""
    sentence = ""
    if sound_seeds and recipe.seed_plan() and len(recipe.written_variants()) == 1:
        sentence = "are added until variants are told apart, but there is one variant; write `seeds: [1, 2, 3]`"
    elif sound_seeds and recipe.seed_plan() and recipe.data.get("claims"):
        sentence = "are added until variants are told apart; `claims` need a list that is set before, `[1, 2, 3]`"
    return [locate(Problem("seeds", sentence), recipe.origins)] if sentence else []


def _baseline_problems(recipe: Written) -> list[Problem]:
    baseline, names = recipe.data.get("baseline"), recipe.written_variants()
    if isinstance(baseline, str) and baseline not in names:
        return [locate(Problem("baseline", unknown("variant", baseline, names)), recipe.origins)]
    return []
