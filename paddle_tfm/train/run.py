"""A run: one training of one variant with one seed; its folder and its identity, and how to load it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from paddle_tfm import processes
from paddle_tfm.data.batches import Stream
from paddle_tfm.data.codec import Codec, EncodedTexts
from paddle_tfm.data.corpus import Corpus
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.files import sync_all, write_whole
from paddle_tfm.inference.trained_model import TrainedModel
from paddle_tfm.language import _
from paddle_tfm.model.build import build
from paddle_tfm.model.by_path import prepare
from paddle_tfm.model.size import num_parameters
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Metric
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.recipe.settings import Settings
from paddle_tfm.registry import Registry
from paddle_tfm.runs import checkpoint, manifest
from paddle_tfm.runs.changes import changes
from paddle_tfm.runs.folders import checkpoint_of, find_run, plan_of
from paddle_tfm.runs.identity import history_of, identity, read_identity, training_threads
from paddle_tfm.train import start
from paddle_tfm.train.fit import require_fit


@dataclass
class Run(TrainedModel):
    """Everything about one training. Every event passes it to the listeners."""

    fingerprint: dict[str, str]  # split, or `test@name` of a further test → hash of its texts
    start_time: float = 0.0  # when it was created, by `time.perf_counter`
    step: int = 0
    processes: int = 1  # that share its batches: the ranks
    dropped: dict[str, int] = field(default_factory=dict)  # `setting=value` → how many examples it left out
    encoded: dict[str, EncodedTexts] = field(default_factory=dict, repr=False)
    in_training: dict[str, dict[str, int]] = field(default_factory=dict)  # as of a corpus
    shards: int = 0  # into which a training divides its batches; 0: nobody has chosen yet
    history: dict[str, Any] = field(default_factory=dict)  # as of `identity`

    @property
    def name(self) -> str:
        """variant/seed-n."""
        return self.plan.run.name

    @property
    def recipe(self) -> dict:
        """The resolved recipe, as data."""
        return self.plan.run.data

    @property
    def seed(self) -> int:
        """The seed of every draw of this run."""
        return self.plan.run.seed

    def parameters(self) -> int:
        """The number of trainable parameters, shared ones counted once."""
        return num_parameters(self.model)

    def identity(self) -> dict[str, object]:
        """What determines this run's numbers: `train.identity`."""
        of_run = identity(self.plan, self.fingerprint, self.shards, self.processes, self.history)
        return {**of_run, "vocabulary": self.codec.vocabulary_hash()}

    def as_trained(self) -> AbstractContextManager[None]:
        """Within this block work is divided as the training divides it, so that an evaluation has the same last bits.
        A run that nobody has begun to train divides it by the threads at hand."""
        return processes.divided(self.shards, training_threads(self.plan)) if self.shards else nullcontext()

    def stream(self) -> Stream:
        """The training batches from the first on."""
        train = self.settings.train
        max_length = self.settings.model.max_length
        return Stream(self.encoded["train"], train.max_tokens, self.seed, max_length, train.batches)

    def metrics(self) -> dict[str, Metric]:
        """The recipe's metrics by name."""
        return {name: metric.build() for name, metric in self.plan.metrics().items()}


def create(plan: Plan, folder: Path, corpus: Corpus, resume: bool = False) -> Run:
    """A new run, whose model has its initial values, or those of the run that `train.from` names. Its codec is learned
    from the training split; with `resume` it is the one in the folder, if the run was started before, and no other run
    is read.

    Raises:
        RecipeError: the constructor of a component raises.
        UserError: no training example is within the bounds of length, the folder's files are damaged, or it cannot
            begin with that other run.
    """
    settings, start_time = plan.settings, time.perf_counter()
    stored = read_identity(folder) if resume and (folder / "identity.json").exists() else {"shards": 0}
    source = None
    saved = settings.train.from_ is None or manifest.find(folder / "checkpoints" / "last")
    if "hash" in stored and saved:
        codec = Codec.load(plan, folder / "codec")
        encoded = corpus.encode(codec)
    else:
        source, codec, encoded = start.encoded(plan, corpus)
    train, dropped = _filtered(encoded["train"], settings)
    require_fit(plan, encoded)
    model = _model(plan, codec)
    run = Run(folder, plan, codec, model, corpus.fingerprint, start_time, in_training=corpus.in_training)
    run.encoded, run.dropped, run.shards = {**encoded, "train": train}, {**corpus.dropped, **dropped}, stored["shards"]
    if source is not None:
        run.history = {"start": source.carry(plan, codec, model).model_dump()}
    else:
        run.history = history_of(stored)
    return run


