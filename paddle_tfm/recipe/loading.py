"""A recipe: find, load, merge with its base, override, expand into runs, and check.

A recipe is data. Everything it may say is a field of `paddle_tfm.recipe.settings.Settings`.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from paddle_tfm.errors import Problem, RecipeError, UserError, unknown
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.settings import (
    BOTH,
    DECODER_ONLY,
    PER_SITE,
    STACKS,
    SUBLAYERS,
    Settings,
    components,
    locate,
    validate,
)
from paddle_tfm.recipe.yaml_lines import Origins, join
from paddle_tfm.registry import Registry, Spec

WHOLE = ("name", "seeds", "baseline", "variant", "variants", "grid", "base")  # settings of a recipe, not of one variant


@dataclass
class RunSpec:
    """One training: a variant under a seed, with its resolved settings."""

    recipe: str
    variant: str
    seed: int
    data: dict
    origins: Origins = field(default_factory=dict, repr=False)
    settings: Settings | None = None

    @property
    def name(self) -> str:
        """variant/seed-n, the run's folder below the comparison's."""
        return f"{self.variant}/seed-{self.seed}"


@dataclass
class Recipe:
    """A merged recipe: its data, and where each part was written."""

    source: str
    data: dict
    origins: Origins
    asked: list[str] = field(default_factory=list)  # paths that were overridden after loading

    @property
    def name(self) -> str:
        """What the recipe calls itself."""
        return str(self.data.get("name", self.source))

    def variants(self) -> dict[str, tuple[dict, Origins]]:
        """Variant name → its overrides, from `variants` or from the product of `grid`; without either, one: the
        recipe itself. What is of a wrong form is left out (`runs` says so)."""
        if self.data.get("grid"):
            return dict(self._grid())
        named = self.data.get("variants")
        if not named or not isinstance(named, Mapping):
            return {str(self.data.get("variant") or "default"): ({}, {})}
        found = {}
        for name, overrides in named.items():
            prefix = f"variants.{name}."
            origins = {
                path.removeprefix(prefix): where for path, where in self.origins.items() if path.startswith(prefix)
            }
            found[str(name)] = (overrides if isinstance(overrides, Mapping) else {}, origins)
        return found

    def _grid(self) -> Iterator[tuple[str, tuple[dict, Origins]]]:
        grid = self.data["grid"] if isinstance(self.data["grid"], Mapping) else {}
        axes = {axis: values for axis, values in grid.items() if isinstance(values, list)}
        if not axes or len(axes) < len(grid):
            return
        for choice in itertools.product(*axes.values()):
            overrides = dict(zip(axes, choice))
            origins = {axis: self.origins.get(f"grid.{axis}", (self.source, 0)) for axis in axes}
            yield "-".join(label(value) for value in choice), (overrides, origins)

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
        runs, problems = [], []
        common = {
            key: value for key, value in self.data.items() if key not in ("variants", "grid", "baseline", "seeds")
        }
        _, shape = validate(self.data, self.origins)
        seeds = self.data.get("seeds") if not any(problem.path.startswith("seeds") for problem in shape) else [1]
        for name, (overrides, origins) in self.variants().items():
            data, where = deepcopy(common), dict(self.origins)
            for path, value in overrides.items():
                override(data, path, value, where, origins)
            data["variant"] = name
            data["seeds"] = self.data.get("seeds")
            problems += self._variant(name, overrides)
            settings, found = validate(data, where)
            problems += [problem for problem in found if problem not in problems]
            runs += [RunSpec(self.name, name, seed, {**data, "seeds": [seed]}, where, settings) for seed in seeds]
        problems += [problem for problem in shape if problem not in problems]
        problems += self._baseline()
        return sorted(runs, key=lambda run: seeds.index(run.seed)), problems

    def _variant(self, name: str, overrides: Mapping) -> Iterator[Problem]:
        """A name that is no folder's, a combination that comes twice, or a setting that only the recipe has."""
        above = next((key for key in ("grid", "variants") if self.data.get(key)), "variant")
        path = f"variants.{name}" if above == "variants" else above
        if not re.fullmatch(r"[^/\\.\x00-\x1f][^/\\\x00-\x1f]{0,99}", name):
            sentence = (
                f"{name!r} must be a folder's name: at most 100 characters, no slash, no control character, no dot at its "
                "beginning"
            )
            yield locate(Problem(path, sentence), self.origins)
        if above == "grid" and Counter(label for label, _ in self._grid())[name] > 1:
            sentence = f"two combinations are called '{name}'; write `variants`, each with a name of its own"
            yield locate(Problem(path, sentence), self.origins)
        for key in overrides:
            if key.split(".")[0] in WHOLE:
                yield locate(Problem(f"{path}.{key}", "belongs to the recipe; a variant cannot set it"), self.origins)
            for setting in _settings_below(key, overrides[key]):
                for asked in (asked for asked in self.asked if _same_branch(asked, setting)):
                    sentence = f"variant '{name}' sets {setting} itself, so this would change nothing there"
                    instead = f"; override {path}.{setting}" if above == "variants" else "; change the grid"
                    yield Problem(asked, sentence + instead, "command line")

    def _baseline(self) -> list[Problem]:
        baseline, names = self.data.get("baseline"), self.variants()
        if isinstance(baseline, str) and baseline not in names:
            return [locate(Problem("baseline", unknown("variant", baseline, names)), self.origins)]
        return []


