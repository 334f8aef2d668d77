"""What a user wants of `paddle-tfm evaluate`: its argument and options, and what contradicts among them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paddle_tfm.cli import scores
from paddle_tfm.cli.lines import check_output
from paddle_tfm.errors import UserError


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
