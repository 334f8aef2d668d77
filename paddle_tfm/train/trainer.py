"""The training loop: batches → loss → gradients → update → evaluation → checkpoint; resumable at any step."""

from __future__ import annotations

import functools
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from paddle_tfm.data.batches import Batch
from paddle_tfm.data.codec import Encoded
from paddle_tfm.errors import UserError
from paddle_tfm.files import sync, write_whole
from paddle_tfm.model.initialize import calibrate
from paddle_tfm.onednn import products
from paddle_tfm.plugins import Plugins
from paddle_tfm.protocols import Prediction, Search
from paddle_tfm.search.decoding import decode_all
from paddle_tfm.train import averaging, checkpoint, divergence, manifest, population
from paddle_tfm.train.about import write_about, write_peak_memory
from paddle_tfm.train.discrepancy import discrepancies, overall
from paddle_tfm.train.evaluate import DecodingTime, likelihood, predict, score
from paddle_tfm.train.final_tests import FinalTests
from paddle_tfm.train.logs import LOGS, append_row, cut_rows
from paddle_tfm.train.progress import Progress
from paddle_tfm.train.results import results_of
from paddle_tfm.train.run import Run, write_start
from paddle_tfm.train.shared_step import sharded
from paddle_tfm.train.step import Step, gradient_norms

NUM_SAMPLES = 8  # predictions that listeners get with an evaluation


class Interrupted(Exception):
    """Training was stopped on request. A checkpoint is saved, from which it can be resumed."""


