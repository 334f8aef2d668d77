"""What a recipe may say: every field.

`recipes/base.yaml` holds every default with a comment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from paddle_tfm.language import _
from paddle_tfm.options import LARGEST
from paddle_tfm.recipe.sections import Section
from paddle_tfm.recipe.sections.claims import ClaimSettings
from paddle_tfm.recipe.sections.equal import parse
from paddle_tfm.recipe.sections.further_tests import FurtherTest, check_names
from paddle_tfm.recipe.sections.ladder import LadderSettings
from paddle_tfm.recipe.sections.seeds import SeedPlan, Seeds
from paddle_tfm.recipe.sections.tuning import TuneSettings
from paddle_tfm.recipe.sites import PER_SITE, Component, PerSite, refuse_unused, shape
from paddle_tfm.validators import WIDEST

# what stands beside the runs in a recipe, and determines no number of theirs
BESIDE = ("smallest_effect", "fast", "claims", "ladder", "equal")
# what a recipe says of all its runs together, and no variant of itself
OF_THE_RECIPE = ("name", "seeds", "baseline", "variant", "variants", "grid", "ablate", "base", "size", "tune", *BESIDE)


class ModelSettings(Section):
    """The `model:` section."""

    d_model: int = Field(gt=0, le=WIDEST)
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
    source_end: bool = True
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
    def _one_stack(cls, value: int, info: ValidationInfo) -> int:
        if value == 0 and info.data.get("encoder_layers") == 0:
            raise ValueError(_("and model.encoder_layers are both 0, but a model needs one stack at least"))
        return value

    @field_validator(*PER_SITE)
    @classmethod
    def _used(cls, value: PerSite, info: ValidationInfo) -> PerSite:
        layers = info.data.get("encoder_layers"), info.data.get("decoder_layers")
        refuse_unused(str(info.field_name), value, shape(*layers))
        return value


class TrainSettings(Section):
    """The `train:` section."""

    steps: int = Field(gt=0, le=LARGEST)
    max_tokens: int = Field(gt=0, le=LARGEST)
    batches: Literal["by_length", "mixed"] = "by_length"
    accumulate: int = Field(gt=0, le=10_000)
    optimizer: Component
    schedule: Component
    label_smoothing: float = Field(ge=0, lt=1)
    clip_norm: float | None = Field(gt=0)
    max_ratio: float | None = Field(gt=1)
    r_drop: float = Field(ge=0)
    ema: float | None = Field(gt=0, lt=1)
    average: int | None = Field(gt=1, le=LARGEST)
    precision: Literal["float32", "bfloat16"]
    products: Literal["float32", "bfloat16"] = "float32"
    kernels: bool = True
    shards: int | None = Field(None, gt=0, le=64)
    gradient_norms: int | None = Field(None, gt=0, le=LARGEST)
    from_: str | None = Field(None, alias="from", min_length=1)
    vocabulary: Literal["keep", "extend", "replace"] = "keep"
    redraw: float = Field(0.0, ge=0, lt=1)
    freeze: list[str] = []
    rate_factors: dict[str, Annotated[float, Field(gt=0, le=1e6)]] = {}

    @field_validator("vocabulary")
    @classmethod
    def _of_another_run(cls, value: str, info: ValidationInfo) -> str:
        if value != "keep" and info.data.get("from_") is None:
            raise ValueError("says what becomes of the pieces of another run; name that by `from`")
        return value

    @field_validator("redraw")
    @classmethod
    def _of_its_weights(cls, value: float, info: ValidationInfo) -> float:
        if value and info.data.get("from_") is None:
            raise ValueError("says how many weights of another run are drawn again; name that by `from`")
        return value


class EvaluateSettings(Section):
    """The `evaluate:` section."""

    every: int = Field(gt=0, le=LARGEST)
    patience: int | None = Field(gt=0, le=LARGEST)
    metrics: list[Component] = Field(min_length=1)
    best: str
    examples: int | None = Field(gt=0, le=LARGEST)
    search: Component
    tests: dict[str, FurtherTest] = {}

    @field_validator("tests")
    @classmethod
    def _callable(cls, tests: dict[str, FurtherTest]) -> dict[str, FurtherTest]:
        check_names(tests)
        return tests


class VocabularySettings(Section):
    """The `vocabulary:` section."""

    shared: bool
    min_frequency: int = Field(gt=0, le=LARGEST)
    max_size: int | None = Field(gt=4, le=LARGEST)
    file: str | Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    symbols: list[str] = []

    @field_validator("file")
    @classmethod
    def _alone(cls, file: str | list[str] | None, info: ValidationInfo) -> str | list[str] | None:
        if file is not None and (info.data.get("max_size") is not None or info.data.get("min_frequency") != 1):
            raise ValueError(_("says what the vocabulary is; leave out `min_frequency` and `max_size`"))
        if isinstance(file, list) and info.data.get("shared"):
            raise ValueError(_("must be one file where `vocabulary.shared` is true: both sides have the same pieces"))
        return file

    @field_validator("symbols")
    @classmethod
    def _whole(cls, symbols: list[str]) -> list[str]:
        for symbol in symbols:
            if symbol.split() != [symbol]:
                raise ValueError(_("must be texts without white space, but one is {symbol!r}").format(symbol=symbol))
            if symbols.count(symbol) > 1:
                raise ValueError(_("must be distinct, but {symbol!r} stands there twice").format(symbol=symbol))
        return symbols


class Settings(Section):
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
    seeds: Seeds
    smallest_effect: float | None = Field(None, gt=0)
    baseline: str | None = None
    variant: str | None = None
    size: str | None = None
    variants: dict[str, dict | None] = {}
    grid: dict[str, Annotated[list, Field(min_length=1)]] = {}
    ablate: list[Any] = []
    fast: dict[str, Any] = {}
    claims: dict[str, ClaimSettings] = {}
    tune: TuneSettings | None = None
    ladder: LadderSettings | None = None
    equal: Any = "steps"

    @field_validator("tokenizer")
    @classmethod
    def _both_sides(cls, tokenizer: Component) -> Component:
        if isinstance(tokenizer, Mapping) and "name" not in tokenizer and set(tokenizer) != {"source", "target"}:
            text = _("must be a name, {{name: …, options…}} or {{source: …, target: …}}, but is {tokenizer!r}")
            raise ValueError(text.format(tokenizer=tokenizer))
        return tokenizer

    @field_validator("equal")
    @classmethod
    def _budget(cls, equal: Any) -> Any:
        parse(equal)
        return equal

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: list[int] | SeedPlan) -> list[int] | SeedPlan:
        if isinstance(seeds, list) and len(set(seeds)) != len(seeds):
            raise ValueError(_("must be distinct, but are {seeds}").format(seeds=seeds))
        return seeds

    @field_validator("grid")
    @classmethod
    def _one_way(cls, grid: dict[str, list], info: ValidationInfo) -> dict[str, list]:
        if grid and info.data.get("variants"):
            raise ValueError(_("stands beside `variants`; keep one of the two"))
        for path, levels in grid.items():
            if len(levels) == 1:
                sentence = _("has one level, and nothing to compare it with; add another, or set {path} itself").format(
                    path=path
                )
                raise ValueError(sentence, f".{path}")
        return grid

    @field_validator("ablate")
    @classmethod
    def _paths(cls, ablate: list, info: ValidationInfo) -> list:
        for key in ("variants", "grid"):
            if ablate and info.data.get(key):
                raise ValueError(_("stands beside `{key}`; keep one of the two").format(key=key))
        for number, item in enumerate(ablate):
            (path, *more) = item if isinstance(item, Mapping) and item else (item,)
            if more or not isinstance(path, str):
                form = "a path, model.norm, or one with what takes its place, {model.norm: none}"
                raise ValueError(_("must be {form}, but is {item!r}").format(form=form, item=item), f"[{number}]")
        return ablate
