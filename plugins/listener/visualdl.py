"""A run's curves, samples and hyper-parameters for VisualDL."""

from __future__ import annotations

from collections.abc import Mapping

from visualdl import LogWriter

from paddle_tfm.train.logs import read_rows

SPEED_EVERY = 10  # steps between points of tokens/s, which varies much from step to step


class Board:
    """Writes `<run>/vdl`: training loss, learning rate, gradient norm and tokens/s by step, evaluation metrics, sample
    predictions as text, and at the end the hyper-parameters with their results.

    VisualDL shows only the newest file of a folder, so a resumed run writes its history again, from `metrics.jsonl`.
    """

    def __init__(self, run):
        folder = run.folder / "vdl"
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.glob("vdlrecords.*.log"):
            file.unlink()
        self.run = run
        self.writer = LogWriter(logdir=str(folder), display_name=run.name)
        for row in read_rows(run.folder / "metrics.jsonl"):
            if "evaluation" in row:
                self.evaluation(row["step"], row["evaluation"], [])
            else:
                self.step(row["step"], row)

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add a point to the training curves."""
        for name in ("loss", "learning_rate", "gradient_norm"):
            self.writer.add_scalar(f"train/{name}", metrics[name], step)
        if "tokens_per_second" in metrics and step % SPEED_EVERY == 0:
            self.writer.add_scalar("train/tokens_per_second", metrics["tokens_per_second"], step)

    def evaluation(self, step: int, metrics: Mapping[str, float], samples) -> None:
        """Add a point to the curves of the validation split, and a few of its predictions."""
        for name, value in metrics.items():
            self.writer.add_scalar(f"valid/{name}", value, step)
        for i, sample in enumerate(samples):
            text = f"{sample.source}  →  {sample.hypothesis}  (reference: {sample.reference})"
            self.writer.add_text(f"sample/{i}", text, step)

    def end(self, results: Mapping[str, object]) -> None:
        """Add the hyper-parameters and the metrics of the test split to VisualDL's table of runs. Without a test split,
        the table has the metrics of the validation split, whose curves exist already."""
        split = "test" if results["test"] else "valid"
        if results[split]:
            self.writer.add_hparams(_flat(self.run.recipe), [f"{split}/{name}" for name in results[split]])
        for name, value in results["test"].items():
            self.writer.add_scalar(f"test/{name}", value, int(results["steps"]))
        self.writer.close()


def _flat(recipe: Mapping[str, object]) -> dict[str, str | int | float]:
    """The hyper-parameters of the sections `model` and `train`, named as `model/d_model`. VisualDL accepts numbers and
    strings, but no booleans; in its table, the cells of names with a dot or a bracket, which it reads as a path, are
    empty."""
    flat: dict[str, str | int | float] = {"variant": str(recipe["variant"]), "seed": int(recipe["seeds"][0])}
    for section in ("model", "train"):
        for key, value in recipe[section].items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            flat[f"{section}/{key}"] = value if number else str(value)
    return flat
