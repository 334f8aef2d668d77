"""The side `ours`: the engine's own training step, by the code of `paddle-tfm run`."""

from __future__ import annotations

import json
from pathlib import Path

import paddle

from paddle_tfm import recipe as recipes
from paddle_tfm.bench.given import FIELDS, Given
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.data.vocabulary import PAD
from paddle_tfm.errors import RecipeError
from paddle_tfm.plugins import create_plugins
from paddle_tfm.registry import Registry
from paddle_tfm.settings import at_site
from paddle_tfm.train.run import create
from paddle_tfm.train.trainer import Trainer


class Side:
    """It also makes what the other sides read (`given`)."""

    def __init__(self, folder: Path):
        told = json.loads((folder / "told.json").read_text("utf-8"))
        (spec,) = recipes.load(str(folder / "recipe.yaml")).runs()
        plugins = create_plugins(told["plugins"])
        registry = Registry(plugins)
        if problems := recipes.check_components(spec, registry):
            raise RecipeError(spec.recipe, problems)
        run = create(spec, registry, folder / "run", load_corpus(spec.settings, registry, ["train"]))
        self.trainer = Trainer(run, plugins)
        self.batches = [next(self.trainer.stream) for _ in range(told["batches"])]
        self.given = Given(
            _sizes(run),
            {name: tensor.numpy() for name, tensor in run.model.state_dict().items()},
            [[getattr(batch, name) for name in FIELDS] for batch in self.batches],
            run.settings.train.clip_norm,
            run.settings.train.schedule["learning_rate"],
        )
        run.model.train()

    def facts(self) -> dict:
        """What the report says of all sides alike."""
        run = self.trainer.run
        more = {"parameters": run.parameters(), "max_tokens": run.settings.train.max_tokens}
        return {
            "device": paddle.device.get_device(),
            "sizes": {**self.given.sizes, **more},
            "tokens": [batch.tokens for batch in self.batches],
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
        if paddle.device.get_device() != "cpu":
            paddle.device.synchronize()


def _sizes(run) -> dict:
    """The arguments of a peer that is the same model."""
    model, codec = run.settings.model, run.codec
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
        "pad_id": PAD,
    }
