"""The sides `ours`: the engine's own training step and decoding, by the code of `paddle-tfm run` and `translate`."""

from __future__ import annotations

import functools
import gc
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import paddle

from benchmarks import libraries
from benchmarks.workload import ALPHA, BEAM, FIELDS, STEPS, Workload
from paddle_tfm.data.batches import Batch, collate, in_order
from paddle_tfm.data.codec import Encoded
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.data.vocabulary import PAD
from paddle_tfm.errors import UserError
from paddle_tfm.export.ctranslate2.rules import Rules
from paddle_tfm.export.engine import exported, open_engine
from paddle_tfm.kernels.cpu import products
from paddle_tfm.plugins import create_plugins
from paddle_tfm.protocols import Example, Hypothesis
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.recipe.sites import at_site
from paddle_tfm.recipe.yaml_lines import recipe_text
from paddle_tfm.registry import Registry
from paddle_tfm.search.decoding import decode_all
from paddle_tfm.train.divided.shards import PROBE_ROWS, number_of_shards
from paddle_tfm.train.divided.shared_step import sharded
from paddle_tfm.train.run import Run, create, load_run
from paddle_tfm.train.step import Step
from paddle_tfm.train.trainer import Trainer

MAX_TOKENS = 4096  # of a batch that is decoded, as in `paddle-tfm translate`
SINGLES = 50  # sentences that are decoded one at a time
PEERS, EXPORTED = ("torch-tuned", "joeynmt"), ("ours-ctranslate2", "ctranslate2")
# The components of the peers' Transformers: weights can be copied between equal models only.
PEERS_HAVE = {
    "attention": ("multihead",),
    "norm": ("layer",),
    "position": ("sinusoidal",),
    "placement": ("pre", "post"),
    "feed_forward": ("relu",),
    "head": ("linear", "tied"),
}


