"""Cells trained in this process, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from paddle_tfm.caveats import overlap
from paddle_tfm.data.corpus import Corpus, load_corpus
from paddle_tfm.language import _
from paddle_tfm.protocols import Outcome
from paddle_tfm.recipe.plan import Plan, plan_run
from paddle_tfm.registry import Registry
from paddle_tfm.sweep.cells import Cell, OncePerTexts
from paddle_tfm.sweep.claim import claimed
from paddle_tfm.sweep.events import Card, Event, Watcher
from paddle_tfm.train.fit import remarks
from paddle_tfm.train.ranks.rank_zero import Ranks
from paddle_tfm.train.run import create
from paddle_tfm.train.trainer import Trainer


@dataclass
class Serial:
    """Trains cells in this process. One that is finished meanwhile is skipped; one that is begun is resumed.

    Args:
        resume: one is resumed whose folder holds checkpoints, but not what it began with.
        stop, report, strict: as for `Trainer`.
        on_event: gets an `Event` whenever something happens.
        others: the other ranks, where several processes train each run.
    """

    registry: Registry
    resume: bool
    strict: bool
    stop: Callable[[], bool]
    report: Callable[[str], None]
    on_event: Callable[[Event], None]
    others: Ranks | None = None

    def run(self, cells: Iterable[Cell]) -> Iterator[Outcome]:
        """Train all cells; a corpus that several need is read once.

        Raises:
            UserError: what is wrong with a cell's data or folder, or who else trains it.
            Interrupted: `stop` said so, and the run under way saved a checkpoint.
        """
        watcher, manager = Watcher(self.on_event), self.registry.plugins.manager
        manager.register(watcher)
        try:
            corpus_of = OncePerTexts(self._load)
            for cell in cells:
                with claimed(cell.folder):
                    plan = plan_run(cell.spec, self.registry)
                    self._train(cell, plan, corpus_of(plan))
                yield Outcome(cell)
        finally:
            manager.unregister(watcher)

    def _load(self, plan: Plan) -> Corpus:
        """The texts of a run. Said is what their files were taken for, what was left out, and that texts of a test were
        trained on."""
        corpus = load_corpus(plan)
        for sentence in filter(None, [*corpus.remarks, overlap(corpus.in_training)]):
            self.report(sentence)
        return corpus

    def _train(self, cell: Cell, plan: Plan, corpus: Corpus) -> None:
        resume = self.resume or cell.is_begun  # by another command, since the sweep was begun
        run = create(plan, cell.folder, corpus, resume)
        run.processes = 1 if self.others is None else self.others.size
        for bound, count in run.dropped.items():
            text = _("{name}: {count:,} examples were left out by {setting}")
            self.report(text.format(name=cell.name, count=count, setting=bound))
        for sentence in remarks(plan, run.encoded):
            self.report(f"{cell.name}: {sentence}")
        cell.require_unchanged(plan, run.fingerprint)
        for sentence in cell.rounds_otherwise(plan, run.processes):
            self.report(
                _("{name} is resumed, but {sentence}: its last bits may differ from one training in one go").format(
                    name=cell.name, sentence=sentence
                )
            )
        if cell.is_finished:
            self.on_event(Event("finished", Card.of(cell.folder, plan, plan.settings.train.steps)))
            return
        Trainer(run, self.registry.plugins, self.stop, self.report, self.strict, self.others).train(resume=resume)
