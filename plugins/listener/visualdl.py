"""A run's curves, samples, images, histograms and hyper-parameters for VisualDL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from visualdl import LogWriter

from paddle_tfm.runs.logs import read_rows
from paddle_tfm_plugins.listener import _visualdl_images as images
from paddle_tfm_plugins.listener._visualdl_records import read_records, to_keep

SPEED_EVERY = 10  # steps between points of tokens/s, which varies much from step to step
BINS = 40
MAX_VALUES = 50_000  # of a layer in a histogram, evenly spread


class Board:
    """Writes `<run>/vdl`: training loss, learning rate, gradient norm and tokens/s by step; with every evaluation its
    metrics, sample predictions as text, attention and encodings as images, and histograms of the weights and of the
    last step's gradients; and at the end the hyper-parameters with their results.

    VisualDL shows only the newest file of a folder, so a resumed run writes its history again: curves from
    `metrics.jsonl`, all else from the file before.
    """

    def __init__(self, run):
        folder = run.folder / "vdl"
        folder.mkdir(parents=True, exist_ok=True)
        rows = read_rows(run.folder / "metrics.jsonl")
        evaluations = {row["step"] for row in rows if "evaluation" in row}
        kept = to_keep(read_records(folder), run.step, evaluations)
        for file in folder.glob("vdlrecords.*.log"):
            file.unlink()
        self.run = run
        self.writer = LogWriter(logdir=str(folder), display_name=run.name)
        for row in rows:
            if "evaluation" in row:
                self._curves(row["step"], row["evaluation"])
            else:
                self._curves_of_step(row["step"], row)
        for record in kept:
            self.writer._get_file_writer().add_record(record)  # LogWriter has no method for a record as it is

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add a point to the training curves; before an evaluation, histograms too."""
        self._curves_of_step(step, metrics)
        if step % self.run.settings.evaluate.every == 0 or step == self.run.settings.train.steps:
            for tag, values in _histograms(self.run.model):
                self.writer.add_histogram(tag, values, step, buckets=BINS)

    def _curves_of_step(self, step: int, metrics: Mapping[str, float]) -> None:
        for name in ("loss", "learning_rate", "gradient_norm"):
            if name in metrics:  # a log may be damaged
                self.writer.add_scalar(f"train/{name}", metrics[name], step)
        if "tokens_per_second" in metrics and step % SPEED_EVERY == 0:
            self.writer.add_scalar("train/tokens_per_second", metrics["tokens_per_second"], step)

    def evaluation(self, step: int, metrics: Mapping[str, float], samples) -> None:
        """Add a point to the curves of the validation split, a few of its predictions, and images."""
        self._curves(step, metrics)
        for i, sample in enumerate(samples):
            text = f"{sample.source}  →  {sample.hypothesis}  (reference: {sample.reference})"
            self.writer.add_text(f"sample/{i}", text, step)
        self._images(step)
        self.writer.flush()  # what a killed process had not written could not be resumed from

    def _curves(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(f"valid/{name}", value, step)

    def _images(self, step: int) -> None:
        run = self.run
        if run.encoded["valid"]:
            example = run.encoded["valid"][0]
            for head, weights in enumerate(images.attention(run.model, run.codec, example)):
                self.writer.add_image(f"attention/last_layer_head_{head}", weights, step, dataformats="HW")
        for name, stack in run.model.stacks().items():
            rows = images.position(stack.encodings[0], run.settings.model.d_model)
            if rows is not None:
                self.writer.add_image(f"position/{name}", rows, step, dataformats="HW")

    def end(self, results: Mapping[str, object]) -> None:
        """Add the hyper-parameters and the metrics of the test split to VisualDL's table of runs. Without a test split,
        the table has the metrics of the validation split, whose curves exist already."""
        split = "test" if results["test"] else "valid"
        if results[split]:
            self.writer.add_hparams(_flat(self.run.recipe), [f"{split}/{name}" for name in results[split]])
        for name, value in results["test"].items():
            self.writer.add_scalar(f"test/{name}", value, int(results["steps"]))
        self.writer.close()


def _histograms(model) -> Iterator[tuple[str, np.ndarray]]:
    """(tag, values) for each layer, embedding and head: `weights/…`, and `gradients/…` as the last update used them,
    clipped. Of a layer with more than `MAX_VALUES` values, one in so many, always the same."""
    layers: dict[str, list] = {}
    for name, parameter in model.named_parameters():
        if not parameter.stop_gradient:
            layers.setdefault(_layer(name), []).append(parameter)
    for layer, parameters in layers.items():
        every = -(-sum(int(parameter.size) for parameter in parameters) // MAX_VALUES)
        tensors = {"weights": parameters, "gradients": [one.grad for one in parameters if one.grad is not None]}
        for kind, members in tensors.items():
            parts = [member.astype("float32").numpy().reshape(-1)[::every] for member in members]
            values = np.concatenate(parts) if parts else np.empty(0)
            values = values[np.isfinite(values)]
            if values.size:
                yield f"{kind}/{layer}", values


def _layer(name: str) -> str:
    """`encoder.layers.0.self_attention.query.weight` → `encoder.0`; `head.weight` → `head`."""
    parts = name.split(".")
    return f"{parts[0]}.{parts[2]}" if parts[1:2] == ["layers"] else parts[0]


def _flat(recipe: Mapping[str, object]) -> dict[str, str | int | float]:
    """The hyper-parameters of the sections `model` and `train`, named as `model/d_model`. VisualDL accepts numbers and
    strings, but no booleans; in its table, the cells of names with a dot or a bracket, which it reads as a path, are
    empty."""
    flat: dict[str, str | int | float] = {"variant": str(recipe["variant"]), "seed": int(recipe["seeds"][0])}
    for section in ("model", "train"):
        for key, value in recipe[section].items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            flat[f"{section}/{key}"] = value if number else _text(value)
    return flat


def _text(value: object) -> str:
    """`{encoder: batch}` as `encoder: batch`: columns are narrow."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_text(part)}" for key, part in value.items())
    return str(value)
