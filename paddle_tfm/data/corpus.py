"""A task's splits, read once into bounded memory, and their ids, encoded once for runs with the same codec."""

from __future__ import annotations

import hashlib
import json
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from paddle_tfm.data.codec import Codec, EncodedTexts
from paddle_tfm.errors import UserError
from paddle_tfm.protocols import SPLITS, Example, Excerpt
from paddle_tfm.recipe.plan import Plan

MAX_BYTES_IN_MEMORY = 64 << 20  # of a split; a larger one lies in a temporary file


class Texts(Sequence[Example]):
    """Examples in the order in which they were added: in memory up to MAX_BYTES_IN_MEMORY, in a temporary file beyond,
    so that a corpus may be larger than memory."""

    def __init__(self, examples: Iterable[Example] = ()):
        self._file = tempfile.SpooledTemporaryFile(max_size=MAX_BYTES_IN_MEMORY)  # noqa: SIM115 — closed with this object
        self._starts = array("q")
        self._end = 0
        for example in examples:
            self.add(example)

    def add(self, example: Example) -> bytes:
        """Append an example; returns its bytes, one line of JSON."""
        line = json.dumps(example if example.ends else [*example, False]).encode() + b"\n"
        self._file.seek(self._end)
        self._file.write(line)
        self._starts.append(self._end)
        self._end += len(line)
        return line

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, i: int) -> Example: ...

    @overload
    def __getitem__(self, i: slice) -> list[Example]: ...

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        self._file.seek(self._starts[i])
        return _example(self._file.readline())

    def __iter__(self) -> Iterator[Example]:
        for i in range(len(self)):
            yield self[i]


def _example(line: bytes) -> Example:
    source, target, labels, *ends = json.loads(line.decode())  # from bytes, `loads` would first guess their encoding
    return (Excerpt if ends else Example)(source, target, tuple(labels))


@dataclass
class Corpus:
    """The splits of a task, and a hash of each one's texts."""

    splits: Mapping[str, Sequence[Example]]
    fingerprint: dict[str, str]
    _learned: tuple[str, Codec, dict[str, EncodedTexts]] | None = field(default=None, repr=False)

    def encoded(self, plan: Plan) -> tuple[Codec, dict[str, EncodedTexts]]:
        """The codec learned from the training split, and the ids of all splits. The last ones are cached: the next run
        of a sweep mostly needs the same."""
        settings = plan.settings
        key = repr((settings.tokenizer, settings.vocabulary, settings.model.shape))
        if self._learned is None or self._learned[0] != key:
            self._learned = None  # frees the memory first
            codec = Codec.learn(plan, self.splits["train"])
            self._learned = key, codec, self.encode(codec)
        return self._learned[1:]

    def encode(self, codec: Codec) -> dict[str, EncodedTexts]:
        """The ids of all splits."""
        return {split: codec.encode_all(texts) for split, texts in self.splits.items()}


def load_corpus(plan: Plan, splits: Iterable[str] = SPLITS) -> Corpus:
    """Read splits of the recipe's task, each once.

    Raises:
        UserError: the data cannot be read or is not of `Example`s, or the training or validation split is empty.
    """
    task, name = plan.components["task"].build(), plan.components["task"].name
    texts, hashes = {}, {}
    for split in splits:
        texts[split], hashes[split] = Texts(), hashlib.sha256()
        examples = task.examples(split)
        for item in examples if isinstance(examples, Iterable) else [examples]:
            if not _is_example(item):
                raise UserError(
                    f"task '{name}': `examples` must give Example(source, target) of two texts, but the split "
                    f"'{split}' has {ascii(item)[:80]}"
                )
            hashes[split].update(texts[split].add(item))
        if not texts[split] and split != "test":
            raise UserError(f"task '{name}': the split '{split}' holds no example, but needs one")
    return Corpus(texts, {split: digest.hexdigest() for split, digest in hashes.items()})


def _is_example(item: object) -> bool:
    if not isinstance(item, Example) or not isinstance(item.labels, tuple):
        return False
    return all(isinstance(text, str) and _is_unicode(text) for text in (item.source, item.target, *item.labels))


def _is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8: half of a surrogate pair, which some escapes give, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
