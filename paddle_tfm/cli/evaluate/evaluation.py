"""How `paddle-tfm evaluate` scores: a run on texts of its task, or another system's outputs of them. Needs Paddle."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from paddle_tfm.caveats import said
from paddle_tfm.cli.common import warn
from paddle_tfm.cli.evaluate import scores
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.data.lines import lines
from paddle_tfm.data.shapes import check_texts
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.language import _
from paddle_tfm.predictions import predictions_file, squeezed
from paddle_tfm.protocols import Example, Prediction
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.plan import Plan, plan_run
from paddle_tfm.recipe.sections.further_tests import unknown_test
from paddle_tfm.recipe.validation import validate
from paddle_tfm.registry import Registry
from paddle_tfm.search.decoding import decode_all
from paddle_tfm.train.evaluate import caveats, likelihood, predict, score, signatures, text_metrics
from paddle_tfm.train.finish import changed, drift
from paddle_tfm.train.run import Run, load_run
from paddle_tfm.units import AT

CHANGED = "changed"  # what predictions of a test of the command line are called by


class Evaluation:
    """A run as it was loaded, the texts that it is scored on, and the outputs that are scored.

    Raises:
        UserError: no run is there, its texts cannot be read, or an option does not fit them.
    """

    def __init__(self, wanted: scores.Request, registry: Registry):
        self.wanted = wanted
        self.run = run = load_run(wanted.run, registry, wanted.checkpoint, warn)
        self.has_source = not run.is_decoder_only
        if not self.has_source:
            wanted.require_no_source(run.folder)
        self.search = (
            registry.build("search", yaml_lines.value(wanted.search), "--search") if wanted.search else run.search()
        )
        self.tested = _tested(run, registry, wanted.split, wanted.test)
        if self.tested.conditions and wanted.hypotheses:
            text = _("--test {test} is of our own engine's batches; leave --hypotheses out")
            raise UserError(text.format(test=wanted.test))
        run.model.max_length = self.tested.max_length or run.model.max_length
        texts = self._texts()
        self.metrics, self.examples = run.metrics(), run.codec.encode_all(texts)
        check_texts(run.settings.model, self.tested.split, self.examples)
        if wanted.hypotheses:
            self.metrics = text_metrics(self.metrics)
        with run.as_trained():
            self.predictions = self._predictions(texts)

    def _texts(self) -> Sequence[Example]:
        run, split = self.run, self.tested.split
        corpus = load_corpus(self.tested.plan, [split])
        texts, then = corpus.splits[split], run.fingerprint.get(split)
        if then not in (None, corpus.fingerprint[split]):
            text = _("{folder}: its {split} texts changed since the training; older scores are of the old texts")
            warn(text.format(folder=run.folder, split=split))
        if not texts:
            text = _("{folder}: its task has no {split} split; try --split valid")
            raise UserError(text.format(folder=run.folder, split=split))
        return texts

    def _predictions(self, texts: Sequence[Example]) -> list[Prediction]:
        run, wanted = self.run, self.wanted
        if wanted.hypotheses:
            predictions = read_hypotheses(wanted.hypotheses, texts, self.tested.split, run.codec.target.joined)
            if not self.metrics:
                text = _("{folder}: each of its metrics needs the model; none can score {hypotheses}")
                raise UserError(text.format(folder=run.folder, hypotheses=wanted.hypotheses))
            return predictions
        if not self.has_source:
            return [Prediction(each.example.source, squeezed(each.text), "") for each in self.examples]
        decode = functools.partial(decode_all, run.model, **self.tested.conditions)
        return predict(run.model, run.codec, self.examples, self.search, decode=decode)

    def scores(self, rows: Sequence[int]) -> dict[str, float]:
        """The metrics of some of the examples; of another system's outputs those that need no model."""
        teacher_forced = None
        if not self.wanted.hypotheses:
            with self.run.as_trained():
                teacher_forced = likelihood(self.run.model, self.examples.select(rows), **self.tested.conditions)
        return score(self.metrics, [self.predictions[i] for i in rows], teacher_forced)

    def results(self) -> dict[str, Any]:
        """What is printed and written."""
        wanted, of, predictions, edges = self.wanted, self.tested, self.predictions, self.wanted.edges
        by = "source" if self.has_source else "target"
        results: dict[str, Any] = {
            "run": str(self.run.folder),
            "split": of.split,
            "test": {"name": of.label, **of.conditions} if of.label else None,
            "hypotheses": str(wanted.hypotheses) if wanted.hypotheses else None,
            "examples": len(predictions),
            "metrics": self.scores(range(len(predictions))),
            "caveats": self._caveats(),
            "signatures": signatures(self.metrics, len(predictions[0].references)),
            "buckets": scores.by_length(predictions, by, edges, self.scores) if edges is not None else None,
        }
        return {**results, **self._changes()} if of.conditions else results

    def _caveats(self) -> list[str]:
        """What must stand beside the scores of this run; another system's outputs have no pieces."""
        if self.wanted.hypotheses:
            return []
        split, predictions = self.tested.split, self.predictions if self.has_source else ()
        counted = caveats(self.run, split, self.search, self.examples, predictions)
        return said({"": [{"recipe": self.run.plan.run.recipe, "caveats": {split: counted}}]})

    def _changes(self) -> dict[str, Any]:
        """What other batches than usual changed."""
        run, usual = self.run, self.predictions
        if self.has_source:
            with run.as_trained():
                usual = predict(run.model, run.codec, self.examples, self.search)
        with run.as_trained():
            moved = drift(run, self.examples, self.tested.conditions)
        return {"changed_outputs": changed(usual, self.predictions), "drift": moved}

    def file(self) -> Path | None:
        """Where the outputs go; None where the run wrote none."""
        if not self.has_source or self.wanted.hypotheses:
            return None
        of = self.tested
        return self.wanted.out or predictions_file(self.run.folder, of.split.partition(AT)[0], of.label)


