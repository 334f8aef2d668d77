"""The plan of a run: recipe × registry → the class and options of every component, and all problems at once.

Nothing is checked after it: what a constructor refuses is all that building can add.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from paddle_tfm.component_source import identity
from paddle_tfm.components import ComponentPlan
from paddle_tfm.errors import DID_YOU_MEAN, Problem, RecipeError, nearest, unknown
from paddle_tfm.language import _
from paddle_tfm.plugins import Provider
from paddle_tfm.protocols import Initializer
from paddle_tfm.recipe.expansion import RunSpec
from paddle_tfm.recipe.model_plan import ModelPlan, plan_model
from paddle_tfm.recipe.sections.further_tests import unknown_test
from paddle_tfm.recipe.settings import Settings
from paddle_tfm.recipe.sites import BOTH, DECODER_ONLY, PER_SITE, STACKS, SUBLAYERS, component_specs, tokenizer_specs
from paddle_tfm.recipe.validation import locate, sound_sections
from paddle_tfm.registry import Registry
from paddle_tfm.units import metric_and_test

OVER_A_BATCH = "neighbours_in_training"  # expected to fail of a norm that looks beyond a sentence


@dataclass(frozen=True)
class Plan:
    """One run with everything in it resolved.

    Args:
        components: dotted path → component, of the whole recipe. model: None if the section's structure is wrong.
        problems: all that is wrong, each with file and line; what is wrong with the structure, `Recipe.expand` says.
        registry: that resolved it.
    """

    run: RunSpec
    components: Mapping[str, ComponentPlan]
    model: ModelPlan | None
    problems: tuple[Problem, ...]
    registry: Registry = field(repr=False, compare=False)

    @property
    def settings(self) -> Settings:
        """The recipe as checked fields; only where its structure is sound."""
        if self.run.settings is None:
            raise RecipeError(self.run.recipe, self.problems)
        return self.run.settings

    @property
    def sound_model(self) -> ModelPlan:
        """The model; only where the structure of its section is sound."""
        if self.model is None:
            raise RecipeError(self.run.recipe, self.problems)
        return self.model

    def tokenizer(self, side: str) -> ComponentPlan:
        """That of the side `source` or `target`; the same object where one serves both sides."""
        return self.components[tokenizer_specs(self.run.data["tokenizer"])[side][0]]

    def metrics(self) -> dict[str, ComponentPlan]:
        """The metrics by name."""
        return {component.name: component for component in _metrics(self.components)}

    def providers(self) -> dict[str, str]:
        """Component → plugin and version that provide it, and the hash of its code; those inside of others too."""
        parts = {f"{part.kind} {part.name}": (part.cls, provider) for part, provider in self._provided()}
        return {
            name: provider.identity if cls is None else identity(cls, provider)
            for name, (cls, provider) in sorted(parts.items())
        }

    def plugin_files(self) -> dict[str, str]:
        """Plugin → path of the `--plugin` file that provides a component of this run."""
        files = (provider for _, provider in self._provided() if provider.is_file)
        return {provider.plugin: str(Path(provider.source).resolve()) for provider in files}

    def plugins_of_others(self) -> list[ComponentPlan]:
        """The components that paddle_tfm itself does not bring."""
        return [part for part, provider in self._provided() if not provider.is_ours]

    def _provided(self) -> Iterator[tuple[ComponentPlan, Provider]]:
        """Each component, those inside of others too, with who provides it."""
        kernels = () if self.model is None else self.model.kernels.values()
        for component in (*self.components.values(), *kernels):
            yield from ((part, part.provider) for part in component.walk() if part.provider is not None)

    def expected_failures(self) -> list[str]:
        """Sentences about what components of the decoder say of themselves: that they are not causal in training."""
        sentences: dict[str, None] = {}
        for (kind, stack, sublayer), component in ({} if self.model is None else self.model.at_sites).items():
            if stack == "decoder" and sublayer != "final":
                if reason := getattr(component.cls, "expected_failures", {}).get("causal_in_training"):
                    sentences[f"{self.run.variant}: {kind} '{component.name}' in the decoder: {reason}"] = None
        return list(sentences)

    def norms_of_a_batch_by_length(self) -> list[str]:
        """The norms that normalize over a batch, where each batch holds texts of one length."""
        if self.model is None or self.run.settings is None or self.settings.train.batches != "by_length":
            return []
        norms = (component for (kind, *_), component in self.model.at_sites.items() if kind == "norm")
        return sorted({norm.name for norm in norms if OVER_A_BATCH in getattr(norm.cls, "expected_failures", {})})

    def located(self, problems: Iterable[Problem]) -> list[Problem]:
        """Problems of this run with file and line."""
        return [locate(problem, self.run.origins) for problem in problems]

    def require_sound(self, source: str) -> Plan:
        """This plan.

        Raises:
            RecipeError: all its problems; `source` is what the recipe is called.
        """
        if self.problems:
            raise RecipeError(source, self.problems)
        return self


def plan_run(run: RunSpec, registry: Registry) -> Plan:
    """Resolve what a run names. Where the structure is wrong, the sections that are sound are planned all the same."""
    components = _components(run.data, registry)
    sections = sound_sections(run.data, run.settings)
    problems = [_as_place(problem, component) for component in components.values() for problem in component.problems]
    model = None
    if "model" in sections:
        of_the_model = {path: component for path, component in components.items() if path.startswith("model.")}
        model = plan_model(sections["model"], registry, of_the_model, getattr(sections.get("train"), "kernels", True))
        of_components = {problem for component in components.values() for problem in component.problems}
        problems += [problem for problem in model.problems if problem not in of_components]
    problems += [*_required_plugins(run, registry), *_metric_problems(sections, components)]
    problems += [*_source_problems(sections, components, registry), *_length_problems(sections, components)]
    problems += _rate_problems(components, registry)
    located = tuple(dict.fromkeys(locate(problem, run.origins) for problem in problems))
    return Plan(run, components, model, located, registry)


def _components(data: Mapping, registry: Registry) -> dict[str, ComponentPlan]:
    """dotted path → component; of a task with problems, those of further tests would only repeat them."""
    components = {path: registry.resolve(kind, spec, path) for kind, path, spec in component_specs(data)}
    if "task" in components and components["task"].problems:
        return {path: each for path, each in components.items() if each.kind != "task" or path == "task"}
    return components


def _as_place(problem: Problem, component: ComponentPlan) -> Problem:
    """The problem; where an unknown option looks like a place of the model, as in `model.norm.dekoder=rms`, it says
    so."""
    name = problem.path.removeprefix(f"{component.path}.")
    if component.kind not in PER_SITE or name in component.parameters or not name.isidentifier():
        return problem
    if _(DID_YOU_MEAN).partition("{")[0] in problem.message:  # an option, which is nearer
        return problem
    hint = nearest(name, (*STACKS, *SUBLAYERS), "the place ")
    return replace(problem, message=f"{problem.message}{hint}")


def _metrics(components: Mapping[str, ComponentPlan]) -> Iterator[ComponentPlan]:
    return (component for path, component in components.items() if path.startswith("evaluate.metrics["))


def _required_plugins(run: RunSpec, registry: Registry) -> Iterator[Problem]:
    requires = run.data.get("requires")
    for plugin in requires if isinstance(requires, list) else []:
        if isinstance(plugin, str) and plugin not in registry.plugins.providers:
            failure = registry.plugins.failures.get(plugin)
            remedy = f"it failed to load: {failure}" if failure else "install it, or pass --plugin FILE.py"
            yield Problem("requires", f"plugin '{plugin}' is missing; {remedy}")


def _metric_problems(sections: Mapping, components: Mapping[str, ComponentPlan]) -> Iterator[Problem]:
    """Two of one name, one with the name of the loss, or a best one that is not measured."""
    names: list[str] = []
    for metric in _metrics(components):
        if metric.name == "loss" and metric.cls is not None:
            yield Problem(metric.path, _("'loss' is the name of what is always measured"))
        elif metric.name in names:
            yield Problem(metric.path, _("'{name}' is here twice; keep one").format(name=metric.name))
        elif metric.name:
            names.append(metric.name)
    if not all(metric.cls for metric in _metrics(components)):
        return  # which metric a misspelled name stands for is not known: it may be the best one
    if "evaluate" not in sections:
        return
    evaluate = sections["evaluate"]
    best, name = metric_and_test(evaluate.best)
    if name and (sentence := unknown_test(name, evaluate.tests)):
        yield Problem("evaluate.best", sentence)
    elif name and (evaluate.tests[name].split == "test" or not evaluate.tests[name].while_training):
        sentence = _("'{best}' would choose a checkpoint by a test, which must not choose any").format(
            best=evaluate.best
        )
        remedy = _(
            "name a metric of the validation split, or of a further test with `split: valid, while_training: true`"
        )
        yield Problem("evaluate.best", f"{sentence}; {remedy}")
    elif best not in (*names, "loss"):
        sentence = _("{sentence}; set it with `evaluate.metrics`").format(
            sentence=unknown("metric", best, [*names, "loss"])
        )
        yield Problem("evaluate.best", sentence)


def _rate_problems(components: Mapping[str, ComponentPlan], registry: Registry) -> Iterator[Problem]:
    """An initializer that gives parameters rates for updates like Adam's, beside an optimizer with others."""
    initializer, optimizer = components.get("model.initializer"), components.get("train.optimizer")
    if initializer is None or optimizer is None or initializer.cls is None or optimizer.problems:
        return
    if initializer.cls.rate_factor is Initializer.rate_factor:
        return
    try:
        if optimizer.build().adam_like:
            return
    except RecipeError:  # the check of its own options says it
        return
    classes = {name: registry.entry("optimizer", name).load() for name in registry.names("optimizer")}
    known = ", ".join(name for name, cls in classes.items() if cls.adam_like)
    options = _(" with these options") if optimizer.options else ""
    sentence = _(
        "'{name}'{options} has updates unlike Adam's, for which '{initializer}' sets the rate of each "
        "parameter; choose one of {known}, or another `model.initializer`"
    ).format(name=optimizer.name, options=options, initializer=initializer.name, known=known)
    yield Problem(optimizer.path, sentence)


