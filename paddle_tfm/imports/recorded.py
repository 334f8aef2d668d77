"""Outputs that a model's own toolkit wrote: where they lie, and whether the imported model writes the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from paddle_tfm.data.codec import Codec, Encoded
from paddle_tfm.data.lines import lines
from paddle_tfm.data.vocabulary import EOS
from paddle_tfm.errors import UserError
from paddle_tfm.export.proof import NOISE, gap
from paddle_tfm.imports.marian import marian_search
from paddle_tfm.language import _
from paddle_tfm.predictions import squeezed
from paddle_tfm.protocols import Example, Hypothesis, Search
from paddle_tfm.registry import Registry
from paddle_tfm.search.decoding import decode_all
from paddle_tfm.train.evaluate import log_probs
from paddle_tfm.train.run import Run

# NAME.greedy and NAME.beam6-normalize0.6, beside the source NAME.en; with .pieces where they are cut
NAMED = re.compile(r"(?:(.+)\.)?(?:greedy|beam(\d+)(?:-normalize(\d+(?:\.\d+)?))?)(?:\.[a-z]+)?")
PIECES = ".pieces"
MOST = 10_000  # sentences that are compared


class Recorded(NamedTuple):
    """A file of sources, one of outputs, and the search that wrote them, as recipes write it; None: the run's own."""

    source: Path
    output: Path
    search: dict[str, Any] | None

    @classmethod
    def of(cls, source: Path, output: Path) -> Recorded:
        """Of two files: the search is what the second one's name says."""
        match = NAMED.fullmatch(output.name)
        if match is None:
            return cls(source, output, None)
        return cls(source, output, marian_search(int(match[2] or 1), float(match[3] or 0.0)))


def recorded_beside(folder: Path) -> Iterator[Recorded]:
    """The outputs beside a model whose names are NAMED, greedy ones first, each with its source."""
    for output in sorted(folder.iterdir(), key=lambda path: (".greedy" not in path.name, path.name)):
        if (match := NAMED.fullmatch(output.name)) is None or match[1] is None:
            continue
        texts = [path for path in sorted(folder.glob(f"{match[1]}.*")) if not NAMED.fullmatch(path.name)]
        plain = [path for path in texts if path.suffix != PIECES]
        sources = [path for path in plain if path.with_name(path.name + PIECES) in texts] or plain or texts
        if len(sources) == 1:
            yield Recorded.of(sources[0], output)


def read_lines(file: Path) -> list[str]:
    """The first lines of a file, at most MOST."""
    return [line.rstrip("\r\n") for line in islice(lines(file), MOST)]


def lines_of(recorded: Recorded) -> tuple[list[str], list[str]]:
    """Sources and outputs as their files hold them.

    Raises:
        UserError: they are not as many, or none.
    """
    sources, outputs = read_lines(recorded.source), read_lines(recorded.output)
    if len(sources) != len(outputs) or not sources:
        text = _("{output} has {number} lines, and {source} {sources}: one each")
        numbers = {"number": f"{len(outputs):,}", "sources": f"{len(sources):,}"}
        raise UserError(text.format(output=recorded.output, source=recorded.source, **numbers))
    return sources, outputs


def texts_of(recorded: Recorded, codec: Codec) -> tuple[list[str], list[str]]:
    """Sources and outputs as texts, where files of pieces are joined. Raises as `lines_of`."""
    sources, outputs = lines_of(recorded)
    if recorded.source.suffix == PIECES:
        sources = [codec.source.detokenize(line.split()) for line in sources]
    if recorded.output.suffix == PIECES:
        outputs = [codec.text(line.split()) for line in outputs]
    return sources, outputs


class Difference(NamedTuple):
    """An output that is another: its line, both texts, and how much more probable ours is to the model in nats: its
    first other token, or of a beam search the whole output by its penalty."""

    line: int
    ours: str
    theirs: str
    nats: float


class Outcome(NamedTuple):
    """What a comparison found. `ties`: of the `different`, those that are equally probable (`NOISE`)."""

    source: str
    output: str
    search: dict[str, Any]
    sentences: int
    same: int
    ties: int
    largest_tie: float
    different: list[Difference]

    def sentence(self) -> str:
        """What it says, for a person."""
        text = _("{output}: {same} of {sentences} outputs the same")
        said = text.format(output=Path(self.output).name, same=self.same, sentences=self.sentences)
        if self.ties:
            tie = _(", {number} with a tie of up to {most} nats")
            said += tie.format(number=self.ties, most=f"{self.largest_tie:.1g}")
        others = len(self.different) - self.ties
        return said + (_(", {number} others").format(number=others) if others else "")


def compare(run: Run, registry: Registry, recorded: Recorded) -> Outcome:
    """Whether a run writes what is recorded. Empty lines are left out: there is nothing to read.

    Raises:
        UserError: the files do not fit each other, or cannot be read.
    """
    of_recipe = run.recipe["search"] if recorded.search is None else recorded.search
    search: Search = registry.build("search", of_recipe)
    sources, outputs = lines_of(recorded)
    is_cut = recorded.source.suffix == PIECES
    encoded = [(i, _encoded(run.codec, line, is_cut)) for i, line in enumerate(sources) if line.strip()]
    encoded = [(i, example) for i, example in encoded if len(example.source) <= run.model.max_length]
    rows, examples = [i for i, _example in encoded], [example for _i, example in encoded]
    hypotheses = [several[0] for several in decode_all(run.model, examples, search, wanted=1)]
    is_cut = recorded.output.suffix == PIECES
    theirs = [outputs[i].split() if is_cut else run.codec.target.tokenize(outputs[i]) for i in rows]
    different = []
    for i, example, ours, pieces in zip(rows, examples, hypotheses, theirs):
        own = run.codec.pieces(ours.ids)
        own_text = squeezed(run.codec.text(own))
        if own == pieces if is_cut else own_text == squeezed(outputs[i]):
            continue
        ids = run.codec.target_vocabulary.encode(pieces)
        nats = _nats(run, search, example, ours, ids)
        different.append(Difference(i + 1, own_text, squeezed(run.codec.text(pieces)), nats))
    ties = [each.nats for each in different if abs(each.nats) < NOISE]
    named = (
        str(recorded.source),
        str(recorded.output),
        dict(of_recipe) if isinstance(of_recipe, dict) else {"name": of_recipe},
    )
    return Outcome(
        *named, len(rows), len(rows) - len(different), len(ties), max(map(abs, ties), default=0.0), different
    )


def _encoded(codec: Codec, line: str, is_cut: bool) -> Encoded:
    example = codec.encode(Example(line, ""))
    if not is_cut:
        return example
    ids = [*codec.source_vocabulary.encode(line.split()), EOS]
    return example._replace(source=ids, copy=ids, extra=())


def _nats(run: Run, search: Search, example: Encoded, ours: Hypothesis, theirs: Sequence[int]) -> float:
    if search.nbest == 1:
        return gap(run.model, example, ours.ids, list(theirs))
    scores = []
    for ids in (ours.ids, theirs):
        forced = example._replace(target=[*ids, EOS], target_copy=[*ids, EOS])
        penalty = getattr(search, "penalty", lambda length: 1.0)
        scores.append(log_probs(run.model, [forced])[0] / penalty(len(ids) + 1))
    return scores[0] - scores[1]