def _settings_below(path: str, value: object) -> Iterator[str]:
    """The paths that an override sets, down to its components and values."""
    if isinstance(value, Mapping) and value and "name" not in value:
        for key, item in value.items():
            yield from _settings_below(f"{path}.{key}", item)
    else:
        yield path


def _same_branch(one: str, other: str) -> bool:
    """Whether one dotted path is the other, or leads to it."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def label(value: object) -> str:
    """A short name for a grid's value: `batch`, `batch+layer` for {encoder: batch, decoder: layer}, `0.1`."""
    if isinstance(value, Mapping):
        if "name" in value:
            extra = [f"{key}{label(item)}" for key, item in value.items() if key != "name"]
            return "-".join([str(value["name"]), *extra])
        return "+".join(label(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return "+".join(label(item) for item in value)
    return str(value).replace("/", "_")


# ------------------------------------------------------------------------------------------------------ find and load


def shipped() -> dict[str, Path]:
    """The recipes that come with paddle_tfm: name, with its folder where it has one → file."""
    folder = Path(str(resources.files("paddle_tfm_recipes")))
    return {file.relative_to(folder).with_suffix("").as_posix(): file for file in folder.rglob("*.yaml")}


def find(name: str) -> Path:
    """The file of a recipe: a path, or the name of a shipped one.

    Raises:
        UserError: neither exists; the nearest shipped name is given.
    """
    path = Path(name)
    if path.is_file():
        return path
    known = shipped()
    if name in known:
        return known[name]
    if path.suffix in (".yaml", ".yml"):
        raise UserError(f"{name}: no such file; shipped recipes: {', '.join(sorted(known))}")
    raise UserError(unknown("recipe", name, known))


COMMAND_LINE = ("command line", 0)


def load(name: str, overrides: Iterable[str] = ()) -> Recipe:
    """A recipe with its base merged in and ``a.b=value`` overrides applied.

    Raises:
        UserError: no such recipe, not YAML, or an override that is not of that form.
    """
    path = find(name)
    data, origins = _with_base(path, [])
    data = {"name": data.pop("name", re.sub(r"[^\w.-]+", "-", path.stem)), **data}  # first, as people write it
    recipe = Recipe(str(name) if path.name == str(name) or Path(name).is_file() else path.name, data, origins)
    for text in overrides:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not all(key.split(".")):
            raise UserError(f"override '{text}' must look like a.b=value, for instance train.steps=500")
        override(recipe.data, key, yaml_lines.value(value), recipe.origins, {key: COMMAND_LINE})
        recipe.asked.append(key)
    return recipe


def _with_base(path: Path, chain: list[Path]) -> tuple[dict, Origins]:
    if path.resolve() in chain:
        raise UserError(f"{path}: its `base` leads back to itself")
    data, origins = yaml_lines.load_file(path, path.name if path in shipped().values() else str(path))
    base = data.pop("base", None)
    if base is None:
        return data, origins
    beside, name = path.parent / str(base), Path(str(base)).stem
    if not beside.is_file() and name not in shipped():
        raise UserError(f"{path} line {origins['base'][1]}: base '{base}' is no file beside it and no shipped recipe")
    merged, where = _with_base(beside if beside.is_file() else shipped()[name], [*chain, path.resolve()])
    for key in ("name", "duration", "baseline", "variants", "grid"):
        merged.pop(key, None)  # they describe the base's own runs
    for key, value in data.items():
        override(merged, key, value, where, origins)
    return merged, where


def override(data: dict, path: str, value: object, origins: Origins, source: Origins) -> None:
    """Set `path` (dotted) to `value`. Mappings merge key by key; a component is replaced when its name is given, and
    keeps its name when only options are."""
    *parents, last = path.split(".")
    here, at = data, ""
    for key, following in zip(parents, [*parents[1:], last]):
        at = join(at, key)
        here[key] = _opened(at, here.get(key), [following])
        here = here[key]
        if path in source:
            origins.setdefault(at, source[path])
    if path in source:
        origins[path] = source[path]
    if isinstance(value, Mapping) and "name" not in value and path not in ("variants", "grid"):
        if not value and last in here:
            return  # nothing to merge
        here[last] = _opened(path, here.get(last), list(value))
        for key, item in value.items():
            below = f"{path}.{key}"
            inherited = {} if below in source or path not in source else {below: source[path]}
            override(data, below, item, origins, {**source, **inherited})
        return
    here[last] = deepcopy(value)
    for child in [child for child in origins if child.startswith((f"{path}.", f"{path}["))]:
        del origins[child]
    origins.update({child: where for child, where in source.items() if child.startswith((f"{path}.", f"{path}["))})


def _opened(path: str, old: object, keys: Sequence[str]) -> dict:
    """`old` as a mapping that can take `keys`: a component gets options beside its name, or, where the keys are places,
    is spread over them (`model.norm.encoder=batch` leaves the decoder its norm)."""
    component = isinstance(old, str) or (isinstance(old, dict) and "name" in old)
    places = _places(path)
    if component and places and all(key in (places if path == "tokenizer" else (*STACKS, *SUBLAYERS)) for key in keys):
        return {place: deepcopy(old) for place in places}
    if isinstance(old, str):
        return {"name": old}
    return old if isinstance(old, dict) else {}


def _places(path: str) -> tuple[str, ...]:
    """The places for which the setting at `path` may differ, () for most settings."""
    parts = path.split(".")
    if parts == ["tokenizer"]:
        return ("source", "target")
    if len(parts) in (2, 3) and parts[0] == "model" and parts[1] in PER_SITE:
        # Not `cross` for positions: cross-attention has one only if it is asked for (`at_site`).
        sublayers = PER_SITE[parts[1]].get(parts[-1], ())
        return STACKS if len(parts) == 2 else tuple(s for s in sublayers if (parts[1], s) != ("position", "cross"))
    return ()


# ------------------------------------------------------------------------------------------------------------ checking


def check_components(run: RunSpec, registry: Registry) -> list[Problem]:
    """All that is wrong with the names and options of a run's components."""
    problems = [problem for kind, path, spec in components(run.data) for problem in registry.check(kind, spec, path)]
    if run.settings is None:
        return [locate(problem, run.origins) for problem in problems]
    for plugin in run.settings.requires:
        if plugin not in registry.plugins.providers:
            failed = registry.plugins.failures.get(plugin)
            how = f"it failed to load: {failed}" if failed else "install it, or pass --plugin FILE.py"
            problems.append(Problem("requires", f"plugin '{plugin}' is missing; {how}"))
    if run.settings.model.share_embeddings and not run.settings.vocabulary.shared:
        sentence = "needs one vocabulary for both sides; set vocabulary.shared=true"
        problems.append(Problem("model.share_embeddings", sentence))
    problems += _of_one_stack(run.settings, registry)
    specs = [spec if isinstance(spec, str) else spec.get("name") for spec in run.settings.evaluate.metrics]
    metrics = [name for name in specs if isinstance(name, str)]
    if run.settings.evaluate.best not in (*metrics, "loss"):
        problems.append(Problem("evaluate.best", unknown("metric", run.settings.evaluate.best, [*metrics, "loss"])))
    return [locate(problem, run.origins) for problem in problems]


def _of_one_stack(settings: Settings, registry: Registry) -> Iterator[Problem]:
    """What a recipe asks for that takes a source and a target."""
    of = settings.model.shape
    if of != BOTH and settings.train.max_ratio is not None:
        yield Problem(
            "train.max_ratio", f"compares the lengths of two texts, but a model that is {of} reads one; use null"
        )
    if of != DECODER_ONLY:
        return
    for i, spec in enumerate(settings.evaluate.metrics):
        path = f"evaluate.metrics[{i}]"
        if registry.check("metric", spec, path):
            continue  # said elsewhere
        name = Spec.parse(spec).name
        if registry.entry("metric", name).load().needs_search:
            known = [
                name for name in registry.names("metric") if not registry.entry("metric", name).load().needs_search
            ]
            sentence = f"'{name}' scores what is written for a source, which a decoder-only model does not read; known "
            yield Problem(path, f"{sentence}that score a text: {', '.join(known)}")
