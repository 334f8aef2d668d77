"""From a merged recipe to its runs: variants, or the product of a grid, under every seed; and what of the recipe does
not fit together: its variants, sizes and baseline, and what the command line set in vain."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from paddle_tfm.errors import Problem, RecipeError, UserError, unknown
from paddle_tfm.files import PARTIAL
from paddle_tfm.language import _
from paddle_tfm.recipe import limits
from paddle_tfm.recipe.merging import is_replaced, leaves, origins_below, override
from paddle_tfm.recipe.sections import ablate, claims, equal, ladder, tuning
from paddle_tfm.recipe.sections.claims import ClaimSettings
from paddle_tfm.recipe.sections.seeds import SeedPlan, all_seeds
from paddle_tfm.recipe.sections.tuning import TuneSettings
from paddle_tfm.recipe.settings import BESIDE, OF_THE_RECIPE, Settings
from paddle_tfm.recipe.validation import locate, validate
from paddle_tfm.recipe.yaml_lines import COMMAND_LINE, Origins

# What a sweep writes beside the folders of its variants, and how names end of what passes.
OF_A_SWEEP = {"command.json", "equal.json", "looks.json", tuning.RECORD, "comparison", "bootstrap.json"}
OF_A_SWEEP |= {f"comparison.{ending}" for ending in ("json", "md", "html", "png")}
PASSING = (PARTIAL, ".old")


@dataclass
class RunSpec:
    """One training: a variant under a seed, with its resolved settings. `place`: its folder below the comparison's
    where it is no seed of its variant (`tuning`)."""

    recipe: str
    variant: str
    seed: int
    data: dict
    origins: Origins = field(default_factory=dict, repr=False)
    settings: Settings | None = None
    place: str = ""

    @property
    def name(self) -> str:
        """variant/seed-n, the run's folder below the comparison's."""
        return self.place or f"{self.variant}/seed-{self.seed}"

    @property
    def steps(self) -> int:
        """How many steps it has."""
        return int(self.data["train"]["steps"])

    @property
    def is_trial(self) -> bool:
        """Whether it is a trial of tuning, for which the test split does not exist."""
        return tuning.is_trial(self.place)


@dataclass
class Recipe:
    """A merged recipe: its data, and where each part was written."""

    source: str
    data: dict
    origins: Origins
    overridden: list[str] = field(default_factory=list)  # paths that the command line set after loading
    axes: list[str] = field(default_factory=list)  # paths of which the command line gave several values
    solved: dict[str, dict[str, int]] = field(default_factory=dict)  # variant → what was solved for it (`equal`)
    arguments: list[str] = field(default_factory=list)  # what it was loaded from: a name or a file, and overrides

    @property
    def name(self) -> str:
        """What the recipe calls itself."""
        return str(self.data.get("name", self.source))

    def folder(self) -> Path:
        """Where its runs are where nobody names a place."""
        return Path("runs") / self.name

    def variants(self) -> dict[str, tuple[dict, Origins]]:
        """What is trained: name → its overrides. With a ladder, each variant at each size, the smallest size first."""
        trained = ladder.at_sizes(self.written_variants(), self.data, self.origins)
        return {name: ({**said, **self.solved.get(name, {})}, lines) for name, (said, lines) in trained.items()}

    def written_variants(self) -> dict[str, tuple[dict, Origins]]:
        """Variant name → its overrides, from `variants`, from the product of `grid` or from `ablate`; without any, one:
        the recipe itself. What is of a wrong form is left out (`runs` says so)."""
        if self.data.get("grid"):
            return dict(self.grid())
        if removals := [each for each in ablate.removals(self.data) if each.is_sound]:
            lines = {each.path: self.origins.get(each.place, (self.source, 0)) for each in removals}
            return {ablate.FULL: ({}, {}), **{each.variant: ({each.path: each.now}, lines) for each in removals}}
        named = self.data.get("variants")
        if not named or not isinstance(named, Mapping):
            return {str(self.data.get("variant") or "default"): ({}, {})}
        variants: dict[str, tuple[dict, Origins]] = {}
        for name, overrides in named.items():
            origins = origins_below(self.origins, f"variants.{name}", overrides)
            variants[str(name)] = (dict(overrides) if isinstance(overrides, Mapping) else {}, origins)
        return variants

    def varied(self) -> dict[str, list[str]]:
        """Variant, as it is trained → the paths of the settings that make it one: its overrides, what was solved for
        it, and what is tuned."""
        tune = self.tune()
        return {
            name: [*leaves(overrides), *(tune.space if tune else ())]
            for name, (overrides, _) in self.variants().items()
        }

    def claims(self) -> dict[str, ClaimSettings]:
        """What the recipe claims, by name.

        Raises:
            RecipeError: what is wrong with it.
        """
        settings, wrong = validate(self.data, self.origins)
        if settings is None:
            raise RecipeError(self.source, wrong)
        return settings.claims

    def grid(self) -> Iterator[tuple[str, tuple[dict, Origins]]]:
        """Name → its overrides, of each combination of the values of `grid`; a name may come twice."""
        grid = self.data["grid"] if isinstance(self.data["grid"], Mapping) else {}
        axes = {axis: values for axis, values in grid.items() if isinstance(values, list)}
        if not axes or len(axes) < len(grid):
            return
        limits.require_variants(f"{self.source}: grid", axes.values())
        for combination in itertools.product(*axes.values()):
            overrides = dict(zip(axes, combination))
            origins = {axis: self.origins.get(f"grid.{axis}", (self.source, 0)) for axis in axes}
            yield "-".join(label(value) for value in combination), (overrides, origins)

    def factors(self) -> dict[str, dict[str, str]]:
        """Path of each factor of a grid → variant → its level, in the order of both."""
        paths = list(self.data["grid"]) if self.data.get("grid") else []
        return {path: {name: label(at[path]) for name, (at, _) in self.grid()} for path in paths}

    def taken_away(self) -> dict[str, str]:
        """Variant → what it lacks of the full model, in words; empty where the recipe has no `ablate`."""
        return {each.variant: each.words for each in ablate.removals(self.data)}

    def require_one_model(self) -> None:
        """Raises UserError where the command line gave a setting several values, for what takes one model."""
        if self.axes:
            text = _("override '{override}': several values are for `run`, `check` and `show`; give one")
            raise UserError(text.format(override=self.axes[0]))

    def runs(self) -> list[RunSpec]:
        """Every variant under every seed: all variants of a seed before the next seed, so that an interrupted
        comparison holds complete pairs.

        Raises:
            RecipeError: anything that the settings do not allow, all at once.
        """
        runs, problems = self.expand()
        if problems:
            raise RecipeError(self.source, problems)
        return runs

    def expand(self) -> tuple[list[RunSpec], list[Problem]]:
        """What `runs` returns, and all that is wrong with the structure; a run of wrong structure has no `settings`."""
        runs: list[RunSpec] = []
        problems: list[Problem] = []
        of_all = ("variants", "grid", "ablate", "baseline", "seeds", "tune", *BESIDE)
        common = {key: value for key, value in self.data.items() if key not in of_all}
        kept = ("", "seeds", *common)
        lines = {path: line for path, line in self.origins.items() if re.split(r"[.[]", path, maxsplit=1)[0] in kept}
        settings_of_all, of_the_recipe = validate(self.data, self.origins)
        sound_seeds = not any(problem.path.startswith("seeds") for problem in of_the_recipe)
        seeds = all_seeds(self.seed_plan() or self.data["seeds"]) if sound_seeds else [1]
        for name, (overrides, override_origins) in self.variants().items():
            data, origins = deepcopy(common), dict(lines)
            for path, value in overrides.items():
                override(data, path, value, origins, override_origins)
            data["variant"] = name
            data["seeds"] = self.data.get("seeds")
            settings, of_the_variant = validate(data, origins)
            problems += of_the_variant
            runs += [RunSpec(self.name, name, seed, {**data, "seeds": [seed]}, origins, settings) for seed in seeds]
        problems += of_the_recipe
        for each in _incoherent(self, runs, settings_of_all, sound_seeds):
            problems.append(each if each.file else locate(each, self.origins))
        order = {seed: place for place, seed in enumerate(seeds)}
        return sorted(runs, key=lambda run: order[run.seed]), list(dict.fromkeys(problems))

    def seed_plan(self) -> SeedPlan | None:
        """How seeds are added, where the recipe does not list them."""
        seeds = self.data.get("seeds")
        return SeedPlan.model_validate(seeds) if isinstance(seeds, Mapping) else None

    def tune(self) -> TuneSettings | None:
        """How each variant is tuned, where the recipe says so."""
        return None if self.data.get("tune") is None else TuneSettings.model_validate(self.data["tune"])


def label(value: object) -> str:
    """A short name for a grid's value: `batch`, `batch+layer` for {encoder: batch, decoder: layer}, `0.1`."""
    if isinstance(value, Mapping):
        if "name" in value:
            options = [f"{key}{label(item)}" for key, item in value.items() if key != "name"]
            return "-".join([str(value["name"]), *options])
        return "+".join(label(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return "+".join(label(item) for item in value)
    return str(value).replace("/", "_")


# --------------------------------------------------------------------------------------- what does not fit together


def _incoherent(
    recipe: Recipe, runs: Sequence[RunSpec], settings: Settings | None, sound_seeds: bool
) -> Iterator[Problem]:
    """What of the recipe does not fit together, where each key by itself is `validation`'s to check. `runs` have
    settings where they are sound. `settings` are those of the whole recipe, and `sound_seeds` says whether its seeds
    are right, where other parts may not be."""
    labels = Counter(label for label, _ in recipe.grid()) if recipe.data.get("grid") else Counter()
    for name, (overrides, _places) in recipe.written_variants().items():
        yield from _variant_problems(recipe, name, overrides, labels[name])
    yield from ablate.problems(recipe.data)
    yield from _ladder_problems(recipe)
    data = {run.variant: run.data for run in runs}
    yield from equal.problems(recipe.written_variants(), recipe.data, data)
    yield from _baseline_problems(recipe)
    yield from _seed_problems(recipe, sound_seeds)
    if settings is not None:
        yield from _tune_problems(recipe, settings, runs)
        yield from claims.problems(settings.claims, data)


def _tune_problems(recipe: Recipe, settings: Settings, runs: Sequence[RunSpec]) -> Iterator[Problem]:
    """What is wrong with the space of tuning, beside the variants and what the command line set."""
    if settings.tune is None:
        return
    overrides = {name: overrides for name, (overrides, _) in recipe.variants().items()}
    sound, seeds = {run.variant: run.data for run in runs if run.settings}, {run.seed for run in runs}
    yield from tuning.problems(settings.tune, overrides, sound, seeds, settings.evaluate.best)


def _variant_problems(recipe: Recipe, name: str, overrides: Mapping, combinations: int) -> Iterator[Problem]:
    """A name that is no folder's or that several combinations have, or a key that only the recipe has."""
    section = next((key for key in ("grid", "variants", "ablate") if recipe.data.get(key)), "variant")
    path = f"variants.{name}" if section == "variants" else section
    if not re.fullmatch(r"[^/\\.\x00-\x1f][^/\\\x00-\x1f]{0,99}", name):
        sentence = _(
            "{name!r} must be a folder's name: at most 100 characters, no slash, no control "
            "character, no dot at its beginning"
        ).format(name=name)
        yield Problem(path, sentence)
    if name in OF_A_SWEEP or name.endswith(PASSING):
        sentence = _("{name!r} is the name of what a sweep writes itself; call it otherwise").format(name=name)
        yield Problem(path, sentence)
    if combinations > 1:
        sentence = _("two combinations are called '{name}'; write `variants`, each with a name of its own").format(
            name=name
        )
        yield Problem(path, sentence)
    yield from _override_problems(recipe, "variant", name, path, overrides)


def _override_problems(recipe: Recipe, part: str, name: str, path: str, overrides: Mapping) -> Iterator[Problem]:
    """Keys that only the recipe has, and what the command line set in vain: a part of this
    name, at `path`, sets it too."""
    for key in overrides:
        if key.split(".")[0] in OF_THE_RECIPE:
            sentence = _("belongs to the recipe; a {part} cannot set it").format(part=_(part))
            yield Problem(f"{path}.{key}", sentence)
        for leaf in leaves({key: overrides[key]}) if path != "ablate" else ():  # there the full model is set
            for overridden in (overridden for overridden in recipe.overridden if is_replaced(overridden, leaf)):
                text = _("{part} '{name}' sets {leaf} itself, so this would change nothing there")
                sentence = text.format(part=_(part), name=name, leaf=leaf)
                another = _("several values, {key}=…,…, take the place of the grid's").format(key=key)
                instead = another if path == "grid" else _("override {path}.{leaf}").format(path=path, leaf=leaf)
                yield Problem(overridden, f"{sentence}{_('; ')}{instead}", COMMAND_LINE)


def _ladder_problems(recipe: Recipe) -> Iterator[Problem]:
    """What of the ladder does not fit to the rest, and to what the command line set."""
    yield from ladder.problems(recipe.written_variants(), recipe.data)
    for size, settings in ladder.sizes_of(recipe.data).items():
        yield from _override_problems(recipe, "size", size, f"ladder.sizes.{size}", settings)


def _seed_problems(recipe: Recipe, sound_seeds: bool) -> Iterator[Problem]:
    """Seeds are added for variants that are compared, and claims know nothing of looks."""
    if not sound_seeds or not recipe.seed_plan():
        return
    if len(recipe.written_variants()) == 1:
        sentence = _("are added until variants are told apart, but there is one variant; write `seeds: [1, 2, 3]`")
        yield Problem("seeds", sentence)
    elif recipe.data.get("claims"):
        sentence = _("are added until variants are told apart; `claims` need a list that is set before, `[1, 2, 3]`")
        yield Problem("seeds", sentence)


def _baseline_problems(recipe: Recipe) -> Iterator[Problem]:
    baseline, names = recipe.data.get("baseline"), recipe.written_variants()
    if isinstance(baseline, str) and baseline not in names:
        yield Problem("baseline", unknown("variant", baseline, names))
