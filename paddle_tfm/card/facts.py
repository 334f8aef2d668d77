"""What a card says of a run, read from its folder; nothing of it needs the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paddle_tfm import units
from paddle_tfm.comparison.runs.trained_from import recipe_of
from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json
from paddle_tfm.imports import PROOF
from paddle_tfm.language import _
from paddle_tfm.predictions import predictions_of
from paddle_tfm.runs.forms import read_about, read_results
from paddle_tfm.runs.logs import read_rows

DECODER_ONLY, ENCODER_ONLY = "decoder-only", "encoder-only"


class RunFacts:
    """A run, finished or not.

    Raises:
        UserError: its recipe cannot be read.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.recipe = recipe_of(folder)
        if not self.recipe:
            raise UserError(_("{folder}: a card needs it, but it cannot be read").format(folder=folder / "recipe.yaml"))
        self.about = read_about(folder)
        try:
            self.results = read_results(folder, ["directions", "units", "valid", "test"])
        except UserError:
            self.results = {}
        self.predictions = predictions_of(folder)
        self.proof: dict[str, Any] = {}
        if (folder / PROOF).is_file():
            self.proof = read_json(folder / PROOF, ["origin", "compared", "remarks"])
        self.name = f"{self.recipe.get('name')}/{self.recipe.get('variant', 'default')}/seed-{self.seed}"

    @property
    def seed(self) -> object:
        """The seed of the run."""
        return self.recipe.get("seeds", ["?"])[0]

    @property
    def shape(self) -> str:
        """Which stacks the model has."""
        model = self.recipe.get("model", {})
        if model.get("encoder_layers") == 0:
            return DECODER_ONLY
        return ENCODER_ONLY if model.get("decoder_layers") == 0 else "encoder-decoder"

    @property
    def deciding(self) -> str:
        """The metric that chose the checkpoint, of whichever validation set."""
        return units.metric_and_test(str(self.recipe.get("evaluate", {}).get("best", "loss")))[0]

    @property
    def split(self) -> str:
        """The split of the final scores."""
        return "test" if self.results.get("test") else "validation"

    def unit(self, metric: str) -> str:
        """The unit of a metric."""
        return self.results.get("units", {}).get(metric, "")

    def text(self, metric: str, value: float | None) -> str:
        """A metric's value as people read it."""
        return units.text(value, self.unit(metric))

    def last_step(self) -> int:
        """How far the training came."""
        logged = (row["step"] for row in read_rows(self.folder / "metrics.jsonl"))
        return int(self.results.get("steps") or max(logged, default=0))

    def lead(self) -> str:
        """The sentence that matters most: the score, or why there is none."""
        steps = self.recipe.get("train", {}).get("steps")
        if not self.results:
            text = _("This run is not finished: it has done {step} of {steps} steps.")
            return text.format(step=f"{self.last_step():,}", steps=f"{steps:,}")
        if self.results.get("diverged"):
            return _("This run diverged: {why}.").format(why=self.results["diverged"])
        scores = self.results["test"] or self.results["valid"]
        count = self.about.get("examples", {}).get("test" if self.results["test"] else "valid") or len(self.predictions)
        name = units.metric_name(self.deciding)
        text = (
            _("{metric} {score} on {count} {split} examples.") if count else _("{metric} {score} on the {split} split.")
        )
        score, split = self.text(self.deciding, scores.get(self.deciding)), _(self.split)
        return text.format(metric=f"{name[:1].upper()}{name[1:]}", score=score, count=f"{count:,}", split=split)

    def summary(self) -> str:
        """What the model is, in one sentence."""
        parameters = self.results.get("parameters") or self.about.get("parameters")
        size = _(" of {number} parameters").format(number=f"{parameters:,}") if parameters else ""
        if self.proof:
            text = _("A Transformer{size} that {toolkit} trained.")
            return text.format(size=size, toolkit=self.proof["origin"].get("toolkit", "?"))
        task = self.recipe.get("task")
        name = task.get("name") if isinstance(task, dict) else task
        text = (
            _("A {shape} Transformer{size}, trained for {steps} steps on {task} with seed {seed}.")
            if self.shape == DECODER_ONLY
            else _("An {shape} Transformer{size}, trained for {steps} steps on {task} with seed {seed}.")
        )
        return text.format(shape=self.shape, size=size, steps=f"{self.last_step():,}", task=name, seed=self.seed)
