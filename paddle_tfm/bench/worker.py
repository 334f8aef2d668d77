"""One side of the benchmark in a process of its own, told over its standard input what to do.

Questions and answers are JSON, one a line: ``{"load": folder}`` answers what this side is and its first loss;
``{"first": n, "steps": k}`` makes k steps beginning with batch n and answers the seconds of each.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paddle_tfm import recipe as recipes
from paddle_tfm.data.vocabulary import PAD
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.runtime import load_paddle
from paddle_tfm.settings import at_site

paddle = load_paddle()

FIELDS = ("source", "source_valid", "target_in", "target_valid", "target_out")


class Ours:
    """The engine's own step. It also makes what the other sides read: batches, initial values and sizes."""

    def __init__(self, folder: Path):
        from paddle_tfm.data.corpus import load_corpus
        from paddle_tfm.plugins import create_plugins
        from paddle_tfm.registry import Registry
        from paddle_tfm.train.run import create
        from paddle_tfm.train.trainer import Trainer

        told = json.loads((folder / "told.json").read_text("utf-8"))
        (spec,) = recipes.load(str(folder / "recipe.yaml")).runs()
        plugins = create_plugins(told["plugins"])
        registry = Registry(plugins)
        if problems := recipes.check_components(spec, registry):
            raise RecipeError(spec.recipe, problems)
        run = create(spec, registry, folder / "run", load_corpus(spec.settings, registry, ["train"]))
        self.trainer = Trainer(run, plugins)
        self.batches = [next(self.trainer.stream) for _ in range(told["batches"])]
        self.sizes = _sizes(run)
        self._write(folder)
        run.model.train()

    def _write(self, folder: Path) -> None:
        arrays = {f"{i}.{name}": getattr(batch, name) for i, batch in enumerate(self.batches) for name in FIELDS}
        np.savez(folder / "batches.npz", **arrays)
        state = self.trainer.run.model.state_dict()
        np.savez(folder / "weights.npz", **{name: tensor.numpy() for name, tensor in state.items()})
        (folder / "sizes.json").write_text(json.dumps(self.sizes), "utf-8")

    def facts(self) -> dict:
        """What the report says of all sides alike."""
        return {
            "sizes": {**self.sizes, "parameters": self.trainer.run.parameters()},
            "tokens": [batch.tokens for batch in self.batches],
            "first_loss": self.first_loss(),
        }

    def first_loss(self) -> float:
        """The loss of the first batch, by the same code as in training, but free of dropout."""
        model, batch = self.trainer.run.model, self.batches[0].tensors()
        model.eval()
        loss = float(model.loss(batch)) / batch.tokens
        model.train()
        return loss

    def step(self, number: int) -> None:
        """One step on the batch of that number, counted round and round."""
        self.trainer.update(number + 1, [self.batches[number % len(self.batches)].tensors()])


def _sizes(run) -> dict:
    model, train, codec = run.settings.model, run.settings.train, run.codec
    _, feed_forward = at_site("feed_forward", model.feed_forward, "encoder", "feed_forward")
    same = ("d_model", "num_heads", "d_ff", "encoder_layers", "decoder_layers", "dropout", "max_length")
    return {
        **{name: getattr(model, name) for name in same},
        "embedding_dropout": model.dropout if model.embedding_dropout is None else model.embedding_dropout,
        "inner_dropout": feed_forward["inner_dropout"],
        "scale_embedding": model.scale_embedding,
        "normalize_before": model.placement == "pre",
        "source_vocabulary": len(codec.source_vocabulary),
        "target_vocabulary": len(codec.target_vocabulary),
        "max_tokens": train.max_tokens,
        "clip_norm": train.clip_norm,
        "learning_rate": train.schedule["learning_rate"],
    }


class Paddles:
    """The step of `peer`, on the batches and from the initial values that our side wrote."""

    def __init__(self, folder: Path):
        from paddle_tfm.bench.peer import Peer, copy_weights

        sizes = json.loads((folder / "sizes.json").read_text("utf-8"))
        clip, rate = sizes.pop("clip_norm"), sizes.pop("learning_rate")
        del sizes["max_tokens"]
        self.model = Peer(**sizes, pad_id=PAD)
        with np.load(folder / "weights.npz") as weights:
            copy_weights(dict(weights), self.model)
        with np.load(folder / "batches.npz") as arrays:
            count = len(arrays.files) // len(FIELDS)
            self.batches = [[arrays[f"{i}.{name}"] for name in FIELDS] for i in range(count)]
        self.optimizer = paddle.optimizer.Adam(
            rate,
            beta1=0.9,
            beta2=0.98,
            epsilon=1e-9,
            parameters=self.model.parameters(),
            grad_clip=None if clip is None else paddle.nn.ClipGradByGlobalNorm(clip),
        )

    def facts(self) -> dict:
        """What the report says of this side."""
        return {"first_loss": self.first_loss()}

    def first_loss(self) -> float:
        """The loss of the first batch, free of dropout."""
        self.model.eval()
        loss = float(self.model.loss(*map(paddle.to_tensor, self.batches[0])))
        self.model.train()
        return loss

    def step(self, number: int) -> None:
        """One step on the batch of that number, counted round and round."""
        loss = self.model.loss(*map(paddle.to_tensor, self.batches[number % len(self.batches)]))
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        float(loss)


class Answer(NamedTuple):
    """What goes back: `value`, or in `refused` a sentence for the user."""

    value: dict | None = None
    refused: str | None = None


def main(side: str) -> None:
    """Answer until the questions end. What libraries print goes to the log, not between the answers."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        loaded = None
        for line in sys.stdin:
            question = json.loads(line)
            try:
                if "load" in question:
                    loaded = (Ours if side == "ours" else Paddles)(Path(question["load"]))
                    threads = int(os.environ.get("OMP_NUM_THREADS", 1))
                    answer = Answer({**loaded.facts(), "threads": threads, "device": paddle.device.get_device()})
                else:
                    answer = Answer({"seconds": _timed(loaded, question["first"], question["steps"])})
            except UserError as error:
                answer = Answer(refused=str(error))
            out.write(json.dumps(answer._asdict()) + "\n")
            out.flush()


def _timed(side: Ours | Paddles, first: int, steps: int) -> list[float]:
    seconds = []
    for number in range(first, first + steps):
        began = time.perf_counter()
        side.step(number)
        if not paddle.device.get_device().startswith("cpu"):
            paddle.device.synchronize()
        seconds.append(time.perf_counter() - began)
    return seconds
