"""What a recipe may say: find, load, merge with its base, override, expand into runs, and check.

A recipe is data. Everything it may say is a field of `Settings`; `recipes/base.yaml` holds every default with a comment.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from paddle_tfm import yaml_lines
from paddle_tfm.errors import Problem, RecipeError, UserError, unknown
from paddle_tfm.registry import Registry
from paddle_tfm.yaml_lines import Origins, join

Component = str | dict
PerSite = str | dict
STACKS = ("encoder", "decoder")
SUBLAYERS = ("self", "cross", "feed_forward", "final")
# kinds of the model section that are chosen per site, with the places that a recipe may name
PER_SITE: dict[str, tuple[str, ...]] = {
    "attention": (*STACKS, "cross"),
    "norm": (*STACKS, "cross"),
    "placement": STACKS,
    "position": (*STACKS, "cross"),
    "feed_forward": STACKS,
}


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ModelSettings(_Section):
    """The `model:` section."""

    d_model: int = Field(gt=0)
    num_heads: int = Field(gt=0)
    d_ff: int = Field(gt=0)
    encoder_layers: int = Field(gt=0)
    decoder_layers: int = Field(gt=0)
    dropout: float = Field(ge=0, lt=1)
    embedding_dropout: float | None = Field(ge=0, lt=1)
    max_length: int = Field(gt=1)
    scale_embedding: bool
    share_embeddings: bool
    attention: PerSite
    norm: PerSite
    placement: PerSite
    position: PerSite
    feed_forward: PerSite
    head: Component
    initializer: Component


class TrainSettings(_Section):
    """The `train:` section."""

    steps: int = Field(gt=0)
    max_tokens: int = Field(gt=0)
    accumulate: int = Field(gt=0)
    optimizer: Component
    schedule: Component
    label_smoothing: float = Field(ge=0, lt=1)
    clip_norm: float | None = Field(gt=0)


class EvaluateSettings(_Section):
    """The `evaluate:` section."""

    every: int = Field(gt=0)
    metrics: list[Component] = Field(min_length=1)
    best: str
    examples: int | None = Field(gt=0)
    search: Component


class VocabularySettings(_Section):
    """The `vocabulary:` section."""

    shared: bool
    min_frequency: int = Field(gt=0)
    max_size: int | None = Field(gt=4)


class Settings(_Section):
    """A whole recipe after merging."""

    name: str = Field(pattern=r"^[\w.-]+$")
    summary: str
    duration: str | None = None
    requires: list[str] = []
    task: Component
    tokenizer: Component
    vocabulary: VocabularySettings
    model: ModelSettings
    train: TrainSettings
    evaluate: EvaluateSettings
    search: Component
    seeds: list[int] = Field(min_length=1)
    baseline: str | None = None
    variant: str | None = None
    variants: dict[str, dict | None] = {}
    grid: dict[str, list] = {}

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) != len(seeds):
            raise ValueError(f"must be distinct, but are {seeds}")
        return seeds

    @model_validator(mode="after")
    def _one_way(self) -> Settings:
        if self.variants and self.grid:
            raise ValueError("has both `variants` and `grid`; keep one")
        return self


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

    @property
    def name(self) -> str:
        """What the recipe calls itself."""
        return str(self.data.get("name", self.source))

    def variants(self) -> dict[str, tuple[dict, Origins]]:
        """Variant name → its overrides, from `variants` or from the product of `grid`; without either, one: the
        recipe itself."""
        if self.data.get("grid"):
            return dict(self._grid())
        named = self.data.get("variants") or {}
        if not named:
            return {self.data.get("variant") or "default": ({}, {})}
        found = {}
        for name, overrides in named.items():
            prefix = f"variants.{name}."
            origins = {
                path.removeprefix(prefix): where for path, where in self.origins.items() if path.startswith(prefix)
            }
            found[str(name)] = (overrides or {}, origins)
        return found

    def _grid(self) -> Iterator[tuple[str, tuple[dict, Origins]]]:
        axes = self.data["grid"]
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
        runs, problems = [], []
        common = {
            key: value for key, value in self.data.items() if key not in ("variants", "grid", "baseline", "seeds")
        }
        seeds = self.data.get("seeds")
        for name, (overrides, origins) in self.variants().items():
            data, where = deepcopy(common), dict(self.origins)
            for path, value in overrides.items():
                override(data, path, value, where, origins)
            data["variant"] = name
            data["seeds"] = seeds
            settings, found = validate(data, where)
            problems += [problem for problem in found if problem not in problems]
            for seed in seeds if isinstance(seeds, list) else []:
                run = {**data, "seeds": [seed]}
                runs.append(RunSpec(self.name, name, seed, run, where, settings))
        _, shape = validate(self.data, self.origins)
        problems += [problem for problem in shape if problem not in problems]
        problems += self._baseline()
        if problems:
            raise RecipeError(self.source, problems)
        order = {seed: i for i, seed in enumerate(seeds)}
        return sorted(runs, key=lambda run: order[run.seed])

    def _baseline(self) -> list[Problem]:
        baseline, names = self.data.get("baseline"), self.variants()
        if baseline is not None and baseline not in names:
            return [locate(Problem("baseline", unknown("variant", baseline, names)), self.origins)]
        return []


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
    """The recipes that come with paddle_tfm: name → file."""
    folder = resources.files("paddle_tfm_recipes")
    return {Path(item.name).stem: Path(str(item)) for item in folder.iterdir() if item.name.endswith(".yaml")}


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
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        raise UserError(f"{name}: no such file; shipped recipes: {', '.join(sorted(known))}")
    raise UserError(unknown("recipe", name, known))


def load(name: str, overrides: Iterable[str] = ()) -> Recipe:
    """A recipe with its base merged in and ``a.b=value`` overrides applied.

    Raises:
        UserError: no such recipe, not YAML, or an override that is not of that form.
    """
    path = find(name)
    data, origins = _with_base(path, [])
    data.setdefault("name", path.stem)
    recipe = Recipe(str(name) if path.name == str(name) or Path(name).is_file() else path.name, data, origins)
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UserError(f"override '{text}' must look like a.b=value, for instance train.steps=500")
        override(recipe.data, key.strip(), yaml_lines.value(value), recipe.origins, {key.strip(): ("", 0)})
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
    for key in ("duration", "baseline", "variants", "grid"):
        merged.pop(key, None)  # they describe the base's own comparison
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
        origins[path] = source[path]
    if isinstance(value, Mapping) and value and "name" not in value and path not in ("variants", "grid", ""):
        here[last] = _opened(path, here.get(last), list(value))
        for key, item in value.items():
            override(data, f"{path}.{key}", item, origins, source)
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
    if component and places and all(key in (*STACKS, *SUBLAYERS, *places) for key in keys):
        return {place: deepcopy(old) for place in places}
    if isinstance(old, str):
        return {"name": old}
    return old if isinstance(old, dict) else {}


def _places(path: str) -> tuple[str, ...]:
    """The places for which the setting at `path` may differ, () for most settings."""
    parts = path.split(".")
    if parts == ["tokenizer"]:
        return ("source", "target")
    if len(parts) > 1 and parts[0] == "model" and parts[1] in PER_SITE:
        return STACKS if len(parts) == 2 else SUBLAYERS if len(parts) == 3 and parts[2] in STACKS else ()
    return ()


def _per_site(value: Mapping) -> bool:
    return bool(value) and "name" not in value and all(key in (*STACKS, *SUBLAYERS) for key in value)


# ------------------------------------------------------------------------------------------------------------ checking


def locate(problem: Problem, origins: Origins) -> Problem:
    """The problem with the file and line of the longest prefix of its path that was written somewhere."""
    path = problem.path
    while path:
        if path in origins:
            file, line = origins[path]
            return Problem(problem.path, problem.message, file or "command line", line or None)
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return problem


def validate(data: dict, origins: Origins) -> tuple[Settings | None, list[Problem]]:
    """The settings, or all that their structure has wrong (components are checked by `check_components`)."""
    try:
        return Settings.model_validate(data), []
    except ValidationError as error:
        return None, [locate(_sentence(item), origins) for item in _settled(error.errors())]


def _settled(errors: Sequence[dict]) -> Iterator[dict]:
    """One error a path: a union (name or mapping) complains once for each of its members."""
    seen = set()
    for error in errors:
        key = tuple(part for part in error["loc"] if part not in ("str", "dict[any,any]"))
        if key not in seen:
            seen.add(key)
            yield {**error, "loc": key}


def _sentence(error: dict) -> Problem:
    path = ""
    for part in error["loc"]:
        path = f"{path}[{part}]" if isinstance(part, int) else join(path, part)
    kind, given = error["type"], error.get("input")
    if kind == "extra_forbidden":
        *parents, last = error["loc"]
        section = Settings
        for part in parents:
            section = section.model_fields[part].annotation
        return Problem(path, unknown("key", last, section.model_fields))
    if kind == "missing":
        return Problem(path, "is missing; start with `base: base.yaml`, which holds every default")
    if kind == "value_error":
        return Problem(path, str(error["ctx"]["error"]))
    wanted = (
        "a name or {name: …, options…}"
        if kind in ("string_type", "dict_type") and isinstance(given, (int, list, float))
        else error["msg"].removeprefix("Input should be ")
    )
    return Problem(path, f"must be {wanted}, but is {given!r}")


def at_site(kind: str, value: PerSite, stack: str, sublayer: str) -> tuple[str, object]:
    """(sub-path, component) that a per-site value names for this site. `cross` falls back to the decoder's choice,
    except for positions: queries and keys of cross attention live in two sentences, so it has none (None) unless asked.

    Raises:
        ValueError: the mapping says nothing about this site.
    """
    unasked = kind == "position" and sublayer == "cross"
    below = ""
    while isinstance(value, Mapping) and _per_site(value):
        key = sublayer if sublayer in value else stack
        if key not in value and not unasked:
            place = stack if sublayer in ("self", "final") else f"{stack}.{sublayer}"
            raise ValueError(f"says nothing about {place}; add `{stack}:`")
        if key not in value:
            break
        unasked = unasked and key != sublayer
        below, value = f"{below}.{key}", value[key]
    return ("", None) if unasked else (below, value)


def model_components(model: Mapping) -> Iterator[tuple[str, str, object]]:
    """(kind, dotted path, spec) of every component that the model section names, per site where it says so."""
    for kind, places in PER_SITE.items():
        seen = set()
        for stack, sublayer in (
            ("encoder", "self"),
            ("encoder", "feed_forward"),
            ("decoder", "self"),
            ("decoder", "cross"),
            ("decoder", "feed_forward"),
        ):
            if sublayer == "cross" and "cross" not in places:
                continue
            below, spec = at_site(kind, model[kind], stack, sublayer)
            if spec is not None and below not in seen:
                seen.add(below)
                yield kind, f"model.{kind}{below}", spec
    yield "head", "model.head", model["head"]
    yield "initializer", "model.initializer", model["initializer"]


def tokenizer_specs(tokenizer: Component) -> dict[str, tuple[str, object]]:
    """side → (dotted path, spec): one tokenizer for both sides, or {source: …, target: …}."""
    if isinstance(tokenizer, Mapping) and "name" not in tokenizer:
        return {side: (f"tokenizer.{side}", tokenizer.get(side)) for side in ("source", "target")}
    return dict.fromkeys(("source", "target"), ("tokenizer", tokenizer))


def components(settings: Settings) -> Iterator[tuple[str, str, object]]:
    """(kind, dotted path, spec) of every component of a run."""
    yield "task", "task", settings.task
    for path, spec in dict(tokenizer_specs(settings.tokenizer).values()).items():
        yield "tokenizer", path, spec
    yield from model_components(settings.model.model_dump())
    yield "optimizer", "train.optimizer", settings.train.optimizer
    yield "schedule", "train.schedule", settings.train.schedule
    for i, metric in enumerate(settings.evaluate.metrics):
        yield "metric", f"evaluate.metrics[{i}]", metric
    yield "search", "evaluate.search", settings.evaluate.search
    yield "search", "search", settings.search


def check_components(run: RunSpec, registry: Registry) -> list[Problem]:
    """All that is wrong with the names and options of a run's components."""
    problems = []
    for plugin in run.settings.requires:
        if plugin not in registry.plugins.providers:
            failed = registry.plugins.failures.get(plugin)
            how = f"it failed to load: {failed}" if failed else "install it, or pass --plugin FILE.py"
            problems.append(Problem("requires", f"plugin '{plugin}' is missing; {how}"))
    try:
        for kind, path, spec in components(run.settings):
            problems += registry.check(kind, spec, path)
    except ValueError as error:
        problems.append(Problem("model", str(error)))
    metrics = [spec if isinstance(spec, str) else spec.get("name") for spec in run.settings.evaluate.metrics]
    if run.settings.evaluate.best not in (*metrics, "loss"):
        problems.append(Problem("evaluate.best", unknown("metric", run.settings.evaluate.best, [*metrics, "loss"])))
    return [locate(problem, run.origins) for problem in problems]