def _length_problems(sections: Mapping, components: Mapping[str, ComponentPlan]) -> Iterator[Problem]:
    """Further tests of longer texts than a component knows positions for."""
    model, evaluate = sections.get("model"), sections.get("evaluate")
    if model is None or evaluate is None:
        return
    for name, test in evaluate.tests.items():
        if test.max_length is None or test.max_length <= model.max_length:
            continue
        for part in (part for path, each in components.items() if path.startswith("model.") for part in each.walk()):
            if getattr(part.cls, "ends_at_max_length", False):
                sentence = _(
                    "{kind} '{name}' ({path}) knows positions below model.max_length={max_length} only; "
                    "leave it out of this comparison, or raise model.max_length"
                ).format(kind=part.kind, name=part.name, path=part.path, max_length=model.max_length)
                yield Problem(f"evaluate.tests.{name}.max_length", sentence)


def _source_problems(
    sections: Mapping, components: Mapping[str, ComponentPlan], registry: Registry
) -> Iterator[Problem]:
    """What a recipe asks for that takes a source and a target, or one vocabulary for both."""
    model, vocabulary, train = (sections.get(name) for name in ("model", "vocabulary", "train"))
    if model is None:
        return
    if model.share_embeddings and vocabulary is not None and not vocabulary.shared:
        yield Problem("model.share_embeddings", _("needs one vocabulary for both sides; set `vocabulary.shared=true`"))
    if model.shape != BOTH and train is not None and train.max_ratio is not None:
        sentence = _("compares the lengths of two texts, but a model that is {shape} reads one; use null").format(
            shape=model.shape
        )
        yield Problem("train.max_ratio", sentence)
    if model.shape == DECODER_ONLY:
        for metric in _metrics(components):
            if metric.cls is not None and metric.cls.needs_search:
                sentence = _(
                    "'{name}' scores what is written for a source, which a decoder-only model "
                    "(`model.encoder_layers=0`) does not read"
                ).format(name=metric.name)
                known = [
                    name for name in registry.names("metric") if not registry.entry("metric", name).load().needs_search
                ]
                yield Problem(
                    metric.path,
                    _("{sentence}; known that score a text: {known}").format(sentence=sentence, known=", ".join(known)),
                )
