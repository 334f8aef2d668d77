"""Checking a recipe: everything that is wrong with it, in all variants, before anything is read or trained."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from paddle_tfm.caveats import overlap
from paddle_tfm.data.codec import problems_of_files
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.data.datasets import missing
from paddle_tfm.errors import Problem, RecipeError, UserError
from paddle_tfm.language import _
from paddle_tfm.model import by_path
from paddle_tfm.model.build import build
from paddle_tfm.model.size import matrix_parameters, training_flops
from paddle_tfm.protocols import SPLITS
from paddle_tfm.recipe.expansion import Recipe, RunSpec
from paddle_tfm.recipe.plan import Plan, plan_run
from paddle_tfm.recipe.sections import fast
from paddle_tfm.recipe.sections.ladder import at, sizes_of
from paddle_tfm.recipe.sections.trials import first_trials
from paddle_tfm.recipe.validation import locate, validate
from paddle_tfm.recipe.yaml_lines import recipe_text
from paddle_tfm.registry import Registry
from paddle_tfm.sweep.cells import OncePerTexts
from paddle_tfm.sweep.first_step import first_step
from paddle_tfm.train import start
from paddle_tfm.train.fit import remarks as of_texts
from paddle_tfm.train.fit import require_fit
from paddle_tfm.units import metric_and_test, metric_name

CHECK_VOCABULARY = 32


def check(
    recipe: Recipe,
    registry: Registry,
    step: bool | None = None,
    only: Collection[str] | None = None,
    heads: bool = False,
) -> list[Plan]:
    """The plans of all runs, in the order of `Recipe.runs`. Each variant's components are built once, its model with a
    small vocabulary: what only a constructor can tell joins what its plan says.

    Args:
        step: whether each model takes a training step and decodes two tokens (`first_step`). Default: those with a
            plugin that is not ours, so that its errors come before an hour of training and not after it.
        only: names of runs; None: all. heads: whether the beginning of each file of texts is read.
    Raises:
        RecipeError: everything that is wrong, in all variants, at once.
    """
    runs, problems = recipe.expand()
    runs = [run for run in runs if only is None or run.name in only]
    plans: dict[str, Plan] = {}
    matrices: dict[str, int] = {}
    for run in runs:
        if run.variant not in plans:
            plans[run.variant] = plan_run(run, registry)
            plan = plans[run.variant]
            problems += [*plan.problems, *plan.located(dict.fromkeys(_more_problems(plan, step, matrices)))]
            problems += _heads(plan) if heads and not problems else []
    problems += fast.problems(recipe)
    if not problems:
        problems += _not_larger(recipe, plans, matrices)
        problems += _problems_of_trials(recipe, [plan.run for plan in plans.values()], registry)
    if problems:
        raise RecipeError(recipe.source, dict.fromkeys(problems))
    return [replace(plans[run.variant], run=run) for run in runs]


def _heads(plan: Plan) -> list[Problem]:
    """What is wrong with the files that its tokenizers, vocabulary, task, and those of its further tests read, and with
    the run that it begins with."""
    problems = [*problems_of_files(plan), *start.problems(plan)]
    for path, component in plan.components.items():
        if component.kind != "task":
            continue
        task = component.build()
        for split in SPLITS:
            try:
                task.read_head(split)
            except UserError as error:
                problems.append(Problem(f"{path}.{split}", str(error)))
    return plan.located(problems)


def _problems_of_trials(recipe: Recipe, runs: list[RunSpec], registry: Registry) -> Iterator[Problem]:
    """What is wrong with the points of a space, for all variants: of each setting the first that is. A model that
    several trials share is built once."""
    models: set[str] = set()
    paths: set[str] = set()
    tune = recipe.tune()
    for run in first_trials(recipe, tune, runs) if tune else []:
        model = json.dumps([run.variant, run.data["model"]], sort_keys=True)
        for problem in trial_problems(run, registry, with_model=model not in models):
            if problem.path not in paths:
                yield problem
            paths.add(problem.path)
        models.add(model)


def trial_problems(run: RunSpec, registry: Registry, with_model: bool = True) -> list[Problem]:
    """What is wrong with a trial of a variant that is sound by itself."""
    problems = validate(run.data, run.origins)[1]
    if problems:
        return problems
    plan = plan_run(run, registry)
    more = _more_problems(plan, False, {}) if with_model else (each for e in _errors(plan) for each in e.problems)
    return [*plan.problems, *plan.located(dict.fromkeys(more))]


def _not_larger(recipe: Recipe, plans: Mapping[str, Plan], matrices: Mapping[str, int]) -> Iterator[Problem]:
    """The sizes of a ladder that cost no more to train than the one before, by the most tokens that their batches
    hold."""
    for name in recipe.written_variants():
        costs = {}
        for size in sizes_of(recipe.data):
            if (variant := at(name, size)) in plans:
                train = plans[variant].settings.train
                tokens = train.steps * train.accumulate * train.max_tokens
                costs[size] = training_flops(matrices[variant], tokens)
        for (before, less), (size, more) in pairwise(costs.items()):
            if more <= less:
                sentence = (
                    f"sizes go from small to large, but '{name}' costs {more:.3g} floating-point operations here "
                    f"(6 · matrix parameters · tokens) and {less:.3g} at the size before, '{before}'"
                )
                yield locate(Problem(f"ladder.sizes.{size}", sentence), recipe.origins)


def _more_problems(plan: Plan, step: bool | None, matrices: dict[str, int]) -> Iterator[Problem]:
    """What constructors refuse, and what a step fails with if there is nothing else. Components that have problems of
    their own are left out. `matrices` gets the variant's `matrix_parameters`."""
    model, problems = None, list(plan.problems)
    if plan.model is not None:
        try:
            model = build(plan.model, CHECK_VOCABULARY, CHECK_VOCABULARY)
            matrices[plan.run.variant] = matrix_parameters(model)
        except RecipeError as error:
            problems += error.problems
            yield from (problem for problem in error.problems if problem not in plan.model.problems)
    if model is not None and plan.run.settings is not None:
        of_paths = list(by_path.problems(model, plan.settings.train))
        problems += of_paths
        yield from of_paths
        by_path.prepare(model, plan.settings.train)
    for refusal in _errors(plan):
        problems += refusal.problems
        yield from refusal.problems
    step = bool(plan.plugins_of_others()) if step is None else step
    if step and model is not None and not problems and plan.run.settings is not None:
        yield from first_step(plan, model, CHECK_VOCABULARY)


