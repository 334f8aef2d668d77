"""What the runs of a recipe will cost, by the first steps of each variant: nothing is written."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from paddle_tfm import paddle_compat, processes
from paddle_tfm.data.codec import Encoded
from paddle_tfm.data.corpus import Corpus, load_corpus
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.registry import Registry
from paddle_tfm.sweep.cells import OncePerTexts
from paddle_tfm.train.run import Run, create
from paddle_tfm.train.trainer import Trainer

STEPS = 20
WARM = 4  # the first steps, which take longer than the others
EXAMPLES = 16  # that are searched and scored


@dataclass(frozen=True)
class Probe:
    """One run of a variant, as its first steps foretell it.

    Args:
        tokens: target tokens of a step. start: seconds before the first step. step: seconds of one. evaluation: seconds
            of one on the validation split. test: seconds of all tests. every: steps between two evaluations.
        memory: bytes that tensors held at once; None where nobody knows.
    """

    variant: str
    parameters: int
    steps: int
    every: int
    tokens: float
    start: float
    step: float
    evaluation: float
    test: float
    memory: int | None

    def seconds(self, steps: int | None = None, tested: bool = True) -> float:
        """Seconds of a run of so many steps; default: those of the recipe. `tested`: with its tests, which a trial of
        tuning has not."""
        steps = self.steps if steps is None else steps
        evaluations = 1 + -(-steps // self.every)  # one before the first step, one behind the last
        tests = self.test if tested else 0.0
        return self.start + steps * self.step + evaluations * self.evaluation + tests


def probes(plans: Iterable[Plan], registry: Registry, workers: int) -> Iterator[Probe]:
    """Train each plan for `STEPS` steps with the share of the threads that one of `workers` runs has.

    Raises:
        UserError: as the training would: data that cannot be read, a model that cannot be built.
    """
    corpus_of = OncePerTexts(load_corpus)
    with processes.share_of_threads(workers):
        for plan in plans:
            start, corpus = time.perf_counter(), corpus_of(plan)
            with TemporaryDirectory() as folder:
                yield _probe(plan, Path(folder), corpus, registry, start)


def _probe(plan: Plan, folder: Path, corpus: Corpus, registry: Registry, start: float) -> Probe:
    paddle_compat.reset_peak_memory()
    run = create(plan, folder, corpus)
    trainer = Trainer(run, registry.plugins)
    settings, tokens, seconds = run.settings, [], []
    trainer.calibrate()
    run.model.train()
    started = time.perf_counter() - start
    with trainer.sharded_step() as update:
        for step in range(1, STEPS + 1):
            before = time.perf_counter()
            tokens.append(update(step, trainer.next_batches()).tokens)
            seconds.append(time.perf_counter() - before)
    memory = paddle_compat.peak_memory()
    return Probe(
        variant=run.plan.run.variant,
        parameters=run.parameters(),
        steps=settings.train.steps,
        every=settings.evaluate.every,
        tokens=sum(tokens) / len(tokens),
        start=started,
        step=sum(seconds[WARM:]) / len(seconds[WARM:]),
        evaluation=sum(_scoring(trainer, texts, most, trainer.score.search, **how) for texts, most, how in _valid(run)),
        test=sum(_scoring(trainer, texts, len(texts), run.search(), **how) for texts, how in _tests(run)),
        memory=memory,
    )


def _valid(run: Run) -> Iterator[tuple[Sequence[Encoded], int, dict[str, Any]]]:
    """What an evaluation scores: texts, how many of them are searched, and in what batches."""
    tests = run.settings.evaluate.tests
    further = [(test.texts(name), test.conditions) for name, test in tests.items() if test.while_training]
    for split, conditions in [("valid", {}), *further]:
        texts = run.encoded[split]
        yield texts, min(len(texts), run.settings.evaluate.examples or len(texts)), conditions


def _tests(run: Run) -> Iterator[tuple[Sequence[Encoded], dict[str, Any]]]:
    """The texts and the batches of the run's own test and of the further ones."""
    yield run.encoded["test"], {}
    for name, test in run.settings.evaluate.tests.items():
        yield run.encoded[test.texts(name)], test.conditions


def _scoring(trainer: Trainer, examples, searched: int, search, **conditions: Any) -> float:
    """Seconds that scoring takes, by `EXAMPLES` of the examples. An untrained model writes as long as it may: it is
    rather too much."""
    few = examples[:EXAMPLES]
    if not few:
        return 0.0
    before = time.perf_counter()
    trainer.score(few, few, search=search, **conditions)
    return (time.perf_counter() - before) * searched / len(few)