class Training(libraries.Training):
    """The engine's training step. The side `ours` also writes the workload of the other sides."""

    def __init__(self, folder: Path, side: str = "ours"):
        request = json.loads((folder / "request.json").read_text("utf-8"))
        overrides = ["train.products=bfloat16"] if side == "ours-bfloat16" else []
        (spec,) = recipes.load(str(folder / "recipe.yaml"), overrides).runs()
        plugins = create_plugins()
        plan = plan_run(spec, Registry(plugins)).require_sound(spec.recipe)
        run = create(plan, folder / f"run-{side}", load_corpus(plan, ["train"]))
        self.trainer = Trainer(run, plugins)
        if request["length"] is None:
            self.batches = [next(self.trainer.stream) for _ in range(STEPS)]
        else:
            self.batches = list(_cut(run.encoded["train"], request["length"], run.settings.train.max_tokens))
        run.model.train()
        self.update: Step = self.trainer.step
        self.workers: list[int] = []
        self.precision = run.settings.train.products
        if self.precision != "float32" and (reason := products.why_not(self.precision)):
            raise UserError(
                f"the side '{side}' has train.products={self.precision}, which is not to be had here: {reason}"
            )
        self.settings = f"products in {products.description(self.precision)}"
        if side == "ours":
            batches = [[getattr(batch, name) for name in FIELDS] for batch in self.batches]
            rate = run.recipe["train"]["schedule"]["learning_rate"]
            Workload(_sizes(run), _arrays(run), batches, run.settings.train.clip_norm, rate).write(folder)
        self._divide()

    def _divide(self) -> None:
        """Divide steps among processes as a training does. First frees the corpus, since no peer holds one."""
        step, probe = self.trainer.step, list(self.trainer.run.encoded["train"][:PROBE_ROWS])
        self.trainer.run.encoded = {}
        gc.collect()
        self._exit_stack = ExitStack()
        rows = sorted(len(batch.index) for batch in self.batches)[len(self.batches) // 2]
        self.update = self._exit_stack.enter_context(sharded(step, number_of_shards(step, probe, rows)))
        self.workers = [worker.pid for worker in getattr(self.update, "workers", ())]

    def first_loss(self) -> float:
        """The loss of the first batch, by the code of the training, without dropout."""
        model, batch = self.trainer.run.model, self.batches[0].tensors()
        model.eval()
        loss = float(model.loss(batch))
        model.train()
        return loss

    def facts(self) -> dict:
        """What others say, and the target tokens of a turn."""
        return {**super().facts(), "units": {"step": sum(batch.tokens for batch in self.batches)}}

    def step(self, number: int) -> None:
        """One step on batch `number`, modulo the number of batches."""
        self.update(number + 1, [self.batches[number % len(self.batches)]])
        if paddle.device.get_device() != "cpu":
            paddle.device.synchronize()


class Search(libraries.Search):
    """Decoding with a trained run, by Paddle or by its export, which is made once in the run's folder as
    `translate --engine` does. The side `ours` also writes the workload of the other sides."""

    def __init__(self, folder: Path, side: str = "ours"):
        registry = Registry(create_plugins())
        run = load_run(json.loads((folder / "request.json").read_text("utf-8"))["run"], registry)
        self.run = run
        self.searches = {
            "beam": registry.build("search", {"name": "beam", "size": BEAM, "alpha": ALPHA}, ""),
            "greedy": registry.build("search", "greedy", ""),
        }
        engine = "ctranslate2" if side == "ours-ctranslate2" else "paddle"
        self.rules = Rules(registry)
        self._decode: Callable[..., list[list[Hypothesis]]] = open_engine(
            run, self.rules, engine, self.searches["greedy"], scores=False
        ) or functools.partial(decode_all, run.model)
        texts = load_corpus(run.plan, ["test"]).splits["test"]
        if not texts:
            raise UserError(f"{run.folder}: its task has no test split")
        examples = run.codec.encode_all(texts)
        # The groups of one call of ours, and the same sentences in batches for the other sides.
        self.jobs: dict[str, list[Sequence[Encoded]]] = {
            "beam": [examples],
            "greedy": [[example] for example in examples[:SINGLES]],
        }
        self.batches = {
            job: [batch for group in groups for batch in in_order(group, MAX_TOKENS)]
            for job, groups in self.jobs.items()
        }
        self.lacking: dict[str, str] = {}
        if side == "ours":
            self._prepare_others(folder)

    def _prepare_others(self, folder: Path) -> None:
        """Write what the other sides read, find out which do not have this model, and export it for those that use
        the engine."""
        if reason := _why_not_peers(self.run):
            self.lacking |= dict.fromkeys(PEERS, reason)
        sizes = {
            **_sizes(self.run),
            **dict.fromkeys(("dropout", "embedding_dropout", "inner_dropout"), 0.0),
            "share_embeddings": self.run.settings.model.share_embeddings,
            "jobs": {job: len(batches) for job, batches in self.batches.items()},
        }
        try:
            sizes["export"] = str(exported(self.run, self.rules))
        except UserError as error:
            self.lacking |= dict.fromkeys(EXPORTED, str(error))
        batches = [[getattr(batch, name) for name in FIELDS] for job in self.batches.values() for batch in job]
        Workload(sizes, _arrays(self.run), batches, None, 0.0).write(folder)

    def facts(self) -> dict:
        """The sentences of each job, and in `lacking` why a side does not have this model."""
        units = {job: sum(len(batch.index) for batch in batches) for job, batches in self.batches.items()}
        return {"units": units, "lacking": self.lacking}

    def turn(self, job: str, number: int = 0) -> list[list[int]]:
        """The ids of the best output of each sentence, without the end token."""
        groups = [self._decode(group, self.searches[job], MAX_TOKENS, wanted=1) for group in self.jobs[job]]
        if job == "beam":  # in the order of the batches, as the other sides return them
            groups = [[groups[0][i] for batch in self.batches[job] for i in batch.index]]
        return [list(hypotheses[0].ids) for group in groups for hypotheses in group]


def _cut(examples: Sequence[Encoded], length: int, max_tokens: int) -> Iterator[Batch]:
    """The batches of a turn, of max_tokens / length rows, at least one, with sources and targets of `length` tokens,
    cut from the concatenated texts, which repeat at their end."""
    rows = max(1, max_tokens // length)
    order = itertools.cycle(range(len(examples)))
    rest: dict[str, list[int]] = {"source": [], "target": []}
    for _ in range(STEPS):
        cut = []
        for _ in range(rows):
            while min(map(len, rest.values())) < length:
                example = examples[next(order)]
                for side, ids in rest.items():
                    ids += getattr(example, side)
            source, target = (ids[:length] for ids in rest.values())
            rest = {side: ids[length:] for side, ids in rest.items()}
            cut.append(Encoded(Example("", ""), source, source, target, target, ()))
        yield collate(cut)


def _why_not_peers(run: Run) -> str | None:
    """What PyTorch's `nn.Transformer` and JoeyNMT do not have of a run's model; None if they have it all."""
    for part, allowed in PEERS_HAVE.items():
        value = getattr(run.settings.model, part)
        name = value.get("name") if isinstance(value, dict) else value
        if name not in allowed:
            return f"it has model.{part} {' or '.join(allowed)}, and the run {recipe_text(value)}"
    if {"head.bias", "head.output.bias"} & run.model.state_dict().keys():
        return "its model.head has no bias ({name: linear, bias: false}), and the run's has one"
    return None


def _arrays(run: Run) -> dict[str, np.ndarray]:
    """The model's state, path → array."""
    return {name: tensor.numpy() for name, tensor in run.model.state_dict().items()}


def _sizes(run: Run) -> dict:
    """The fields of `PeerSizes` with the run's sizes."""
    model, codec = run.settings.model, run.codec
    _, feed_forward = at_site("feed_forward", model.feed_forward, "encoder", "feed_forward")
    same = ("d_model", "num_heads", "d_ff", "encoder_layers", "decoder_layers", "dropout", "max_length")
    return {
        **{name: getattr(model, name) for name in same},
        "embedding_dropout": model.dropout if model.embedding_dropout is None else model.embedding_dropout,
        "inner_dropout": feed_forward.get("inner_dropout", 0.0) if isinstance(feed_forward, dict) else 0.0,
        "scale_embedding": model.scale_embedding,
        "normalize_before": model.placement == "pre",
        "source_vocabulary": len(codec.source_vocabulary),
        "target_vocabulary": len(codec.target_vocabulary),
        "pad_id": PAD,
    }