class Trainer:
    """Trains one run.

    Args:
        run: from `train.run.create`.
        plugins: their listeners are notified of events.
        stop: called after each step; if it returns True, a checkpoint is saved and `Interrupted` is raised.
        report: called with a sentence about an event that the user should know of.
        strict: whether an exception of a listener ends the training.
    """

    def __init__(
        self,
        run: Run,
        plugins: Plugins,
        stop: Callable[[], bool] = lambda: False,
        report: Callable[[str], None] = lambda text: None,
        strict: bool = False,
    ):
        self.run, self.plugins, self.stop, self.report, self.strict = run, plugins, stop, report, strict
        if run.settings.train.precision != "float32" and paddle.device.get_device() == "cpu":
            precision = run.settings.train.precision
            raise UserError(f"train.precision={precision} needs a GPU; on a CPU use train.precision=float32")
        train, components = run.settings.train, run.plan.components
        schedule = components["train.schedule"].build(d_model=run.settings.model.d_model, steps=train.steps)
        parameters = [parameter for parameter in run.model.parameters() if not parameter.stop_gradient]
        self.optimizer = components["train.optimizer"].build()
        optimizer = self.optimizer.create(parameters)
        self.ema = averaging.MovingAverage(run.model, train.ema) if train.ema is not None else None
        self.stream, self.progress = run.stream(), Progress()

        def rate(step: int) -> float:
            return schedule(step) * self.progress.rate_factor

        self.step = Step(run.model, parameters, optimizer, rate, train, run.seed, self.ema)
        self.metrics = run.metrics()
        self.search = components["evaluate.search"].build()

    def _say(self, sentence: str) -> None:
        self.report(f"{self.run.name}: {sentence}")

    @functools.cached_property
    def identity(self) -> str:
        """The hash of the run's identity."""
        return str(self.run.identity()["hash"])

    def _report_products(self) -> None:
        """Say so where the products are not those of the recipe."""
        wanted = self.run.settings.train.products
        if wanted != "float32" and (reason := products.why_not(wanted)):
            self._say(f"train.products={wanted} is not to be had, so they are in float32: {reason}")

    def train(self, resume: bool = False) -> dict:
        """Do all steps, then score the best checkpoint on the test split. Returns the contents of `results.json`.

        Raises:
            Interrupted: `stop` returned True; a checkpoint to resume from is saved.
        """
        run, steps = self.run, self.run.settings.train.steps
        point = manifest.resume_point(self._folder(""), self._say) if resume else None
        if point is not None:
            self._restore(point)
        else:
            write_start(run)
            self._cut_logs()
            self.calibrate()
        write_about(run)
        self._report_products()
        self.emit("on_run_start")
        run.model.train()
        diverged = None
        if not self.progress.evaluated:
            self._evaluate()
        with self.sharded_step() as update:
            while run.step < steps and diverged is None and not self._out_of_patience():
                diverged = self._one_step(update, run.step + 1)
                if diverged is None and (run.step % run.settings.evaluate.every == 0 or run.step == steps):
                    self._evaluate()
                elif self.stop():
                    self._save("last")
                    raise Interrupted(run.name)
        if run.step < steps and self._out_of_patience():
            best, since = run.settings.evaluate.best, self.progress.best_step
            self._say(f"stopped early at step {run.step}: {best} was never better than at step {since}")
        results = self._finish(diverged)
        write_peak_memory(run.folder)
        self.emit("on_run_end", results=results)
        return results

    def calibrate(self) -> None:
        """Set the initial values that depend on the first batch (`Placement.calibrate`)."""
        calibrate(self.run.model, next(self.run.stream()).tensors())

    def sharded_step(self, num_processes: int | None = None) -> AbstractContextManager[Step]:
        """Within this block: the step, divided among processes if that is faster."""
        return sharded(self.step, self.run.encoded["train"], num_processes)

    def next_batches(self) -> list[Batch[np.ndarray]]:
        """The batches of the next step."""
        return [next(self.stream) for _ in range(self.run.settings.train.accumulate)]

    def _one_step(self, update: Step, step: int) -> str | None:
        """Do and log one optimizer step. Returns a sentence if loss or gradient norm is NaN or infinite, and the
        training ends with it."""
        run, progress, start = self.run, self.progress, time.perf_counter()
        batches, restore = self.next_batches(), divergence.remembered(self.run.model)
        metrics = update(step, batches).row()
        seconds = time.perf_counter() - start
        if sentence := divergence.not_finite(metrics, step):
            restore()
            return self._not_made(step, batches, sentence)
        progress.skipped_in_row = 0
        progress.tokens += int(metrics["tokens"])
        progress.seconds += seconds
        self._done(step, {**metrics, **self._by_parameter(step, metrics)}, seconds)
        speed, left = progress.tokens_per_second, (run.settings.train.steps - step) * progress.seconds / step
        self.emit("on_step_end", step=step, metrics={**metrics, "tokens_per_second": speed, "seconds_left": left})
        return None

    def _done(self, step: int, row: Mapping[str, Any], seconds: float) -> None:
        """Count and log a step."""
        self.run.step = self.progress.step = step
        self.progress.epoch, self.progress.position = self.stream.epoch, self.stream.position
        append_row(self.run.folder / "metrics.jsonl", {"step": step, **row})
        append_row(self.run.folder / "timings.jsonl", {"step": step, "seconds": round(seconds, 6)})

    def _not_made(self, step: int, batches: Sequence[Batch[np.ndarray]], sentence: str) -> str | None:
        """Keep the first step that could not be made, and do with it as the recipe says (`train.divergence`). Returns a
        sentence if the training ends."""
        progress, policy = self.progress, self.run.settings.train.divergence
        if not self._folder(divergence.FOLDER).exists():
            self._keep(step, batches, sentence)
        if policy == "stop":
            return sentence
        progress.skipped, progress.skipped_in_row = progress.skipped + 1, progress.skipped_in_row + 1
        if progress.skipped_in_row == divergence.MOST:
            return f"{sentence}, as at each of the {divergence.MOST - 1} steps before it"
        if policy == "back_off":
            progress.rate_factor *= divergence.BACK_OFF
        self._done(step, {"skipped": sentence}, 0.0)
        return None

    def _keep(self, step: int, batches: Sequence[Batch[np.ndarray]], sentence: str) -> None:
        """Save what `paddle-tfm replay` needs: the model before the step, and its batches."""
        where = divergence.origin(self.step, step, batches)
        kept = {"failed_step": step, "sentence": sentence, "origin": where, "batches": divergence.facts(batches)}
        parts = {**self._parts(), "batches": divergence.parts(batches)}
        try:
            state = {**asdict(self.progress), **kept}
            checkpoint.save(self._folder(divergence.FOLDER), self.run.model, state, parts, self.identity)
        except UserError as error:
            self._say(str(error))  # a disk that is full must not hide what happened
        self._say(f"{sentence}; it begins with {where}. `paddle-tfm replay {self.run.folder}` shows the step")

    def _by_parameter(self, step: int, metrics: Mapping[str, float]) -> dict[str, dict[str, float]]:
        """The norm of each parameter's gradient, of the first step and of every `train.gradient_norms`-th."""
        every = self.run.settings.train.gradient_norms
        wanted = step == 1 or (every is not None and step % every == 0)
        return {"gradient_norms": gradient_norms(self.run.model, metrics["gradient_norm"])} if wanted else {}

    def _evaluate(self) -> None:
        """Score the validation split, log the scores and the discrepancies of running statistics, save the best
        checkpoint if it is this one, and save a checkpoint to resume from."""
        run, progress = self.run, self.progress
        progress.evaluated = False
        try:
            with self._evaluated_weights():
                metrics, samples = self._score_valid()
                norms = discrepancies(run.model, run.stream(), run.seed, run.step)
                evaluation = {**metrics, **overall(norms)}
                more = {"norms": norms} if norms else {}
                append_row(run.folder / "metrics.jsonl", {"step": run.step, "evaluation": evaluation, **more})
                progress.evaluated = True
                progress.stale += 1
                if self._is_best(metrics):
                    progress.best_step, progress.stale = run.step, 0
                    self._save("best", resumable=False)
                needed = progress.snapshots  # by the checkpoint before
                if run.settings.train.average:
                    progress.snapshots = [*progress.snapshots, run.step][-run.settings.train.average :]
                    self._save(checkpoint.snapshot(run.step), resumable=False)
        except Interrupted:
            self._save("last")
            raise
        self._save("last")
        checkpoint.keep_snapshots(self._folder(""), [*needed, *progress.snapshots])
        self.emit("on_evaluation_end", step=run.step, metrics=evaluation, samples=samples[:NUM_SAMPLES])
        if self.stop() and run.step < run.settings.train.steps:
            raise Interrupted(run.name)

    @contextmanager
    def _evaluated_weights(self) -> Iterator[None]:
        """Within this block the model has the weights to evaluate and save: the moving average, or the optimizer's; and
        running statistics of these weights, where a norm re-estimates them."""
        weights = self.ema.applied() if self.ema is not None else self.optimizer.evaluated(self.step.optimizer)
        with weights, population.estimated(self.run.model, self.run.stream(), self.run.seed):
            yield

    def _score_valid(self) -> tuple[dict[str, float], list[Prediction]]:
        valid = self.run.encoded["valid"]
        return self.score(valid, valid[: self.run.settings.evaluate.examples], self._raise_if_stopped)

    def _is_best(self, metrics: dict[str, float]) -> bool:
        """Whether these metrics are the best so far; if so, they become `progress.best`."""
        rank = self._rank(metrics)
        better = self.progress.best is None or rank > self.progress.best
        if better:
            self.progress.best, self.progress.valid = rank, dict(metrics)
        return better

    def _out_of_patience(self) -> bool:
        patience = self.run.settings.evaluate.patience
        return patience is not None and self.progress.stale >= patience

    def _raise_if_stopped(self, done: int) -> None:
        if self.stop():
            raise Interrupted(self.run.name)

    def _rank(self, metrics: dict[str, float]) -> list[float]:
        """The rank of an evaluation, higher is better: the metric `evaluate.best`, then the loss."""
        name = self.run.settings.evaluate.best
        higher = name != "loss" and self.metrics[name].higher_is_better
        ranks = [metrics[name] if higher else -metrics[name], -metrics["loss"]]
        return [rank if math.isfinite(rank) else -math.inf for rank in ranks]

    def score(
        self,
        examples: Sequence[Encoded],
        searched: Sequence[Encoded],
        pause: Callable[[int], None] | None = None,
        search: Search | None = None,
        clock: DecodingTime | None = None,
        **conditions: Any,
    ) -> tuple[dict[str, float], list[Prediction]]:
        """The metrics, of `examples` (likelihood) and `searched` (outputs of the search), and these outputs. `clock`:
        gets the time of the search. `conditions`: `max_rows` and `padding` of `likelihood`."""
        run, predictions = self.run, []
        log_likelihood = likelihood(run.model, examples, **conditions)
        if any(metric.needs_search for metric in self.metrics.values()):
            decode: Callable[..., Any] = functools.partial(decode_all, run.model, **conditions)
            decode = clock.of(decode) if clock else decode
            predictions = predict(run.model, run.codec, searched, search or self.search, progress=pause, decode=decode)
        return score(self.metrics, predictions, log_likelihood), predictions

    def _folder(self, name: str) -> Path:
        return self.run.folder / "checkpoints" / name

    def _save(self, name: str, resumable: bool = True) -> None:
        """Save the weights and the progress, and if `resumable` the states of optimizer and moving average."""
        if resumable:
            for log in LOGS:
                sync(self.run.folder / log)  # a checkpoint never knows of a step that the logs have lost
        state = {**asdict(self.progress), "wall_seconds": self._wall()}
        parts = self._parts() if resumable else {}
        checkpoint.save(self._folder(name), self.run.model, state, parts, self.identity, keep_old=resumable)
        self.emit("on_checkpoint", step=self.run.step, path=self._folder(name))

    def _parts(self) -> dict[str, Mapping[str, paddle.Tensor]]:
        """The states of optimizer and moving average."""
        state = self.step.optimizer.state_dict()
        tensors = {path: value for path, value in state.items() if hasattr(value, "numpy")}
        average = {} if self.ema is None else {"ema": self.ema.shadow}
        return {"optimizer": tensors, **average}

    def _restore(self, point: Path) -> None:
        """Resume from the checkpoint `point`. A newer one that is damaged is removed, so that `point` stays the old one
        until another is whole."""
        self.progress = Progress.restored(checkpoint.load_state(point, Progress.required()))
        self.run.step = self.progress.step
        self.stream.epoch, self.stream.position = self.progress.epoch, self.progress.position
        checkpoint.load_model(point, self.run.model)
        self.step.optimizer.set_state_dict(checkpoint.load_part(point, "optimizer"))
        if self.ema is not None:
            self.ema.shadow = checkpoint.load_part(point, "ema")
        if point != self._folder("last"):
            shutil.rmtree(self._folder("last"), ignore_errors=True)
        self._cut_logs()

    def _cut_logs(self) -> None:
        for name in LOGS:
            cut_rows(self.run.folder / name, self.run.step, self.progress.evaluated)

    def _finish(self, diverged: str | None) -> dict[str, Any]:
        run, progress = self.run, self.progress
        final = FinalTests(run, functools.partial(self.score, pause=self._raise_if_stopped, search=run.search()))
        averaged = self._average_last() if run.settings.train.average and progress.best is not None else None
        if progress.best is not None:
            checkpoint.load_model(checkpoint.existing(self._folder("best"), run.folder), run.model)
            if not run.plan.run.is_trial:  # the test split chooses nothing
                final.do()
        results = results_of(run, progress, self.metrics, final, averaged, diverged, self._wall())
        write_whole(run.folder / "results.json", json.dumps(results, indent=1, ensure_ascii=False))
        checkpoint.keep_snapshots(self._folder(""), [])
        checkpoint.remove_old(self._folder("last"))
        return results

    def _wall(self) -> float:
        """Seconds of this run so far, with learning the tokenizer, evaluations and checkpoints."""
        return self.progress.wall_seconds + time.perf_counter() - self.run.start_time

    def _average_last(self) -> dict:
        """Score the mean of the weights of the last evaluations. It becomes the best checkpoint if it is better on the
        validation split. Returns its steps and metrics."""
        run, progress = self.run, self.progress
        steps = list(progress.snapshots)
        states = [
            checkpoint.load_arrays(checkpoint.existing(self._folder(checkpoint.snapshot(step)), run.folder))
            for step in steps
        ]
        checkpoint.set_arrays(run.model, averaging.mean(states))
        population.estimate_all(run.model, run.stream(), run.seed)
        metrics, _ = self._score_valid()
        is_best = self._is_best(metrics)
        if is_best:
            progress.best_step = run.step
            self._save("best", resumable=False)
        outcome = "is the best checkpoint" if is_best else f"is no better than step {progress.best_step}, which is kept"
        self._say(f"the mean of the weights of steps {', '.join(map(str, steps))} {outcome}")
        return {"steps": steps, "is_best": is_best, "valid": metrics}

    def emit(self, event: str, **arguments) -> None:
        """Notify every listener."""
        self.plugins.emit(event, self.report, self.strict, run=self.run, **arguments)
