"""What is done with lines: they are translated, or continued by a decoder-only run. Needs Paddle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddle_tfm.cli.common import warn
from paddle_tfm.cli.translate.lines import Progress, Write
from paddle_tfm.inference.alignment import AlignmentFolder, align
from paddle_tfm.inference.translate import Remarks, Translation
from paddle_tfm.protocols import Search
from paddle_tfm.train.run import Run

ONE_LINE = str.maketrans("\n\r", "  ")
ONE_CELL = str.maketrans("\n\r\t", "   ")


class Translating:
    """A line for each line, or of `nbest` and `scores` a table; alignments in `folder`, if there is one."""

    def __init__(
        self, run: Run, search: Search, nbest: int | None, scores: bool, folder: Path | None, layer: int | None,
        **options: Any,
    ):  # fmt: skip
        self.run, self.search, self.nbest, self.scores, self.layer = run, search, nbest, scores, layer
        self.options = options  # of `TranslateOptions`
        self.alignments = AlignmentFolder(folder, warn) if folder else None
        self.remarks = Remarks(run.model, run.codec, search)  # of all outputs

    def __call__(self, lines: list[str], before: int, write: Write, progress: Progress) -> None:
        """Translate a chunk of lines, and write the outputs."""
        outputs = self.run.hypotheses(
            lines, self.search, nbest=self.nbest or 1, first=before, progress=progress, **self.options
        )
        best = [of_line[0] for of_line in outputs]
        self.remarks.add(lines, best)
        if self.alignments is not None:
            tokens = self.options["max_tokens"]
            self.alignments.add(align(self.run.model, self.run.codec, lines, best, self.layer, tokens))
        write("".join(self._rows(outputs, before)))

    def _rows(self, outputs: Sequence[Sequence[Translation]], before: int) -> Iterator[str]:
        for number, of_line in enumerate(outputs, before + 1):
            for output in of_line:
                yield row(number, output, self.nbest, self.scores)


def row(number: int, output: Translation, nbest: int | None, scores: bool) -> str:
    """An output as a line: its text, or cells with a TAB between."""
    if nbest is None and not scores:
        return output.text.translate(ONE_LINE) + "\n"
    line = [] if nbest is None else [str(number)]
    columns = [f"{output.score:.4f}", f"{output.mean:.4f}"] if scores else []
    return "\t".join([*line, output.text.translate(ONE_CELL), *columns]) + "\n"


@dataclass
class Continuing:
    """Each line and what follows it, as it comes, at most `length` tokens; an empty line between two of them."""

    run: Run
    search: Search
    length: int
    decode: Callable[..., Any] | None

    def __call__(self, lines: list[str], before: int, write: Write, progress: Progress) -> None:
        """Continue a chunk of texts. A text is written with the first token after it, so that an error comes alone."""
        for number, prompt in enumerate(lines, before):
            unwritten = ("\n" if number else "") + prompt

            def on_text(part: str) -> None:
                nonlocal unwritten
                write(unwritten + part)
                unwritten = ""

            output = self.run.generate(
                prompt, self.length, self.search, number=number, on_text=on_text, decode=self.decode
            )
            on_text("" if (prompt + output.text).endswith("\n") else "\n")
            progress(1)
