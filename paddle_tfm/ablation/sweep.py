"""All runs of a recipe, one after another: the same data, the same order, the same budget for every variant."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddle_tfm.errors import Problem, RecipeError, UserError
from paddle_tfm.model.build import build
from paddle_tfm.recipe import PER_SITE, Recipe, RunSpec, at_site, check_components, locate
from paddle_tfm.registry import Registry, Spec
from paddle_tfm.train.run import Corpus, changes, create, identity, load_corpus
from paddle_tfm.train.trainer import Trainer

CHECK_VOCABULARY = 32


def check(recipe: Recipe, registry: Registry) -> list[RunSpec]:
    """The runs of a recipe whose every component exists, takes its options, and fits its site and neighbours: each
    variant's model is built once with a small vocabulary. Nothing is read or trained.

    Raises:
        RecipeError: everything that is wrong, in all variants, at once.
    """
    runs = recipe.runs()
    problems: list[Problem] = []
    for variant in {run.variant: run for run in runs}.values():
        found = check_components(variant, registry)
        if not found:
            try:
                build(variant.settings.model, registry, CHECK_VOCABULARY, CHECK_VOCABULARY)
                train, given = variant.settings.train, {"d_model": variant.settings.model.d_model}
                registry.build("schedule", train.schedule, "train.schedule", steps=train.steps, **given)
                registry.build("optimizer", train.optimizer, "train.optimizer")
            except RecipeError as error:
                found = [locate(problem, variant.origins) for problem in error.problems]
        problems += [problem for problem in found if problem not in problems]
    if problems:
        raise RecipeError(recipe.source, problems)
    return runs


@dataclass
class Sweep:
    """The trainings of a recipe below one folder.

    Args:
        resume: skip finished runs and go on with the others; without it the folder must hold none.
        stop, report, strict: as for `Trainer`.
        announce: called with each `RunSpec`, its number and how many there are, before it starts; and whether it is
            skipped because its results are there already.
    """

    recipe: Recipe
    registry: Registry
    folder: Path
    resume: bool = False
    stop: Callable[[], bool] = lambda: False
    report: Callable[[str], None] = lambda text: None
    announce: Callable[[RunSpec, int, int, bool], None] = lambda spec, number, count, finished: None
    strict: bool = False

    def run(self) -> list[Path]:
        """Train everything that is not trained yet; returns the runs' folders.

        Raises:
            RecipeError, UserError: nothing was trained.
            Interrupted: `stop` said so; `resume` goes on.
        """
        runs = check(self.recipe, self.registry)
        present = [spec for spec in runs if (self.folder / spec.name / "identity.json").exists()]
        if present and not self.resume:
            raise UserError(
                f"{self.folder} holds runs of this recipe already; add --resume to go on with them, or --out DIR for "
                "another place"
            )
        corpora: dict[str, Corpus] = {}
        for number, spec in enumerate(runs, 1):
            self._one(spec, number, len(runs), corpora)
        return [self.folder / spec.name for spec in runs]

    def _one(self, spec: RunSpec, number: int, count: int, corpora: dict[str, Corpus]) -> None:
        key = json.dumps(spec.data["task"], sort_keys=True)
        if key not in corpora:
            corpora[key] = load_corpus(spec.settings, self.registry)
        folder = self.folder / spec.name
        finished = (folder / "results.json").exists()
        self.announce(spec, number, count, finished)
        run = create(spec, self.registry, folder, corpora[key])
        if run.dropped:
            self.report(f"{run.dropped} training examples are longer than model.max_length and were dropped")
        if self.resume and (folder / "identity.json").exists():
            then = json.loads((folder / "identity.json").read_text("utf-8"))
            if different := changes(then, identity(run)):
                raise UserError(
                    f"{folder} cannot be resumed: {'; '.join(different)}. Use --out DIR for another place, or remove it"
                )
        if not finished:
            Trainer(run, self.registry.plugins, self.stop, self.report, self.strict).train(resume=self.resume)


def declared_limits(runs: Sequence[RunSpec], registry: Registry) -> list[str]:
    """Sentences about what the recipe's components say of themselves (`limits`) at the sites where they are used."""
    said: dict[str, None] = {}
    for run in {run.variant: run for run in runs}.values():
        model = run.settings.model.model_dump()
        for kind in PER_SITE:
            for sublayer in ("self", "cross", "feed_forward"):
                _, spec = at_site(kind, model[kind], "decoder", sublayer)
                if spec is None:
                    continue
                name = Spec.parse(spec).name
                limits = getattr(registry.entry(kind, name).load(), "limits", {})
                if "future_leak" in limits:
                    said[f"{run.variant}: {kind} '{name}' in the decoder: {limits['future_leak']}"] = None
    return list(said)
