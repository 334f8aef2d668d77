"""From a merged recipe to its runs: variants, or the product of a grid, under every seed."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from paddle_tfm.errors import Problem, RecipeError, UserError, unknown
from paddle_tfm.recipe import claims, equal, ladder, limits, tuning
from paddle_tfm.recipe.claims import ClaimSettings
from paddle_tfm.recipe.merging import is_replaced, leaves, override
from paddle_tfm.recipe.seeds import SeedPlan, all_seeds
from paddle_tfm.recipe.settings import Settings
from paddle_tfm.recipe.tuning import TuneSettings
from paddle_tfm.recipe.validation import locate, validate
from paddle_tfm.recipe.yaml_lines import COMMAND_LINE, Origins

# what stands beside the runs in a recipe, and determines no number of theirs
BESIDE = ("smallest_effect", "fast", "claims", "ladder", "equal")
# what a recipe says of all its runs together, and no variant of itself
OF_THE_RECIPE = ("name", "seeds", "baseline", "variant", "variants", "grid", "base", "size", "tune", *BESIDE)


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

    def variants(self) -> dict[str, tuple[dict, Origins]]:
        """What is trained: name → its overrides. With a ladder, each variant at each size, the smallest size first."""
        trained = ladder.at_sizes(self.written_variants(), self.data, self.origins)
        return {name: ({**said, **self.solved.get(name, {})}, lines) for name, (said, lines) in trained.items()}

    def largest_variants(self) -> list[str]:
        """The names of what is trained at the largest size, the baseline first; without a ladder, of all."""
        size = next(reversed(ladder.sizes_of(self.data)), None)
        names = [ladder.at(name, size) for name in self.written_variants()]
        baseline = ladder.at(str(self.data.get("baseline") or next(iter(self.written_variants()))), size)
        return sorted(names, key=lambda name: name != baseline)

    def written_variants(self) -> dict[str, tuple[dict, Origins]]:
        """Variant name → its overrides, from `variants` or from the product of `grid`; without either, one: the recipe
        itself. What is of a wrong form is left out (`runs` says so)."""
        if self.data.get("grid"):
            return dict(self._grid())
        named = self.data.get("variants")
        if not named or not isinstance(named, Mapping):
            return {str(self.data.get("variant") or "default"): ({}, {})}
        variants: dict[str, tuple[dict, Origins]] = {}
        for name, overrides in named.items():
            prefix = f"variants.{name}."
            origins = {
                path.removeprefix(prefix): line for path, line in self.origins.items() if path.startswith(prefix)
            }
            variants[str(name)] = (dict(overrides) if isinstance(overrides, Mapping) else {}, origins)
        return variants

    def claims(self) -> dict[str, ClaimSettings]:
        """What the recipe claims, by name.

        Raises:
            RecipeError: what is wrong with it.
        """
        settings, wrong = validate(self.data, self.origins)
        if settings is None:
            raise RecipeError(self.source, wrong)
        return settings.claims

    def _grid(self) -> Iterator[tuple[str, tuple[dict, Origins]]]:
        grid = self.data["grid"] if isinstance(self.data["grid"], Mapping) else {}
        axes = {axis: values for axis, values in grid.items() if isinstance(values, list)}
        if not axes or len(axes) < len(grid):
            return
        limits.require_variants(f"{self.source}: grid", axes.values())
        for combination in itertools.product(*axes.values()):
            overrides = dict(zip(axes, combination))
            origins = {axis: self.origins.get(f"grid.{axis}", (self.source, 0)) for axis in axes}
            yield "-".join(label(value) for value in combination), (overrides, origins)

    def require_one_model(self) -> None:
        """Raises UserError where the command line gave a setting several values, for what takes one model."""
        if self.axes:
            raise UserError(f"override '{self.axes[0]}': several values are for `run`, `check` and `show`; give one")

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
        of_all = ("variants", "grid", "baseline", "seeds", "tune", *BESIDE)
        common = {key: value for key, value in self.data.items() if key not in of_all}
        settings_of_all, of_the_recipe = validate(self.data, self.origins)
        sound_seeds = not any(problem.path.startswith("seeds") for problem in of_the_recipe)
        seeds = all_seeds(self.seed_plan() or self.data["seeds"]) if sound_seeds else [1]
        for name, (overrides, override_origins) in self.variants().items():
            data, origins = deepcopy(common), dict(self.origins)
            for path, value in overrides.items():
                override(data, path, value, origins, override_origins)
            data["variant"] = name
            data["seeds"] = self.data.get("seeds")
            settings, of_the_variant = validate(data, origins)
            problems += of_the_variant
            runs += [RunSpec(self.name, name, seed, {**data, "seeds": [seed]}, origins, settings) for seed in seeds]
        labels = Counter(label for label, _ in self._grid()) if self.data.get("grid") else Counter()
        for name, (overrides, _) in self.written_variants().items():
            problems += self._variant_problems(name, overrides, labels[name])
        problems += self._ladder_problems()
        wrong = equal.problems(self.written_variants(), self.data, {run.variant: run.data for run in runs})
        problems += [locate(each, self.origins) for each in wrong]
        problems += [*of_the_recipe, *self._baseline_problems(), *self._plan_problems(sound_seeds)]
        if settings_of_all is not None:
            problems += self._tune_problems(settings_of_all, runs)
            recipes = {run.variant: run.data for run in runs}
            problems += [locate(each, self.origins) for each in claims.problems(settings_of_all.claims, recipes)]
        return sorted(runs, key=lambda run: seeds.index(run.seed)), list(dict.fromkeys(problems))

    def seed_plan(self) -> SeedPlan | None:
        """How seeds are added, where the recipe does not list them."""
        seeds = self.data.get("seeds")
        return SeedPlan.model_validate(seeds) if isinstance(seeds, Mapping) else None

    def tune(self) -> TuneSettings | None:
        """How each variant is tuned, where the recipe says so."""
        return None if self.data.get("tune") is None else TuneSettings.model_validate(self.data["tune"])

    def _tune_problems(self, settings: Settings, runs: list[RunSpec]) -> list[Problem]:
        """What is wrong with the space of tuning, beside the variants and what the command line set."""
        if settings.tune is None:
            return []
        overrides = {name: overrides for name, (overrides, _) in self.variants().items()}
        sound, seeds = {run.variant: run.data for run in runs if run.settings}, {run.seed for run in runs}
        wrong = tuning.problems(settings.tune, overrides, sound, seeds, settings.evaluate.best)
        return [locate(each, self.origins) for each in wrong]

    def _variant_problems(self, name: str, overrides: Mapping, combinations: int) -> Iterator[Problem]:
        """A name that is no folder's or that several combinations have, or a key that only the recipe has."""
        section = next((key for key in ("grid", "variants") if self.data.get(key)), "variant")
        path = f"variants.{name}" if section == "variants" else section
        if not re.fullmatch(r"[^/\\.\x00-\x1f][^/\\\x00-\x1f]{0,99}", name):
            sentence = (
                f"{name!r} must be a folder's name: at most 100 characters, no slash, no control character, no dot "
                "at its beginning"
            )
            yield locate(Problem(path, sentence), self.origins)
        if combinations > 1:
            sentence = f"two combinations are called '{name}'; write `variants`, each with a name of its own"
            yield locate(Problem(path, sentence), self.origins)
        yield from self._override_problems(f"variant '{name}'", path, overrides)

    def _override_problems(self, who: str, path: str, overrides: Mapping) -> Iterator[Problem]:
        """Keys that only the recipe has, and what the command line set in vain: `who`, at `path`, sets it too."""
        for key in overrides:
            if key.split(".")[0] in OF_THE_RECIPE:
                sentence = f"belongs to the recipe; a {who.split()[0]} cannot set it"
                yield locate(Problem(f"{path}.{key}", sentence), self.origins)
            for leaf in leaves(key, overrides[key]):
                for overridden in (overridden for overridden in self.overridden if is_replaced(overridden, leaf)):
                    sentence = f"{who} sets {leaf} itself, so this would change nothing there"
                    another = f"several values, {key}=…,…, take the place of the grid's"
                    instead = another if path == "grid" else f"override {path}.{leaf}"
                    yield Problem(overridden, f"{sentence}; {instead}", COMMAND_LINE)

    def _ladder_problems(self) -> Iterator[Problem]:
        """What of the ladder does not fit to the rest, and to what the command line set."""
        for problem in ladder.problems(self.written_variants(), self.data):
            yield locate(problem, self.origins)
        for size, settings in ladder.sizes_of(self.data).items():
            yield from self._override_problems(f"size '{size}'", f"ladder.sizes.{size}", settings)

    def _plan_problems(self, sound_seeds: bool) -> list[Problem]:
        """Seeds are added for variants that are compared, and claims know nothing of looks."""
        sentence = ""
        if sound_seeds and self.seed_plan() and len(self.written_variants()) == 1:
            sentence = "are added until variants are told apart, but there is one variant; write `seeds: [1, 2, 3]`"
        elif sound_seeds and self.seed_plan() and self.data.get("claims"):
            sentence = "are added until variants are told apart; `claims` need a list that is set before, `[1, 2, 3]`"
        return [locate(Problem("seeds", sentence), self.origins)] if sentence else []

    def _baseline_problems(self) -> list[Problem]:
        baseline, names = self.data.get("baseline"), self.written_variants()
        if isinstance(baseline, str) and baseline not in names:
            return [locate(Problem("baseline", unknown("variant", baseline, names)), self.origins)]
        return []


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
