"""A run: one training of one variant with one seed; its folder and its identity, and how to load it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from paddle_tfm import processes
from paddle_tfm.data.batches import Stream
from paddle_tfm.data.codec import Codec, EncodedTexts
from paddle_tfm.data.corpus import Corpus
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.files import folders_with, sync_all, write_whole
from paddle_tfm.inference.trained_model import TrainedModel
from paddle_tfm.language import _
from paddle_tfm.model.build import build
from paddle_tfm.model.size import num_parameters
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Metric
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.plan import Plan, plan_run
from paddle_tfm.recipe.sections.tuning import is_beside
from paddle_tfm.recipe.settings import Settings
from paddle_tfm.registry import Registry
from paddle_tfm.train import checkpoint, manifest
from paddle_tfm.train.changes import changes
from paddle_tfm.train.fit import require_fit
from paddle_tfm.train.identity import identity, missing_plugins, read_identity, training_threads
from paddle_tfm.units import in_shell


@dataclass
class Run(TrainedModel):
    """Everything about one training. Every event passes it to the listeners."""

    fingerprint: dict[str, str]  # split, or `test@name` of a further test → hash of its texts
    start_time: float = 0.0  # when it was created, by `time.perf_counter`
    step: int = 0
    processes: int = 1  # that share its batches: the ranks
    dropped: dict[str, int] = field(default_factory=dict)
    encoded: dict[str, EncodedTexts] = field(default_factory=dict, repr=False)
    in_training: dict[str, dict[str, int]] = field(default_factory=dict)  # as of a corpus
    shards: int = 0  # into which a training divides its batches; 0: nobody has chosen yet

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
        of_run = identity(self.plan, self.fingerprint, self.shards, self.processes)
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
    """A new run, whose model has its initial values. Its codec is learned from the training split; with `resume` it is
    the one in the folder, if the run was started before.

    Raises:
        RecipeError: the constructor of a component raises.
        UserError: no training example is within the bounds of length, or the folder's files are damaged.
    """
    settings, start_time = plan.settings, time.perf_counter()
    shards = 0
    if resume and (folder / "identity.json").exists():
        shards = read_identity(folder)["shards"]
        codec = Codec.load(plan, folder / "codec")
        encoded = corpus.encode(codec)
    else:
        codec, encoded = corpus.encoded(plan)
    train, dropped = _filtered(encoded["train"], settings)
    require_fit(plan, encoded)
    model = _model(plan, codec)
    run = Run(folder, plan, codec, model, corpus.fingerprint, start_time, in_training=corpus.in_training, shards=shards)
    run.encoded, run.dropped = {**encoded, "train": train}, {**corpus.dropped, **dropped}
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
        raise UserError(f"all {len(lengths)} training examples exceed {' and '.join(dropped)}; raise the bound")
    return examples.select(indices.tolist()) if dropped else examples, dropped


def _model(plan: Plan, codec: Codec) -> Transformer:
    try:
        sizes = len(codec.source_vocabulary), len(codec.target_vocabulary)
        return build(plan.sound_model, *sizes, seed=plan.run.seed)
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


def runs_below(path: Path) -> list[Path]:
    """A folder itself where it is a run; else the runs below it, trials of tuning only if there are no others."""
    if (path / "identity.json").is_file():
        return [path]
    folders = folders_with(path, "identity.json")
    return [folder for folder in folders if not is_beside(folder)] or folders


def find_run(path: Path) -> Path:
    """The folder of a run: `path` itself, or that of the only run below it, beside which trials of tuning do not count.

    Raises:
        UserError: there is none, or there are several (they are listed).
    """
    folders = runs_below(path)
    if len(folders) == 1:
        return folders[0]
    if not folders:
        raise UserError(_("{path}: no run is here; `paddle-tfm ls runs` shows where runs are").format(path=path))
    listing = "".join(f"\n  {folder}" for folder in folders)
    raise UserError(_("{path} holds {number} runs; choose one:").format(path=path, number=len(folders)) + listing)


def plan_of(folder: Path, registry: Registry) -> Plan:
    """The plan of a run's recipe, as its folder has it.

    Raises:
        UserError: a plugin that it was trained with is not loaded, or the recipe is not sound, or of several runs.
    """
    plan = plan_run(recipes.load_single(folder / "recipe.yaml"), registry)
    if plan.problems and (missing := missing_plugins(read_identity(folder), registry)):
        raise UserError(f"{folder} was trained with a plugin that is not loaded now; add {missing}")
    return plan.require_sound(str(folder / "recipe.yaml"))


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
    point = _checkpoint(folder, which)
    run = Run(folder, plan, codec, _model(plan, codec), stored["data"])
    run.shards, run.processes = stored["shards"], stored["processes"]
    for change in changes(stored, run.identity() | {"data": stored["data"]}):
        warn(f"{folder}: since it was trained, {change}; its scores may differ")
    checkpoint.load_model(point, run.model)
    run.step = manifest.read_state(point).step
    if not (folder / "results.json").is_file():
        warn(
            f"{folder} is not finished: the checkpoint is of step {run.step:,} of {run.settings.train.steps:,}; "
            "`paddle-tfm run … --resume` continues it"
        )
    run.model.eval()
    return run


def _checkpoint(folder: Path, which: str) -> Path:
    """Where a checkpoint of a run is. Raises UserError: it is not there, or damaged."""
    places = {name: manifest.find(folder / "checkpoints" / name) for name in ("best", "last")}
    point = manifest.find(folder / "checkpoints" / which)
    if point is None:
        others = [name for name, place in places.items() if place is not None]
        there = " and ".join(f"{name}: --checkpoint {name} takes it" for name in others) or "none yet"
        raise UserError(f"{folder / 'checkpoints' / which}: no such checkpoint; there is {there}")
    if sentence := manifest.damage(point):
        raise UserError(f"{sentence}; `paddle-tfm check {in_shell(folder)}` says which checkpoints are whole")
    return point
