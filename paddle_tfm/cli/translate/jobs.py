"""What is done with lines: they are translated, or continued by a decoder-only run. Needs Paddle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddle_tfm.cli.common import warn
from paddle_tfm.cli.translate.lines import Beside, Progress, Write
from paddle_tfm.data.vocabulary import UNKNOWN
from paddle_tfm.inference.alignment import AlignmentFolder, align
from paddle_tfm.inference.terms import Terms
from paddle_tfm.inference.translate import Remarks, Translation
from paddle_tfm.language import _
from paddle_tfm.protocols import Example, Search
from paddle_tfm.train.evaluate import log_probs
from paddle_tfm.train.run import Run

ONE_LINE = str.maketrans("\n\r", "  ")
ONE_CELL = str.maketrans("\n\r\t", "   ")


class Translating:
    """A line for each line, or of `nbest` and `scores` a table; alignments in `folder`, if there is one."""

    def __init__(
        self, run: Run, search: Search, nbest: int | None, scores: bool, folder: Path | None, layer: int | None,
        prefixes: Beside | None, terms: Terms | None, **options: Any,
    ):  # fmt: skip
        self.run, self.search, self.nbest, self.scores, self.layer = run, search, nbest, scores, layer
        self.prefixes, self.terms, self.with_terms = prefixes, terms, 0  # the last: lines
        self.options = options  # of `TranslateOptions`
        self.alignments = AlignmentFolder(folder, warn) if folder else None
        self.of_outputs = Remarks(run.model, run.codec, search)

    def __call__(self, lines: list[str], before: int, write: Write, progress: Progress) -> None:
        """Translate a chunk of lines, and write the outputs."""
        options = {"nbest": self.nbest or 1, "first": before, "progress": progress, **self.options}
        if self.prefixes is not None:
            options["prefix"] = self.prefixes.take(len(lines))
        if self.terms is not None:
            required = [self.terms.required(line) for line in lines]
            self.with_terms += sum(map(bool, required))
            options["required"] = required
        outputs = self.run.hypotheses(lines, self.search, **options)
        best = [of_line[0] for of_line in outputs]
        self.of_outputs.add(lines, best)
        if self.alignments is not None:
            tokens = self.options["max_tokens"]
            self.alignments.add(align(self.run.model, self.run.codec, lines, best, self.layer, tokens))
        write("".join(self._rows(outputs, before)))

    def remarks(self) -> Iterable[str]:
        """What somebody should know at the end."""
        if self.terms is not None and not self.with_terms:
            yield _("--terms: no line holds any of the terms")
        yield from self.of_outputs.sentences()

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


class Scoring:
    """The log-probability of a given target for each line, in nats, that of its end token included; with `scores` after
    the target, and with its mean a token."""

    def __init__(self, run: Run, others: Sequence[Run], targets: Beside, scores: bool, max_tokens: int):
        self.run, self.targets, self.scores = run, targets, scores
        self.max_tokens, self.others = max_tokens, [other.model for other in others]
        self.unknown = self.pieces = 0  # of all targets

    def __call__(self, lines: list[str], before: int, write: Write, progress: Progress) -> None:
        """Score the targets of a chunk of lines."""
        targets, model = self.targets.take(len(lines)), self.run.model
        examples = [self.run.codec.encode(Example(*pair)) for pair in zip(lines, targets)]
        for example in examples:
            ids = example.target_copy if model.head.extends_vocabulary else example.target
            self.unknown += ids.count(UNKNOWN)
            self.pieces += len(ids) - 1  # without the end token
        rows, log_likelihoods = [], log_probs(model, examples, self.max_tokens, others=self.others)
        for target, example, score in zip(targets, examples, log_likelihoods):
            output = Translation(target, ids=tuple(example.target[:-1]), score=score)
            rows.append(row(0, output, None, True) if self.scores else f"{score:.4f}\n")
        write("".join(rows))
        progress(len(lines))

    def remarks(self) -> Iterable[str]:
        """What somebody should know at the end."""
        if self.unknown:
            text = _("{unknown} of {pieces} target pieces are unknown to the model, and were scored as <unk>")
            yield text.format(unknown=f"{self.unknown:,}", pieces=f"{self.pieces:,}")


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

    def remarks(self) -> Iterable[str]:
        """Nothing."""
        return ()
