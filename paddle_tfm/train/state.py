"""The state of a training: all that is saved with its model in a checkpoint, and restored from one."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paddle

from paddle_tfm.files import remove, sync
from paddle_tfm.model.size import trained_parameters
from paddle_tfm.runs import checkpoint, manifest
from paddle_tfm.runs.forms import Progress
from paddle_tfm.runs.logs import LOGS, append_row, cut_rows
from paddle_tfm.train import running_statistics
from paddle_tfm.train.moving_average import MovingAverage
from paddle_tfm.train.run import Run
from paddle_tfm.train.step import Step


class TrainingState:
    """The stream of batches, the optimizer's step, the moving average of the weights (if the recipe sets `train.ema`)
    and the progress of one run.

    Args:
        run: its model has its initial values.
    """

    def __init__(self, run: Run):
        train, components = run.settings.train, run.plan.components
        schedule = components["train.schedule"].build(d_model=run.settings.model.d_model, steps=train.steps)
        parameters = trained_parameters(run.model)
        self.optimizer = components["train.optimizer"].build()
        optimizer = self.optimizer.create(parameters)
        self.ema = MovingAverage(run.model, train.ema) if train.ema is not None else None
        self.run, self.stream, self.progress = run, run.stream(), Progress()
        self.step = Step(run.model, parameters, optimizer, schedule, train, run.seed, self.ema)

    @functools.cached_property
    def identity(self) -> str:
        """The hash of the run's identity."""
        return str(self.run.identity()["hash"])

    def folder(self, name: str = "") -> Path:
        """The folder of the checkpoint `name`; without a name, of all checkpoints."""
        return self.run.folder / "checkpoints" / name

    def existing(self, name: str) -> Path:
        """Where the checkpoint `name` is. Raises UserError: it is gone, or damaged."""
        return checkpoint.existing(self.folder(name), self.run.folder)

    def wall_seconds(self) -> float:
        """Seconds of this run so far, with learning the tokenizer, evaluations and checkpoints."""
        return self.progress.wall_seconds + time.perf_counter() - self.run.start_time

    def count(self, step: int, row: Mapping[str, Any], seconds: float) -> None:
        """Count a step, and log it."""
        self.run.step = self.progress.step = step
        self.progress.epoch, self.progress.position = self.stream.epoch, self.stream.position
        append_row(self.run.folder / "metrics.jsonl", {"step": step, **row})
        append_row(self.run.folder / "timings.jsonl", {"step": step, "seconds": round(seconds, 6)})

    @contextmanager
    def evaluated_weights(self) -> Iterator[None]:
        """Within this block the model has the weights to evaluate and save: the moving average, or the optimizer's; and
        running statistics of these weights, where a norm re-estimates them."""
        weights = self.ema.applied() if self.ema is not None else self.optimizer.evaluated(self.step.optimizer)
        with weights, running_statistics.estimated(self.run.model, self.run.stream(), self.run.seed):
            yield

    def save(self, name: str, resumable: bool = True) -> None:
        """Save the weights and the progress, and if `resumable` the states of optimizer and moving average.

        Raises:
            UserError: the checkpoint could not be written.
        """
        if resumable:
            for log in LOGS:
                sync(self.run.folder / log)  # a checkpoint never knows of a step that the logs have lost
        state = {**self.progress.model_dump(), "wall_seconds": self.wall_seconds()}
        parts = self.parts() if resumable else {}
        checkpoint.save(self.folder(name), self.run.model, state, parts, self.identity, keep_old=resumable)

    def parts(self) -> dict[str, Mapping[str, paddle.Tensor]]:
        """The states of optimizer and moving average."""
        state = self.step.optimizer.state_dict()
        tensors = {path: value for path, value in state.items() if hasattr(value, "numpy")}
        average = {} if self.ema is None else {"ema": self.ema.shadow}
        return {"optimizer": tensors, **average}

    def restore(self, point: Path) -> None:
        """Resume from the checkpoint `point`. A newer one that is damaged is removed, so that `point` stays the old one
        until another is whole."""
        self.progress = manifest.read_state(point)
        self.run.step = self.progress.step
        self.stream.epoch, self.stream.position = self.progress.epoch, self.progress.position
        checkpoint.load_model(point, self.run.model)
        self.step.optimizer.set_state_dict(checkpoint.load_part(point, "optimizer"))
        if self.ema is not None:
            self.ema.shadow = checkpoint.load_part(point, "ema")
        if point != self.folder("last"):
            remove(self.folder("last"), ignore_errors=True)
        self.cut_logs()

    def cut_logs(self) -> None:
        """Remove from the logs what is later than this state: it will be computed again."""
        for name in LOGS:
            cut_rows(self.run.folder / name, self.run.step, self.progress.evaluated)
