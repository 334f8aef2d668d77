"""The model section, resolved: which component stands at each site, and which of them do not fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from paddle_tfm.components import ComponentPlan
from paddle_tfm.errors import Problem, UserError
from paddle_tfm.language import _
from paddle_tfm.protocols import Geometry, LayerSite
from paddle_tfm.recipe.settings import ModelSettings
from paddle_tfm.recipe.sites import BOTH, PER_SITE, at_site, model_components, sites
from paddle_tfm.registry import Registry

# norms that a placement may ask for inside its branches: the given → the kinds that must take it, and what they lack
NORMS_INSIDE = {
    "inner_norm": (("attention", "feed_forward"), "norm before its output projection"),
    "projection_norm": (("attention",), "norm of its queries, keys and values"),
}


@dataclass(frozen=True)
class ModelPlan:
    """What `paddle_tfm.model.build` builds.

    Args:
        components: dotted path → component. at_sites: (kind, stack, sublayer) → component.
        kernels: class or op → the kernel that may compute it.
        problems: all that is wrong with the components, and between neighbours, as far as it is known before they are
            built.
    """

    settings: ModelSettings
    components: Mapping[str, ComponentPlan]
    at_sites: Mapping[tuple[str, str, str], ComponentPlan]
    kernels: Mapping[object, ComponentPlan]
    problems: tuple[Problem, ...]

    def at(self, kind: str, stack: str, sublayer: str) -> ComponentPlan | None:
        """The component of this kind at a site; None where there is none."""
        return self.at_sites.get((kind, stack, sublayer))

    def component(self, kind: str, stack: str, sublayer: str) -> ComponentPlan:
        """The component of this kind at a site that has one."""
        return self.at_sites[kind, stack, sublayer]

    @property
    def head(self) -> ComponentPlan:
        """The component that gives probabilities."""
        return self.components["model.head"]

    @property
    def initializer(self) -> ComponentPlan:
        """The component that draws initial values."""
        return self.components["model.initializer"]

    @property
    def has_cross_attention(self) -> bool:
        """Whether a layer of the decoder has cross-attention beside its self-attention."""
        component = self.at("attention", "decoder", "cross")
        return component is not None and not (component.cls is not None and component.cls.reads_memory)

    def geometry(self, stack: str, sublayer: str) -> Geometry:
        """The head layout of the attention at a site. Raises ValueError: it refuses its options."""
        attention = self.component("attention", stack, sublayer)
        if attention.cls is None:
            raise ValueError(f"'{attention.name}' is no attention")
        options = {"d_model": self.settings.d_model, "num_heads": self.settings.num_heads, **attention.options}
        return attention.cls.geometry(**options)

    def site(self, stack: str, sublayer: str, layer: int) -> LayerSite:
        """The place of a component in a model of this many layers."""
        return LayerSite(stack, sublayer, layer, self.settings.encoder_layers, self.settings.decoder_layers)


def plan_model(
    settings: ModelSettings,
    registry: Registry,
    components: Mapping[str, ComponentPlan] | None = None,
    kernels: bool = True,
) -> ModelPlan:
    """The plan of a model, with the kernels that are installed or with none; `components` are those of its section,
    dotted path → component, where they are resolved already."""
    section = settings.model_dump()
    if components is None:
        components = {path: registry.resolve(kind, spec, path) for kind, path, spec in model_components(section)}
    at_sites = {}
    for kind in PER_SITE:
        for stack, sublayer in sites(kind, settings.shape):
            subpath, spec = at_site(kind, section[kind], stack, sublayer)
            if spec is not None:
                at_sites[kind, stack, sublayer] = components[f"model.{kind}{subpath}"]
    problems = [problem for component in components.values() for problem in component.problems]
    of_kernels: Mapping[object, ComponentPlan] = {}
    try:
        of_kernels = registry.kernels() if kernels else {}
    except UserError as error:
        problems.append(Problem("train.kernels", str(error)))
    plan = ModelPlan(settings, components, at_sites, of_kernels, ())
    problems += [*_head_problems(plan), *_norm_problems(plan), *_memory_problems(plan)]
    return replace(plan, problems=tuple(dict.fromkeys(problems)))


def _head_problems(plan: ModelPlan) -> Iterator[Problem]:
    head, model_shape = plan.head, plan.settings.shape
    if head.cls is not None and head.cls.extends_vocabulary and model_shape != BOTH:
        sentence = (
            f"'{head.name}' copies words of a source into a target, but a model that is {model_shape} has "
            "only one of them"
        )
        yield Problem(head.path, sentence)


def _memory_problems(plan: ModelPlan) -> Iterator[Problem]:
    """An attention to memory and text at once that is not the decoder's only one; and what a recipe chooses for a
    cross-attention that is therefore missing."""
    own, cross = (plan.at("attention", "decoder", sublayer) for sublayer in ("self", "cross"))
    both = next((one for one in (cross, own) if one is not None and one.cls is not None and one.cls.reads_memory), None)
    if own is None or cross is None or both is None:
        return
    if (own.name, own.options) != (cross.name, cross.options):
        text = _("'{name}' is self- and cross-attention at once; choose it for both: `attention: {example}`")
        example = f"{{encoder: {plan.component('attention', 'encoder', 'self').name}, decoder: {both.name}}}"
        yield Problem(both.path, text.format(name=both.name, example=example))
    norms = [plan.component("norm", "decoder", sublayer) for sublayer in ("self", "cross")]
    if (norms[0].name, norms[0].options) != (norms[1].name, norms[1].options):
        text = _("there is no cross-attention to normalize, since attention '{name}' is both; leave it out")
        yield Problem(norms[1].path, text.format(name=both.name))


def asks(placement: ComponentPlan, norm: str, sublayer: str) -> bool:
    """Whether a placement asks for this norm inside the branch of this sublayer."""
    return placement.cls is not None and placement.cls.asks(norm, sublayer)


def _norm_problems(plan: ModelPlan) -> Iterator[Problem]:
    """A placement that wants a norm inside its branches, around a sublayer whose class takes none."""
    for (kind, stack, site), component in plan.at_sites.items():
        placement, sublayer = plan.at("placement", stack, "self"), kind if kind == "feed_forward" else site
        for parameter, (kinds, lack) in NORMS_INSIDE.items():
            if kind not in kinds or component.cls is None or placement is None:
                continue
            if asks(placement, parameter, sublayer) and parameter not in component.parameters:
                sentence = f"'{component.name}' has no {lack}, which the placement asks for"
                yield Problem(component.path, sentence)