def read_hypotheses(file: Path, texts: Sequence[Example], split: str, joined: Callable[[str], str]) -> list[Prediction]:
    """Another system's outputs, a line for each example; they, and the references, `joined`.

    Raises:
        UserError: they are no text, or not as many.
    """
    outputs = list(islice(lines(file), len(texts) + 1))
    if len(outputs) != len(texts):
        number = f"{len(outputs):,}" if len(outputs) < len(texts) else "more"
        sentence = _("{file} has {number} lines, but the {split} split has {examples:,} examples; one each")
        raise UserError(sentence.format(file=file, number=number, split=split, examples=len(texts)))
    return [
        Prediction(text.source, reference, output, others=tuple(others))
        for text, line in zip(texts, outputs)
        for output, reference, *others in [[squeezed(joined(each)) for each in (line, *text.references)]]
    ]


@dataclass(frozen=True)
class Tested:
    """`split`: the texts as a corpus calls them. `label`: the test's name, "" for a split as it is. `conditions`: of
    batches, those of `train.evaluate.likelihood`; empty where they are as usual. `max_length`: instead of the
    model's."""

    plan: Plan
    split: str
    label: str
    conditions: dict[str, Any]
    max_length: int | None = None


def _tested(run: Run, registry: Registry, split: str | None, test: str | None) -> Tested:
    """What --split and --test ask for.

    Raises:
        UserError: there is no such test, or one of its settings does not fit.
    """
    if test is None:
        return Tested(run.plan, split or "test", "", {})
    named, settings = yaml_lines.value(test), run.settings.evaluate.tests
    if isinstance(named, Mapping):
        name, data = CHANGED, {"split": split or "test", **named}
    else:
        if split is not None:
            raise UserError(_("--test {test} has a split of its own; leave --split out").format(test=test))
        if sentence := unknown_test(test, settings):
            raise UserError(f"--test: {sentence}")
        name, data = test, run.recipe["evaluate"]["tests"][test]
    plan = _with_test(run, registry, name, data)
    chosen = plan.settings.evaluate.tests[name]
    return Tested(plan, chosen.texts(name), name, chosen.conditions if chosen.is_conditioned else {}, chosen.max_length)


def _with_test(run: Run, registry: Registry, name: str, test: Mapping[str, Any]) -> Plan:
    """The run's plan, with a further test in place of what had its name."""
    data = deepcopy(run.recipe)
    data["evaluate"]["tests"] = {**data["evaluate"].get("tests", {}), name: test}
    settings, wrong = validate(data, {})
    source = str(run.folder / "recipe.yaml")
    if settings is None:
        raise RecipeError(source, wrong)
    return plan_run(replace(run.plan.run, data=data, settings=settings), registry).require_sound(source)
