"""What is checked: one component with its options, alone and inside small real models at every site where it may
stand."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from paddle_tfm.components import Entry
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.model.build import build
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.options import Option, component_kind, parameters
from paddle_tfm.plugins import Provider
from paddle_tfm.protocols import LayerSite
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.recipe.model_plan import NORMS_INSIDE, plan_model
from paddle_tfm.recipe.settings import ModelSettings
from paddle_tfm.recipe.sites import PER_SITE, at_site, sites
from paddle_tfm.registry import Registry
from paddle_tfm.testing.models.scene import Scene
from paddle_tfm.testing.models.size import (
    ALL_ALIKE,
    LONG_TEXT,
    MAX_LENGTH,
    ODD,
    ONE_LAYER,
    ONE_SENTENCE,
    USUAL,
    VOCABULARY,
    Size,
)
from paddle_tfm.testing.other_process import in_another_order

PROBE = "probe of every hook"


class ComponentUnderTest:
    """A component with its options: what the checks look at.

    Raises:
        UserError: it cannot be built anywhere; the sentence says why.
    """

    def __init__(self, registry: Registry, kind: str, name: str, options: Mapping[str, object] | None = None):
        self.registry, self.kind, self.name = registry, kind, name
        self.cls = registry.entry(kind, name).load()
        self.spec = {"name": name, **self._required_parts(), **(options or {})}
        classes = [registry.entry(*part).load() for part in self._parts_of_its_kind()]
        self.expected_failures: Mapping[str, str] = {
            check: reason
            for cls in [*classes, self.cls]
            for check, reason in getattr(cls, "expected_failures", {}).items()
        }
        self.refusals: dict[str, str] = self._accepted[2]
        """Site → the sentence with which the component refuses it."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def takes(self, name: str) -> bool:
        """Whether its constructor has a parameter of this name."""
        cls: Any = self.cls
        return name in parameters(cls)

    def with_options(self, options: Mapping[str, object]) -> ComponentUnderTest:
        """The same component with these options too."""
        return ComponentUnderTest(self.registry, self.kind, self.name, {**self.own_options, **options})

    @property
    def own_options(self) -> dict[str, object]:
        """What is set of it."""
        return {key: value for key, value in self.spec.items() if key != "name"}

    def options(self) -> Iterator[Option]:
        """All options; a default is what this component has."""
        for name, option in self.registry.options(self.kind, self.name).items():
            yield replace(option, default=self.spec.get(name, option.default))

    def varied(self, options: Mapping[str, object]) -> ComponentUnderTest:
        """The same at the same sites, with these options too, which nobody has tried."""
        varied = copy.copy(self)
        varied.spec = {**self.spec, **options}
        return varied

    def _required_parts(self) -> dict[str, object]:
        """Options that must be set and are components themselves: the one of base.yaml."""
        parts = {}
        for key, option in self.registry.options(self.kind, self.name).items():
            nested = component_kind(option.annotation)
            if option.required and nested and nested[0] in self.base:
                part = self.base[nested[0]]
                parts[key] = [part] if nested[1] else part
        return parts

    def _parts_of_its_kind(self) -> Iterator[tuple[str, str]]:
        """(kind, name) of its parts that are of its kind, such as the encodings of a chain: their expected failures are
        its own."""
        for part in list(self.registry.resolve(self.kind, self.spec, self.kind).walk())[1:]:
            if part.kind == self.kind:
                yield part.kind, part.name

    @cached_property
    def base(self) -> dict[str, object]:
        """The model section of base.yaml: what stands wherever the component does not."""
        settings = recipes.load("base").runs()[0].settings
        if settings is None:
            raise UserError("base.yaml must be sound, but is not; `paddle-tfm check base` says where")
        return settings.model.model_dump()

    def build(self, site: LayerSite | None = None, **kwargs: object):
        """The component alone."""
        inside = dict.fromkeys(NORMS_INSIDE)
        kwargs = {"site": site, "max_length": MAX_LENGTH, "dropout": 0.0, **inside, **kwargs}
        return self.registry.build(self.kind, self.spec, self.kind, **kwargs)

    def in_another_order(self):
        """The component alone, sets in its file gone through in another order; None where there are none, or where the
        file cannot be read a second time."""
        with contextlib.suppress(Exception):  # the file is executed once more, which nobody promised that it can be
            if (other := in_another_order(self.cls)) is not None:
                registry = copy.copy(self.registry)
                registry.tables = {kind: dict(table) for kind, table in registry.tables.items()}
                registry.add(Entry(self.kind, self.name, other, Provider("paddle_tfm", "testing", "")))
                return registry.build(self.kind, self.spec)
        return None

    # ---------------------------------------------------------------------------------------------------- in models

    def make(self, settings: ModelSettings, seed: int = 1, vocabulary: int = VOCABULARY) -> Transformer:
        """A model of these settings, which formulas compute: kernels are for checks of their own.

        Raises:
            UserError: a component refuses its site or its neighbour.
        """
        return build(plan_model(settings, self.registry, kernels=False), vocabulary, vocabulary, seed)

    def settings(self, size: Size, value: object, **others: object) -> ModelSettings:
        """The model section with `value` as this kind's, and `others` as theirs."""
        values = copy.deepcopy(self.base) | {
            "d_model": size.d_model,
            "num_heads": size.num_heads,
            "d_ff": size.d_ff,
            "encoder_layers": size.encoder_layers,
            "decoder_layers": size.decoder_layers,
            "dropout": 0.0,
            "embedding_dropout": None,
            "max_length": MAX_LENGTH,
            self.kind: value,
            **others,
        }
        return ModelSettings.model_validate(values)

    def at(self, names: list[str]) -> object:
        """A per-site value: this component at the sites `names`, base.yaml's elsewhere. An attention that reads the
        memory is the decoder's self- and cross-attention."""
        value: dict[str, dict[str, object]] = {}
        if getattr(self.cls, "reads_memory", False) and "decoder.self" in names:
            names = [*names, "decoder.cross"]
        for stack, sublayer in sites(self.kind):
            usual = at_site(self.kind, self.base[self.kind], stack, sublayer)[1]
            spec = self.spec if f"{stack}.{sublayer}" in names else usual
            if spec is not None:
                value.setdefault(stack, {})[sublayer] = spec
        return value

    def _refusal(self, value: object, size: Size = USUAL) -> str:
        """Why no model can be built with this value; "" if one can."""
        try:
            self.make(self.settings(size, value))
        except RecipeError as error:
            return _sentences(error)
        except UserError as error:
            return str(error)
        return ""

    def _require_buildable(self) -> None:
        """A component that stands in no model: it can be built with these options.

        Raises:
            UserError: it cannot; the sentence says why, and where options that must be set are missing, which.
        """
        options = self.registry.options(self.kind, self.name)
        if missing := [key for key, option in options.items() if option.required and key not in self.spec]:
            example = " ".join(f"--option {key}=…" for key in missing)
            raise UserError(f"{self} needs {' and '.join(f'`{key}`' for key in missing)}: {example}")
        try:
            self.build(d_model=USUAL.d_model, steps=1000)
        except RecipeError as error:
            raise UserError(f"{self} cannot be built: {_sentences(error)}") from error

    @cached_property
    def _accepted(self) -> tuple[object, list[str], dict[str, str]]:
        """(this kind's value with the component wherever it may stand, the sites, site → why it is refused there)."""
        if self.kind not in ModelSettings.model_fields:
            self._require_buildable()
            return None, [], {}
        if self.kind not in PER_SITE:
            if refusal := self._refusal(self.spec):
                raise UserError(f"{self} cannot be built: {refusal}")
            return self.spec, [], {}
        names = [f"{stack}.{sublayer}" for stack, sublayer in sites(self.kind)]
        if not self._refusal(everywhere := self.at(names)):  # most may stand everywhere
            return everywhere, names, {}
        answers = {name: self._refusal(self.at([name])) for name in names}
        refusals = {name: refusal for name, refusal in answers.items() if refusal}
        accepted = [name for name in names if not answers[name]]
        if not accepted:
            raise UserError(f"{self} cannot be built at any site: {'; '.join(dict.fromkeys(refusals.values()))}")
        everywhere = self.at(accepted)
        if refusal := self._refusal(everywhere):
            raise UserError(f"{self} cannot stand at several sites at once: {refusal}")
        return everywhere, accepted, refusals

    def site(self, prefer: str = "") -> LayerSite:
        """A site where the component may stand: the preferred one, if it may."""
        stack, sublayer = (prefer if prefer in self.site_names else self.site_names[0]).split(".")
        return LayerSite(stack, sublayer, 0, USUAL.encoder_layers, USUAL.decoder_layers)

    @property
    def site_names(self) -> list[str]:
        """Where it may stand, such as "decoder.cross"."""
        return self._accepted[1]

    @cached_property
    def scenes(self) -> list[Scene]:
        """Several sizes with the component wherever it may stand."""
        everywhere, _, refusals = self._accepted
        where = "at every site" if not refusals else "at " + ", ".join(self.site_names)
        scenes = [
            self._scene(size, where) for size in (USUAL, ODD, ONE_SENTENCE) if not self._refusal(everywhere, size)
        ]
        if self.kind == "attention":
            scenes.append(Scene(self, USUAL, self._probed(everywhere), f"{where}, under encodings of every hook"))
        return scenes

    @cached_property
    def one_layer(self) -> Scene:
        """The first scene with one layer a stack, in which the component stands once at each site."""
        size = USUAL if self._refusal(self._accepted[0], ONE_LAYER) else ONE_LAYER
        return self._scene(size, self.scenes[0].where)

    @cached_property
    def scenes_of_equal_sizes(self) -> list[Scene]:
        """As many sentences as tokens and heads, with the component wherever it may stand; none where it refuses so
        many heads."""
        refused = self._refusal(self._accepted[0], ALL_ALIKE)
        return [] if refused else [self._scene(ALL_ALIKE, "4 sentences of 4 tokens")]

    @cached_property
    def long_scenes(self) -> list[Scene]:
        """Texts of more than 70 tokens, with the component wherever it may stand."""
        return [self._scene(LONG_TEXT, "a text of 72 tokens")]

    def _scene(self, size: Size, where: str) -> Scene:
        return Scene(self, size, self.settings(size, self._accepted[0]), where)

    def _probed(self, everywhere: object) -> ModelSettings:
        """With an encoding that acts through all hooks that the attention supports."""
        from paddle_tfm.testing.models.probe import Probe

        self.registry.add(Entry("position", PROBE, Probe, Provider("paddle_tfm", "testing", "")))
        probe = {"name": PROBE, "hooks": sorted(self.cls.supports)}
        rest = {"name": PROBE, "hooks": sorted(self.cls.supports - {"embed"})}
        usual = self.base["position"]
        decoder = {"self": probe if "decoder.self" in self.site_names else usual}
        if "decoder.cross" in self.site_names:
            decoder["cross"] = rest
        encoder = probe if "encoder.self" in self.site_names else usual
        return self.settings(USUAL, everywhere, position={"encoder": encoder, "decoder": decoder})


def _sentences(error: RecipeError) -> str:
    """Each problem once; one that begins with "must" is of the option that its path ends with."""
    problems = ((problem.message, problem.path.rpartition(".")[2]) for problem in error.problems)
    return "; ".join(
        dict.fromkeys(f"`{last}` {message}" if message.startswith("must ") else message for message, last in problems)
    )
