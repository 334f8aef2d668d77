"""`paddle-tfm evaluate RUN`: score a trained run, or anybody's translations of its test set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from paddle_tfm.cli import scores
from paddle_tfm.cli.common import console, create_registry, device_option, notes, plugin_option, use_device
from paddle_tfm.cli.lines import check_output
from paddle_tfm.cli.scores import QUARTERS
from paddle_tfm.errors import UserError

AT_LEAST_ONE = click.IntRange(min=1)
OF_BATCHES = "; and says what that changed."

search_option = click.option("--search", default=None, help="greedy, or {name: beam, size: 10}. Default: the recipe's.")
checkpoint_option = click.option(
    "--checkpoint", type=click.Choice(["best", "last"]), default="best", show_default=True, help="Which one to load."
)
engine_option = click.option(
    "--engine",
    type=click.Choice(["paddle_tfm", "ctranslate2", "auto"]),
    default="paddle_tfm",
    show_default=True,
    help="What decodes. ctranslate2 (needs the extra [ctranslate2]): about twice as fast on a CPU; the run is "
    "exported once into its folder, if its greedy outputs are the same. Its beam search ends as soon as 2 · `size` "
    "outputs are complete, so that some differ (docs/export.md: how many). auto: ctranslate2 where its search is the "
    "same (greedy), else paddle_tfm.",
)


@click.command(name="evaluate")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--split", type=click.Choice(["train", "valid", "test"]), help="Default: test.")
@click.option("--test", metavar="NAME", help="A further test of the recipe (evaluate.tests).")
@click.option("--task", metavar="{…}", help="Other texts: options of the task, {test_min_length: 13}.")
@click.option(
    "--max-length",
    type=click.IntRange(min=2),
    metavar="N",
    help="Instead of model.max_length, where every encoding of the model knows positions beyond that.",
)
@click.option("--batch", type=AT_LEAST_ONE, metavar="N", help=f"At most so many sentences a batch{OF_BATCHES}")
@click.option("--padding", type=AT_LEAST_ONE, metavar="N", help=f"So many columns of padding more{OF_BATCHES}")
@search_option
@engine_option
@checkpoint_option
@click.option(
    "--hypotheses",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Score these translations of the split instead, a line each, of any system.",
)
@click.option(
    "--buckets",
    is_flag=False,
    flag_value=QUARTERS,
    metavar="[5,10,15]",
    help="Scores by length: up to 5 words, 6 to 10, … Without numbers: four buckets of like size.",
)
@click.option(
    "--by",
    type=click.Choice(["source", "target"]),
    help="Whose length makes the buckets. Default: source, if there is one.",
)
@click.option("--json", "file", metavar="FILE|-", help="Write the scores as JSON; - is standard output.")
@click.option("--csv", "csv_file", metavar="FILE|-", help="The same as CSV: all examples, then each bucket.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where predictions go. Default: beside the run's own.",
)
@plugin_option
@device_option
def command(plugins, device, **options: Any) -> None:
    """Score the run in folder RUN on a split or on another test, and write its predictions beside it, or to --out.
    Scores are printed first: a folder that cannot be written costs none.

    \b
    Examples:
      paddle-tfm evaluate runs/reverse/default/seed-1
      paddle-tfm evaluate runs/quickstart/pointer/seed-1 --split valid --search "{name: beam, size: 10}"
      paddle-tfm evaluate runs/reverse --buckets 4,8 --by source --json scores.json
      paddle-tfm evaluate runs/reverse --hypotheses other-system.txt
      paddle-tfm evaluate runs/reverse --task "{test_min_length: 13, test_max_length: 14}"
      paddle-tfm evaluate runs/reverse --batch 1 --padding 20
    """
    wanted = Request(**options)
    wanted.require_sound()
    registry = create_registry(plugins)
    device = use_device(device)
    from paddle_tfm.cli.evaluation import Evaluation

    evaluation = Evaluation(wanted, registry, device)
    results, metrics = evaluation.results(), evaluation.metrics
    if not wanted.data_alone:
        scores.show(results, metrics)
    if file := evaluation.file():
        printer = notes() if wanted.data_alone else console()
        results["predictions"] = scores.write_beside(file, evaluation.predictions, printer)
    scores.write_files(results, metrics, wanted.file, wanted.csv_file)


@dataclass(frozen=True)
class Request:
    """The argument and the options of `evaluate`, by their names; its help says what each means."""

    run: Path
    split: str | None
    test: str | None
    task: str | None
    max_length: int | None
    batch: int | None
    padding: int | None
    search: str | None
    engine: str
    checkpoint: str
    hypotheses: Path | None
    buckets: str | None
    by: str | None
    file: str | None
    csv_file: str | None
    out: Path | None

    def require_sound(self) -> None:
        """Raises UserError where options contradict each other, or a file cannot be written."""
        for target, option in ((self.file, "--json"), (self.csv_file, "--csv"), (self.out, "--out")):
            if target is not None:
                check_output(str(target), None, option)
        if self.out is not None and self.hypotheses:
            raise UserError("--out is where predictions go, but --hypotheses brings them: use one of them")
        if self.edges is None and self.by:
            raise UserError("--by says whose length makes the buckets: add --buckets")
        if self.hypotheses and self.search:
            raise UserError("--search chooses how the run decodes, but --hypotheses brings its texts: use one of them")
        if (self.batch or self.padding) and (self.hypotheses or self.engine != "paddle_tfm"):
            option = "--hypotheses" if self.hypotheses else f"--engine {self.engine}"
            raise UserError(f"--batch and --padding are of our own engine's batches; leave {option} out")

    def require_no_source(self, folder: Path) -> None:
        """Raises UserError where an option needs a source, which the model of the run in `folder` does not read."""
        if self.search or self.by == "source" or self.engine == "ctranslate2":
            option = "--search" if self.search else "--by source" if self.by == "source" else "--engine ctranslate2"
            raise UserError(f"{option} needs a model that reads a source, but {folder} is decoder-only; leave it out")

    @property
    def edges(self) -> list[int] | None:
        """The ends of the buckets; empty: four of like size; None: no buckets. Raises UserError: these are none."""
        return scores.edges(self.buckets)

    @property
    def data_alone(self) -> bool:
        """Whether standard output is for data alone."""
        return "-" in (self.file, self.csv_file)