def _filtered(examples: EncodedTexts, settings: Settings) -> tuple[EncodedTexts, dict[str, int]]:
    """The training examples within the recipe's bounds of length, and how many each bound (`setting=value`) dropped."""
    lengths, longest, ratio = examples.lengths, settings.model.max_length, settings.train.max_ratio
    too_long = lengths.max(1) > longest
    uneven = np.zeros(len(lengths), bool)
    if ratio is not None:
        uneven = ~too_long & (lengths.max(1) > ratio * lengths.min(1))
    counts = {f"model.max_length={longest}": int(too_long.sum()), f"train.max_ratio={ratio}": int(uneven.sum())}
    dropped = {bound: count for bound, count in counts.items() if count}
    indices = np.flatnonzero(~(too_long | uneven))
    if not indices.size:
        text = _("all {number} training examples exceed {bounds}; raise the bound")
        raise UserError(text.format(number=len(lengths), bounds=" and ".join(dropped)))
    return examples.select(indices.tolist()) if dropped else examples, dropped


def _model(plan: Plan, codec: Codec) -> Transformer:
    try:
        sizes = len(codec.source_vocabulary), len(codec.target_vocabulary)
        return prepare(build(plan.sound_model, *sizes, seed=plan.run.seed), plan.settings.train)
    except RecipeError as error:
        raise RecipeError(plan.run.recipe, plan.located(error.problems)) from error


# ------------------------------------------------------------------------------------------------------------- folders


def write_start(run: Run) -> None:
    """Write what a run's folder holds before the first step: the resolved recipe, the codec and the identity."""
    run.folder.mkdir(parents=True, exist_ok=True)
    write_whole(run.folder / "recipe.yaml", yaml_lines.dump(run.recipe))
    run.codec.save(run.folder / "codec")
    sync_all(run.folder)
    write_whole(run.folder / "identity.json", json.dumps(run.identity(), indent=1))  # last: the folder is complete


def load_run(
    path: str | Path, registry: Registry, which: str = "best", warn: Callable[[str], None] = lambda text: None
) -> Run:
    """A trained run, ready to translate.

    Args:
        path: its folder, or a folder with no other run below it. which: the checkpoint, best | last.
        warn: called with a sentence for each plugin that changed since the training, if Paddle did, and if the
            training has not ended.
    Raises:
        UserError: no run is there, or its files are broken.
    """
    folder = find_run(Path(path))
    plan, stored = plan_of(folder, registry), read_identity(folder)
    codec = Codec.load(plan, folder / "codec")
    point = checkpoint_of(folder, which)
    run = Run(folder, plan, codec, _model(plan, codec), stored["data"])
    run.shards, run.processes, run.history = stored["shards"], stored["processes"], history_of(stored)
    for change in changes(stored, run.identity() | {"data": stored["data"]}):
        warn(_("{folder}: since it was trained, {change}; its scores may differ").format(folder=folder, change=change))
    checkpoint.load_model(point, run.model)
    run.step = manifest.read_state(point).step
    if not (folder / "results.json").is_file():
        warn(
            _(
                "{folder} is not finished: the checkpoint is of step {step:,} of {steps:,}; `paddle-tfm "
                "run … --resume` continues it"
            ).format(folder=folder, step=run.step, steps=run.settings.train.steps)
        )
    run.model.eval()
    return run
