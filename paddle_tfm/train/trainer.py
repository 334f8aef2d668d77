"""The training loop: batches → loss → gradients → update → evaluation → checkpoint; resumable at any step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from paddle_tfm import place
from paddle_tfm.data.batches import Batch
from paddle_tfm.errors import UserError
from paddle_tfm.files import write_whole
from paddle_tfm.kernels.cpu import products
from paddle_tfm.language import _
from paddle_tfm.model.initialize import calibrate
from paddle_tfm.plugins import Listeners, Plugins
from paddle_tfm.recipe.yaml_lines import dump
from paddle_tfm.runs import manifest
from paddle_tfm.runs.carried import Start
from paddle_tfm.runs.logs import append_row
from paddle_tfm.train import divergence
from paddle_tfm.train.about import write_about
from paddle_tfm.train.divided.shards import number_of_shards
from paddle_tfm.train.divided.shared_step import sharded
from paddle_tfm.train.evaluate import Scorer
from paddle_tfm.train.finish import finish, write_results
from paddle_tfm.train.ranks.distributed_step import distributed
from paddle_tfm.train.ranks.group import RankLost
from paddle_tfm.train.ranks.rank_zero import Ranks
from paddle_tfm.train.run import Run, write_start
from paddle_tfm.train.running_statistics import discrepancies, overall, remembered
from paddle_tfm.train.state import TrainingState
from paddle_tfm.train.step import Step, gradient_norms

NUM_SAMPLES = 8  # predictions that listeners get with an evaluation


class Interrupted(Exception):
    """Training was stopped on request. A checkpoint is saved, from which it can be resumed."""


class Trainer:
    """Trains one run.

    Args:
        run: from `train.run.create`.
        plugins: their listeners are notified of events.
        stop: called after each step, and within an evaluation; if it returns True, a checkpoint is saved and
            `Interrupted` is raised.
        report: called with a sentence about an event that the user should know of.
        strict: whether an exception of a listener ends the training.
        others: the other ranks of a run that several processes train.
    """

    def __init__(
        self,
        run: Run,
        plugins: Plugins,
        stop: Callable[[], bool] = lambda: False,
        report: Callable[[str], None] = lambda text: None,
        strict: bool = False,
        others: Ranks | None = None,
    ):
        precision = run.settings.train.precision
        if precision != "float32" and place.on_cpu():
            text = _("train.precision={precision} needs a GPU; on a CPU use train.precision=float32")
            raise UserError(text.format(precision=precision))
        self.run, self.stop, self.report, self.others = run, stop, report, others
        self.listeners = Listeners(plugins, report, strict)
        self.state = TrainingState(run)
        self.step, self.stream = self.state.step, self.state.stream
        self.score = Scorer(run, self._raise_if_stopped)

    def train(self, resume: bool = False) -> dict:
        """Do all steps, then score the best checkpoint on the test split. Returns the contents of `results.json`.

        Raises:
            Interrupted: `stop` returned True; a checkpoint to resume from is saved.
        """
        run = self.run
        run.shards = self.shards()
        with run.as_trained():
            return self._train(resume)

    def _train(self, resume: bool) -> dict:
        run, steps = self.run, self.run.settings.train.steps
        self._start(resume)
        run.model.train()
        diverged = None
        try:
            if not self.state.progress.evaluated:
                self._evaluate()
            with self.sharded_step() as update:
                while run.step < steps and diverged is None and not self._out_of_patience():
                    diverged = self._one_step(update, run.step + 1)
                    if diverged is None and (run.step % run.settings.evaluate.every == 0 or run.step == steps):
                        update.rest()
                        self._evaluate()
                    elif self.stop():
                        update.rest()
                        self._save("last")
                        raise Interrupted(run.name)
        except RankLost as lost:
            self._save("last")
            raise RankLost(f"{lost}; {run.name} is saved at step {run.step:,}") from None
        if run.step < steps and self._out_of_patience():
            best, since = run.settings.evaluate.best, self.state.progress.best_step
            self._say(
                _("stopped early at step {step}: {best} was never better than at step {since}").format(
                    step=run.step, best=best, since=since
                )
            )
        results = finish(self.state, self.score, diverged, lambda: self._save("best", resumable=False), self._say)
        write_results(run.folder, results)
        self.emit("on_run_end", results=results)
        return results

    def _start(self, resume: bool) -> None:
        """Bring model and logs to where the training begins or resumes, and tell the listeners."""
        point = manifest.resume_point(self.state.folder(), self._say) if resume else None
        if point is not None:
            self.state.restore(point)
            write_whole(self.run.folder / "recipe.yaml", dump(self.run.recipe))  # one that is continued has more steps
        else:
            write_start(self.run)
            self.state.cut_logs()
            self._begin_with_weights() if "start" in self.run.history else self.calibrate()
        write_about(self.run)
        wanted = self.run.settings.train.products
        if wanted != "float32" and (reason := products.why_not(wanted)):
            self._say(
                _("train.products={wanted} is not to be had, so they are in float32: {reason}").format(
                    wanted=wanted, reason=reason
                )
            )
        self.emit("on_run_start")

    def calibrate(self) -> None:
        """Set the initial values that depend on the first batch (`Placement.calibrate`)."""
        calibrate(self.run.model, next(self.run.stream()).tensors())

    def _begin_with_weights(self) -> None:
        """Say what was carried over from another run. That run is not needed any more once this is saved."""
        start = Start(**self.run.history["start"])
        for sentence in start.sentences():
            self._say(sentence)
        tensors = self.run.model.state_dict()
        carried = {name: tensor.numpy() for name, tensor in tensors.items() if name not in start.drawn}
        self.calibrate()
        for name, array in carried.items():
            tensors[name].set_value(array)
        self._save("last")

    def shards(self) -> int:
        """Into how many shards batches are divided: as many as when the training began. Ranks divide them otherwise."""
        if self.others is not None:
            return self.run.shards or 1
        rows = self.stream.usual_rows()
        return self.run.shards or number_of_shards(self.step, self.run.encoded["train"], rows, self._say)

    def sharded_step(self, num_shards: int | None = None) -> AbstractContextManager[Step]:
        """Within this block: the step, its batches divided among the ranks, or into shards, which processes share."""
        if self.others is not None:
            return distributed(self.step, self.run, self.others)
        return sharded(self.step, num_shards or self.shards())

    def next_batches(self) -> list[Batch[np.ndarray]]:
        """The batches of the next step."""
        return [next(self.stream) for _ in range(self.run.settings.train.accumulate)]

    def _one_step(self, update: Step, step: int) -> str | None:
        """Do and log one optimizer step. Returns a sentence if loss or gradient norm is NaN or infinite, and the
        training ends with it."""
        run, progress, start = self.run, self.state.progress, time.perf_counter()
        batches, restore = self.next_batches(), remembered(run.model.built_buffers().values())
        try:
            metrics = update(step, batches).row()
        except RankLost:  # nothing was updated
            restore()
            raise
        seconds = time.perf_counter() - start
        if sentence := divergence.not_finite(metrics, step):
            restore()
            divergence.keep(self.state, step, batches, sentence, self._say)
            return sentence
        progress.tokens += int(metrics["tokens"])
        progress.seconds += seconds
        self.state.count(step, {**metrics, **self._by_parameter(step, metrics)}, seconds)
        speed, left = progress.tokens_per_second, (run.settings.train.steps - step) * progress.seconds / step
        self.emit("on_step_end", step=step, metrics={**metrics, "tokens_per_second": speed, "seconds_left": left})
        return None

    def _by_parameter(self, step: int, metrics: Mapping[str, float]) -> dict[str, dict[str, float]]:
        """The norm of each parameter's gradient, of the first and the last step, and of every
        `train.gradient_norms`-th."""
        every = self.run.settings.train.gradient_norms
        wanted = step in (1, self.run.settings.train.steps) or (every is not None and step % every == 0)
        return {"gradient_norms": gradient_norms(self.run.model, metrics["gradient_norm"])} if wanted else {}

    def _evaluate(self) -> None:
        """Score the validation split, log the scores and the discrepancies of running statistics, save the best
        checkpoint if it is this one, and save a checkpoint to resume from."""
        run, progress = self.run, self.state.progress
        progress.evaluated = False
        try:
            with self.state.evaluated_weights():
                metrics, samples = self.score.valid()
                norms = discrepancies(run.model, run.stream(), run.seed, run.step)
                evaluation = {**metrics, **overall(norms)}
                more = {"norms": norms} if norms else {}
                append_row(run.folder / "metrics.jsonl", {"step": run.step, "evaluation": evaluation, **more})
                progress.evaluated = True
                progress.stale += 1
                if progress.improved(self.score.rank(metrics), metrics, self.score.caveats(samples)):
                    progress.best_step, progress.stale = run.step, 0
                    self._save("best", resumable=False)
                needed = progress.snapshots  # by the checkpoint before
                if run.settings.train.average:
                    progress.snapshots = [*progress.snapshots, run.step][-run.settings.train.average :]
                    self._save(manifest.snapshot(run.step), resumable=False)
        except Interrupted:
            self._save("last")
            raise
        self._save("last")
        manifest.keep_snapshots(self.state.folder(), [*needed, *progress.snapshots])
        self.emit("on_evaluation_end", step=run.step, metrics=evaluation, samples=samples[:NUM_SAMPLES])
        if self.stop() and run.step < run.settings.train.steps:
            raise Interrupted(run.name)

    def _out_of_patience(self) -> bool:
        patience = self.run.settings.evaluate.patience
        return patience is not None and self.state.progress.stale >= patience

    def _raise_if_stopped(self, done: int) -> None:
        if self.stop():
            raise Interrupted(self.run.name)

    def _save(self, name: str, resumable: bool = True) -> None:
        self.state.save(name, resumable)
        self.emit("on_checkpoint", step=self.run.step, path=self.state.folder(name))

    def _say(self, sentence: str) -> None:
        self.report(f"{self.run.name}: {sentence}")

    def emit(self, event: str, **arguments: Any) -> None:
        """Notify every listener."""
        self.listeners.emit(event, run=self.run, **arguments)
