"""The order of steps: batches → loss → gradients → update → evaluation → checkpoint, resumable at any step."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields

import paddle

from paddle_tfm import randomness
from paddle_tfm.data.batches import Batch, Stream
from paddle_tfm.errors import UserError
from paddle_tfm.files import write_whole
from paddle_tfm.model.build import calibrate
from paddle_tfm.plugins import Plugins
from paddle_tfm.protocols import Prediction, Tap
from paddle_tfm.train import checkpoint
from paddle_tfm.train.evaluate import likelihood, predict, score
from paddle_tfm.train.logs import append_row, cut_rows, write_predictions
from paddle_tfm.train.run import Run, write_start

SAMPLES = 8


class Interrupted(Exception):
    """Training was asked to stop, and did so after saving a checkpoint from which it goes on."""


@dataclass
class Progress:
    """Where a training stands: saved with every checkpoint. `best` is the rank and `valid` the metrics of the best
    evaluation, that of `best_step`."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: list[float] | None = None
    best_step: int = 0
    valid: dict[str, float] = field(default_factory=dict)
    evaluated: bool = True


class Trainer:
    """Trains one run.

    Args:
        run: made by `train.run.create`.
        plugins: whose listeners hear of it.
        stop: asked after each step; True saves and raises `Interrupted`.
        report: told a sentence when something worth knowing happens.
        strict: a listener that raises ends the training.
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
        train, build = run.settings.train, run.registry.build
        given = {"d_model": run.settings.model.d_model, "steps": train.steps}
        self.schedule = build("schedule", train.schedule, "train.schedule", **given)
        self.parameters = [parameter for parameter in run.model.parameters() if not parameter.stop_gradient]
        self.optimizer = build("optimizer", train.optimizer, "train.optimizer").create(self.parameters)
        self.metrics = run.metrics()
        self.search = build("search", run.settings.evaluate.search, "evaluate.search")
        self.stream = Stream(run.encoded["train"], train.max_tokens, run.seed)
        self.progress = Progress()

    # ---------------------------------------------------------------------------------------------------- whole course

    def train(self, resume: bool = False) -> dict:
        """All steps, then the best checkpoint scored on the test split. Returns what `results.json` holds.

        Raises:
            Interrupted: `stop` said so; everything needed to go on is saved.
        """
        run, steps = self.run, self.run.settings.train.steps
        last = run.folder / "checkpoints" / "last"
        if resume and checkpoint.exists(last):
            self._restore(last)
        else:
            write_start(run)
            self._cut_logs()
            calibrate(run.model, self._peek())
        self.emit("on_run_start")
        run.model.train()
        diverged = None
        if not self.progress.evaluated:
            self._evaluate()
        while run.step < steps and diverged is None:
            diverged = self._one_step(run.step + 1)
            if diverged is None and (run.step % run.settings.evaluate.every == 0 or run.step == steps):
                self._evaluate()
            elif self.stop():
                self._save(last)
                raise Interrupted(run.name)
        results = self._finish(diverged)
        self.emit("on_run_end", results=results)
        return results

    def _one_step(self, step: int) -> str | None:
        """One optimizer step, logged; a sentence if the loss or its gradient is no longer a number."""
        run, progress = self.run, self.progress
        began = time.perf_counter()
        metrics = self.update(step, [next(self.stream).tensors() for _ in range(run.settings.train.accumulate)])
        seconds = time.perf_counter() - began
        for what in ("loss", "gradient_norm"):
            if not math.isfinite(metrics[what]):
                return f"the {what.replace('_', ' ')} was no number at step {step} ({metrics[what]})"
        run.step = progress.step = step
        progress.epoch, progress.position = self.stream.epoch, self.stream.position
        progress.tokens += int(metrics["tokens"])
        progress.seconds += seconds
        append_row(self.run.folder / "metrics.jsonl", {"step": step, **metrics})
        append_row(self.run.folder / "timings.jsonl", {"step": step, "seconds": round(seconds, 6)})
        speed = progress.tokens / progress.seconds
        left = (run.settings.train.steps - step) * progress.seconds / step
        self.emit("on_step_end", step=step, metrics={**metrics, "tokens_per_second": speed, "seconds_left": left})
        return None

    def update(self, step: int, batches: Sequence[Batch]) -> dict[str, float]:
        """Gradients of the batches (tensors) as if they were one, clipped, and one update.

        loss = Σ cross entropy of real tokens / number of real tokens in all batches, so that accumulation equals the
        large batch.
        """
        model, train = self.run.model, self.run.settings.train
        tokens = sum(batch.tokens for batch in batches)
        total = 0.0
        for micro, batch in enumerate(batches):
            # Layers of other authors may draw from Paddle's generator: that too is a function of (seed, step).
            paddle.seed(randomness.digest(self.run.seed, "step", step, micro) >> 1)
            with randomness.drawing(self.run.seed, step, micro):
                tap = Tap()
                loss = model.loss(batch, train.label_smoothing, tap) / tokens
                for extra in tap.losses.values():
                    loss = loss + extra / len(batches)
                loss.backward()
            total += float(loss)
        norm = self._clip(train.clip_norm)
        rate = self.schedule(step)
        self.optimizer.set_lr(rate)
        with paddle.utils.unique_name.guard():  # moments named after parameters, whatever was made before
            self.optimizer.step()
        self.optimizer.clear_grad()
        return {"loss": total, "learning_rate": rate, "gradient_norm": norm, "tokens": tokens}

    def _clip(self, limit: float | None) -> float:
        """Scale all gradients so that their joint norm is at most `limit`; returns the norm before."""
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        flat = [gradient.flatten() for gradient in gradients]
        norm = math.sqrt(float(paddle.add_n([paddle.dot(gradient, gradient) for gradient in flat])))
        if limit is not None and norm > limit:
            with paddle.no_grad():
                for gradient in gradients:
                    gradient.scale_(limit / (norm + 1e-6))
        return norm

    # ------------------------------------------------------------------------------------------- evaluation and saving

    def _evaluate(self) -> None:
        """Score the validation split, keep the best checkpoint, and save where we are."""
        run, settings = self.run, self.run.settings.evaluate
        valid = run.encoded["valid"]
        self.progress.evaluated = False
        metrics, samples = self.score(valid, valid[: settings.examples], self._pause)
        append_row(self.run.folder / "metrics.jsonl", {"step": run.step, "evaluation": metrics})
        self.progress.evaluated = True
        rank = self._rank(metrics)
        if self.progress.best is None or rank > self.progress.best:
            self.progress.best, self.progress.best_step, self.progress.valid = rank, run.step, dict(metrics)
            self._save(run.folder / "checkpoints" / "best", with_optimizer=False)
        self._save(run.folder / "checkpoints" / "last")
        self.emit("on_evaluation_end", step=run.step, metrics=metrics, samples=samples[:SAMPLES])
        if self.stop() and run.step < run.settings.train.steps:
            raise Interrupted(run.name)

    def _pause(self, done: int) -> None:
        if self.stop():
            self._save(self.run.folder / "checkpoints" / "last")
            raise Interrupted(self.run.name)

    def _rank(self, metrics: dict[str, float]) -> list[float]:
        """What the best checkpoint has most of: the recipe's metric, and among equals the lower loss."""
        name = self.run.settings.evaluate.best
        higher = name != "loss" and self.metrics[name].higher_is_better
        ranks = [metrics[name] if higher else -metrics[name], -metrics["loss"]]
        return [rank if math.isfinite(rank) else -math.inf for rank in ranks]

    def score(self, examples, searched, pause=None, search=None) -> tuple[dict[str, float], list[Prediction]]:
        """Metrics over `examples` (likelihood) and `searched` (what the model writes by itself), and predictions."""
        known = likelihood(self.run.model, examples)
        wanted = any(metric.needs_search for metric in self.metrics.values())
        search = search or self.search
        found = predict(self.run.model, self.run.codec, searched, search, progress=pause) if wanted else []
        return score(self.metrics, found, known), found

    def _save(self, folder, with_optimizer: bool = True) -> None:
        checkpoint.save(folder, self.run.model, self.optimizer if with_optimizer else None, asdict(self.progress))
        self.emit("on_checkpoint", step=self.run.step, path=folder)

    def _restore(self, last) -> None:
        names = [each.name for each in fields(Progress)]
        state = checkpoint.load_state(last, names)
        self.progress = Progress(**{name: state[name] for name in names})
        self.run.step = self.progress.step
        self.stream.epoch, self.stream.position = self.progress.epoch, self.progress.position
        checkpoint.load_model(last, self.run.model)
        checkpoint.load_optimizer(last, self.optimizer)
        self._cut_logs()

    def _cut_logs(self) -> None:
        for name in ("metrics.jsonl", "timings.jsonl"):
            cut_rows(self.run.folder / name, self.run.step, self.progress.evaluated)

    def _peek(self) -> Batch:
        batch = next(self.stream).tensors()
        self.stream.epoch = self.stream.position = 0
        return batch

    def _finish(self, diverged: str | None) -> dict:
        run, progress = self.run, self.progress
        best = run.folder / "checkpoints" / "best"
        results = {
            "recipe": run.spec.recipe,
            "variant": run.spec.variant,
            "seed": run.seed,
            "steps": run.step,
            "parameters": run.parameters(),
            "tokens": progress.tokens,
            "seconds": round(progress.seconds, 3),
            "tokens_per_second": round(progress.tokens / progress.seconds, 1) if progress.seconds else 0.0,
            "best_step": progress.best_step,
            "dropped": run.dropped,
            "diverged": diverged,
            "directions": {name: metric.higher_is_better for name, metric in self.metrics.items()},
            "percent": [name for name, metric in self.metrics.items() if metric.percent],
            "valid": progress.valid,
            "test": {},
        }
        if progress.best is not None:
            if not checkpoint.exists(best):
                raise UserError(f"{best}: the best checkpoint is gone; remove {run.folder} to train this run again")
            checkpoint.load_model(best, run.model)
            test = run.encoded["test"]
            if test:
                results["test"], predictions = self.score(test, test, self._pause_quietly, run.search())
                write_predictions(run.folder / "predictions.tsv", predictions)
        write_whole(run.folder / "results.json", json.dumps(results, indent=1, ensure_ascii=False))
        return results

    def _pause_quietly(self, done: int) -> None:
        if self.stop():
            raise Interrupted(self.run.name)

    def emit(self, event: str, **arguments) -> None:
        """Tell every listener."""
        self.plugins.emit(event, self.report, self.strict, run=self.run, **arguments)