def _errors(plan: Plan) -> Iterator[RecipeError]:
    """What the constructors refuse of components that stand outside of the model."""
    givens = {}
    if plan.run.settings is not None:
        givens = {"d_model": plan.settings.model.d_model, "steps": plan.settings.train.steps}
    refused: set[str] = set()  # a further test is refused for what its own part of the task says, and not over again
    for path, component in plan.components.items():
        if path.startswith("model.") or component.problems or (not givens and component.missing(givens)):
            continue
        try:
            component.build(**givens)
        except RecipeError as error:
            sentence = f"{component.kind}: {error.problems[0].message}"
            if component.kind != "task" or sentence not in refused:
                yield error
            refused.add(sentence)


def check_texts(plans: Iterable[Plan]) -> list[str]:
    """What a user should know of the texts, each sentence once: those of each variant are read and encoded, unless a
    dataset would have to be fetched.

    Raises:
        UserError: they cannot be read, or do not fit their model.
    """
    sentences, corpus_of = [], OncePerTexts(load_corpus)
    for plan in {plan.run.variant: plan for plan in plans}.values():
        if absent := missing(plan):
            text = _("no text was read: {datasets} is not on disk yet; `run` fetches it")
            sentences.append(text.format(datasets=_(", ").join(absent)))
            continue
        corpus = corpus_of(plan)
        encoded = start.encoded(plan, corpus)[2]
        require_fit(plan, encoded)
        text = _("{number} examples are left out by {setting}")
        left_out = [text.format(number=f"{count:,}", setting=setting) for setting, count in corpus.dropped.items()]
        kept = overlap(corpus.in_training, even_none=True)
        sentences += [*corpus.remarks, *left_out, kept, *of_texts(plan, encoded)]
    return list(dict.fromkeys(sentences))


def remarks(plans: Iterable[Plan]) -> list[str]:
    """What a user should know of a recipe that is sound, each sentence once: what components say of themselves, norms
    over a batch that meet batches of texts of one length, and a metric by which variants are not compared."""
    plans = list(plans)
    norms = {plan.run.variant: names for plan in plans if (names := plan.norms_of_a_batch_by_length())}
    sentences = [sentence for plan in plans for sentence in plan.expected_failures()]
    if norms:
        known = ", ".join(sorted({name for names in norms.values() for name in names}))
        text = _(
            "{variants}: norms over a batch ({norms}) are trained on batches of texts of one length "
            "(train.batches=by_length) and evaluated on all lengths; compare with train.batches=mixed"
        )
        sentences.append(text.format(variants=_(", ").join(norms), norms=known))
    return list(dict.fromkeys([*sentences, *_other_pieces(plans)]))


def _other_pieces(plans: Sequence[Plan]) -> list[str]:
    """That variants with other pieces are not compared by a metric per piece, if that is what decides."""
    best, metrics = metric_and_test(plans[0].run.data["evaluate"]["best"])[0], plans[0].metrics()
    cut = {recipe_text([plan.run.data.get(key) for key in ("tokenizer", "vocabulary")]) for plan in plans}
    per_piece = {"loss", *(name for name, plan in metrics.items() if plan.cls is not None and plan.cls.per_piece)}
    if len(cut) < 2 or best not in per_piece:
        return []
    others = [name for name in metrics if name not in per_piece]
    instead = _("; `evaluate.best` may be {metrics}").format(metrics=_(" or ").join(others)) if others else ""
    text = _(
        "{metric} is a number per piece, and variants differ in tokenizer or vocabulary: they are not compared by it"
        "{instead}"
    )
    return [text.format(metric=metric_name(best), instead=instead)]
