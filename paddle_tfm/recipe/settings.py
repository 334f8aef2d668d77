"""What a recipe may say: every field, the components that it names, and the sentence for what is wrong with one.

`recipes/base.yaml` holds every default with a comment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from paddle_tfm.errors import Problem, unknown
from paddle_tfm.recipe.yaml_lines import Origins, join

Component = str | dict
PerSite = str | dict
STACKS = ("encoder", "decoder")
SUBLAYERS = ("self", "cross", "feed_forward", "final")
# kinds of the model section that are chosen per site, with their sites: stack -> sublayers
PER_SITE: dict[str, dict[str, tuple[str, ...]]] = {
    "attention": {"encoder": ("self",), "decoder": ("self", "cross")},
    "norm": {"encoder": ("self", "feed_forward", "final"), "decoder": SUBLAYERS},
    "placement": {"encoder": ("self",), "decoder": ("self",)},  # one a layer, asked for at its first site
    "position": {"encoder": ("self",), "decoder": ("self", "cross")},
    "feed_forward": {"encoder": ("feed_forward",), "decoder": ("feed_forward",)},
}
# The shapes of a model: which stacks it has.
BOTH, DECODER_ONLY, ENCODER_ONLY = "encoder-decoder", "decoder-only", "encoder-only"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class ModelSettings(_Section):
    """The `model:` section."""

    d_model: int = Field(gt=0, le=65_536)
    num_heads: int = Field(gt=0, le=4_096)
    d_ff: int = Field(gt=0, le=1_048_576)
    encoder_layers: int = Field(ge=0, le=1_000)
    decoder_layers: int = Field(ge=0, le=1_000)
    labels: Literal["token", "sequence"] = "token"
    dropout: float = Field(ge=0, lt=1)
    embedding_dropout: float | None = Field(ge=0, lt=1)
    max_length: int = Field(gt=1, le=1_000_000)
    scale_embedding: bool
    share_embeddings: bool
    attention: PerSite
    norm: PerSite
    placement: PerSite
    position: PerSite
    feed_forward: PerSite
    head: Component
    initializer: Component

    @property
    def shape(self) -> str:
        """`BOTH`, `DECODER_ONLY` or `ENCODER_ONLY`."""
        return shape(self.encoder_layers, self.decoder_layers)

    @field_validator("decoder_layers")
    @classmethod
    def _some(cls, value: int, info: ValidationInfo) -> int:
        if value == 0 and info.data.get("encoder_layers") == 0:
            raise ValueError("and model.encoder_layers are both 0, but a model needs one stack at least")
        return value

    @field_validator(*PER_SITE)
    @classmethod
    def _placed(cls, value: PerSite, info: ValidationInfo) -> PerSite:
        kind, of = info.field_name, shape(info.data.get("encoder_layers"), info.data.get("decoder_layers"))
        used = {at_site(kind, value, *site)[0] for site in sites(kind, of)}
        elsewhere = {_written(kind, value, *site) for site in sites(kind)} - used
        for path in _choices(value):
            # What a whole stack would have, and what lies below it, may stand: an override spreads over both stacks.
            if path in used or path.removeprefix(".") in ("", *STACKS) or (path in elsewhere and path.count(".") > 1):
                continue
            if path in elsewhere and of != BOTH:
                raise ValueError(f"a model that is {of} has no {kind} there; leave it out", path)
            raise ValueError(f"a model has no {kind} there, or another key decides it", path)
        return value


class TrainSettings(_Section):
    """The `train:` section."""

    steps: int = Field(gt=0)
    max_tokens: int = Field(gt=0)
    accumulate: int = Field(gt=0)
    optimizer: Component
    schedule: Component
    label_smoothing: float = Field(ge=0, lt=1)
    clip_norm: float | None = Field(gt=0)
    max_ratio: float | None = Field(gt=1)
    r_drop: float = Field(ge=0)
    ema: float | None = Field(gt=0, lt=1)
    average: int | None = Field(gt=1)
    precision: Literal["float32", "bfloat16"]


class EvaluateSettings(_Section):
    """The `evaluate:` section."""

    every: int = Field(gt=0)
    patience: int | None = Field(gt=0)
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

    name: str = Field(pattern=r"^\w[\w.-]*$", max_length=100)
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
    seeds: list[Annotated[int, Field(ge=0, lt=2**31)]] = Field(min_length=1)
    baseline: str | None = None
    variant: str | None = None
    variants: dict[str, dict | None] = {}
    grid: dict[str, Annotated[list, Field(min_length=1)]] = {}

    @field_validator("tokenizer")
    @classmethod
    def _both_sides(cls, tokenizer: Component) -> Component:
        if isinstance(tokenizer, Mapping) and "name" not in tokenizer and set(tokenizer) != {"source", "target"}:
            raise ValueError(f"must be a name, {{name: …, options…}} or {{source: …, target: …}}, but is {tokenizer!r}")
        return tokenizer

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) != len(seeds):
            raise ValueError(f"must be distinct, but are {seeds}")
        return seeds

    @field_validator("grid")
    @classmethod
    def _one_way(cls, grid: dict[str, list], info: ValidationInfo) -> dict[str, list]:
        if grid and info.data.get("variants"):
            raise ValueError("stands beside `variants`; keep one of the two")
        return grid


# ------------------------------------------------------------------------------------------------------- what is wrong


def locate(problem: Problem, origins: Origins) -> Problem:
    """The problem with the file and line of the longest prefix of its path that was written somewhere."""
    path = problem.path
    while path:
        if path in origins:
            file, line = origins[path]
            return Problem(problem.path, problem.message, file, line or None)
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return problem


def validate(data: dict, origins: Origins) -> tuple[Settings | None, list[Problem]]:
    """The settings, or all that their structure has wrong (components are checked by `check_components`)."""
    try:
        return Settings.model_validate(data), []
    except ValidationError as error:
        return None, [locate(_sentence(item), origins) for item in _settled(error.errors())]


# pydantic's kinds of errors -> what a setting must be
_WANTED = {
    "component": "a name or {name: …, options…}",
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "too_short": "a list of one or more",
    "string_pattern_mismatch": "of letters, digits, `_`, `.` and `-`",
}


def _settled(errors: Sequence[dict]) -> Iterator[dict]:
    """One error a path: a union (name or mapping) complains once for each of its members."""
    seen = set()
    for error in errors:
        key = tuple(part for part in error["loc"] if part not in ("str", "dict[any,any]"))
        if key not in seen:
            seen.add(key)
            yield {**error, "loc": key, "type": error["type"] if key == error["loc"] else "component"}


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
        sentence, *below = error["ctx"]["error"].args
        return Problem("".join([path, *below]), str(sentence))
    wanted = _WANTED.get(kind) or error["msg"].removeprefix("Input should be ")
    return Problem(path, f"must be {wanted}, but is {'empty' if given is None else repr(given)}")


# ------------------------------------------------------------------------------------------- components and their sites


def _per_site(value: Mapping) -> bool:
    return bool(value) and "name" not in value and all(key in (*STACKS, *SUBLAYERS) for key in value)


def _choices(value: object, path: str = "") -> Iterator[str]:
    """The sub-paths at which a per-site value names a component."""
    if not isinstance(value, Mapping) or not _per_site(value):
        yield path
        return
    for key, item in value.items():
        yield from _choices(item, f"{path}.{key}")


def shape(encoder_layers: object, decoder_layers: object) -> str:
    """The shape of a model of so many layers; `BOTH` where they are no numbers, or both 0, which is said elsewhere."""
    if encoder_layers == 0 and decoder_layers != 0:
        return DECODER_ONLY
    return ENCODER_ONLY if decoder_layers == 0 and encoder_layers != 0 else BOTH


def sites(kind: str, of: str = BOTH) -> list[tuple[str, str]]:
    """(stack, sublayer) of all places where a model of this shape has a component of this kind."""
    without = {DECODER_ONLY: ("encoder", "cross"), ENCODER_ONLY: ("decoder",)}.get(of, ())
    return [
        (stack, sublayer)
        for stack, sublayers in PER_SITE[kind].items()
        for sublayer in sublayers
        if stack not in without and sublayer not in without
    ]


def _written(kind: str, value: PerSite, stack: str, sublayer: str) -> str:
    """The sub-path of `at_site`; "" where nothing is said about this site."""
    try:
        return at_site(kind, value, stack, sublayer)[0]
    except ValueError:
        return ""


def at_site(kind: str, value: PerSite, stack: str, sublayer: str) -> tuple[str, object]:
    """(sub-path, component) that a per-site value names for this site. `cross` falls back to the decoder's choice,
    except for positions: queries and keys of cross attention live in two sentences, so it has none (None) unless asked.
    None too where a model has no component of this kind.

    Raises:
        ValueError: the mapping says nothing about this site.
    """
    if (stack, sublayer) not in sites(kind):
        return "", None
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
    of = shape(model.get("encoder_layers"), model.get("decoder_layers"))
    for kind in PER_SITE:
        seen = set()
        for stack, sublayer in sites(kind, of):
            try:
                below, spec = at_site(kind, model.get(kind), stack, sublayer)
            except ValueError:
                continue  # the structure is wrong, and said to be
            if spec is not None and below not in seen:
                seen.add(below)
                yield kind, f"model.{kind}{below}", spec
    yield from ((kind, f"model.{kind}", model.get(kind)) for kind in ("head", "initializer"))


def tokenizer_specs(tokenizer: Component) -> dict[str, tuple[str, object]]:
    """side → (dotted path, spec): one tokenizer for both sides, or {source: …, target: …}."""
    if isinstance(tokenizer, Mapping) and "name" not in tokenizer:
        return {side: (f"tokenizer.{side}", tokenizer.get(side)) for side in ("source", "target")}
    return dict.fromkeys(("source", "target"), ("tokenizer", tokenizer))


def components(data: Mapping) -> Iterator[tuple[str, str, object]]:
    """(kind, dotted path, spec) of every component of a run's data. What is missing or of a wrong form is left out:
    `validate` says so."""
    found = [("task", "task", data.get("task"))]
    found += [("tokenizer", path, spec) for path, spec in dict(tokenizer_specs(data.get("tokenizer")).values()).items()]
    sections = {
        name: data.get(name) if isinstance(data.get(name), Mapping) else {} for name in ("model", "train", "evaluate")
    }
    found += model_components(sections["model"])
    found += [(kind, f"train.{kind}", sections["train"].get(kind)) for kind in ("optimizer", "schedule")]
    metrics = sections["evaluate"].get("metrics")
    found += [
        ("metric", f"evaluate.metrics[{i}]", spec)
        for i, spec in enumerate(metrics if isinstance(metrics, list) else [])
    ]
    found += [
        ("search", "evaluate.search", sections["evaluate"].get("search")),
        ("search", "search", data.get("search")),
    ]
    return ((kind, path, spec) for kind, path, spec in found if isinstance(spec, (str, Mapping)))
