"""A task's splits, read once into bounded memory, and their ids, encoded once for runs with the same codec."""

from __future__ import annotations

import hashlib
import json
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii as _quoted  # several times as fast as `dumps`
from typing import overload

import numpy as np

from paddle_tfm.data.codec import Codec, EncodedTexts
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.protocols import SPLITS, Example, Excerpt, Task
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.recipe.sections.further_tests import task_path
from paddle_tfm.units import AT

BLOCK = 256  # examples that are read at once where all are gone through
MAX_BYTES_IN_MEMORY = 64 << 20  # of a split; a larger one lies in a temporary file


class Texts(Sequence[Example]):
    """Examples in the order in which they were added: in memory up to MAX_BYTES_IN_MEMORY, in a temporary file beyond,
    so that a corpus may be larger than memory."""

    def __init__(self, examples: Iterable[Example] = ()):
        self._file = tempfile.SpooledTemporaryFile(max_size=MAX_BYTES_IN_MEMORY)  # noqa: SIM115 — closed with this object
        self._starts = array("q", [0])  # of all examples, and of the one to come
        for example in examples:
            self.add(example)

    def add(self, example: Example) -> bytes:
        """Append an example; returns it as one line of JSON."""
        source, target, labels, others = example
        rest = "" if example.ends else ", false"
        if others:
            rest += f", {json.dumps(others)}"
        line = f"[{_quoted(source)}, {_quoted(target)}, {json.dumps(labels) if labels else '[]'}{rest}]\n".encode()
        self._file.seek(self._starts[-1])
        self._starts.append(self._starts[-1] + self._file.write(line))
        return line

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, i: int) -> Example: ...

    @overload
    def __getitem__(self, i: slice) -> list[Example]: ...

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        i = range(len(self))[i]
        return next(self._read(i, i + 1))

    def __iter__(self) -> Iterator[Example]:
        for first in range(0, len(self), BLOCK):
            yield from self._read(first, min(first + BLOCK, len(self)))

    def _read(self, first: int, end: int) -> Iterator[Example]:
        """Those from number `first` to before `end`, which are read at once."""
        start, stop = self._starts[first], self._starts[end]
        self._file.seek(start)
        block = self._file.read(stop - start).rstrip().replace(b"\n", b",")  # within a line stands no "\n"
        for source, target, labels, *rest in json.loads(b"[%b]" % block):
            others = rest.pop() if rest and rest[-1] else ()
            yield (Excerpt if rest else Example)(source, target, tuple(labels), tuple(others))


@dataclass
class Corpus:
    """The splits of a task, those of further tests with texts of their own (`test@name`) among them; a hash of each
    one's texts; of each but the training split how many `texts` it has, and how many of its `sources` and `pairs` (of
    texts alone no pairs) the training split has too; what the tasks remark on their files; and how many examples each
    option of a task (`task.filters.ratio=3.0`) left out."""

    splits: Mapping[str, Sequence[Example]]
    fingerprint: dict[str, str]
    in_training: dict[str, dict[str, int]] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    _learned: tuple[str, Codec, dict[str, EncodedTexts]] | None = field(default=None, repr=False)

    def encoded(self, plan: Plan, old: Codec | None = None) -> tuple[Codec, dict[str, EncodedTexts]]:
        """The codec learned from the training split, and the ids of all splits. The last ones are cached: the next run
        of a sweep mostly needs the same.

        Args:
            old: the codec of the run that this one begins with, which is kept or, as `train.vocabulary` says, extended.
        """
        settings = plan.settings
        origin = settings.train.from_, settings.train.vocabulary
        key = repr((settings.tokenizer, settings.vocabulary, settings.model.shape, origin))
        if self._learned is None or self._learned[0] != key:
            self._learned = None  # frees the memory first
            keeps = old is not None and settings.train.vocabulary == "keep"
            codec = old if old is not None and keeps else Codec.learn(plan, self.splits["train"], old)
            self._learned = key, codec, self.encode(codec)
        return self._learned[1:]

    def encode(self, codec: Codec) -> dict[str, EncodedTexts]:
        """The ids of all splits."""
        return {split: codec.encode_all(texts) for split, texts in self.splits.items()}


def load_corpus(plan: Plan, splits: Iterable[str] | None = None) -> Corpus:
    """Read splits of the recipe's task, each once. None: all, and those of its further tests.

    Raises:
        UserError: the data cannot be read or is not of `Example`s; the training or validation split, or that of a
            further test, is empty; the training split has several references, or examples of a split have more than
            others.
    """
    splits = _all_splits(plan) if splits is None else list(splits)
    texts, hashes, keys, remarks = {}, {}, {}, {}
    others, dropped = {"train": 0}, dict[str, int]()  # split → references beside the first
    tasks: dict[str, Task] = {}
    for split in splits:
        of_task, _at, test = split.partition(AT)
        path = task_path(test) if test else "task"
        component = plan.components[path]
        task = tasks[test] = tasks.get(test) or component.build()
        name = component.name
        texts[split], hashes[split], keys[split] = Texts(), hashlib.sha256(), (array("q"), array("q"))
        examples = task.examples(of_task)
        for item in examples if isinstance(examples, Iterable) else [examples]:
            if not _is_example(item):
                text = _(
                    "task '{name}': `examples` must give Example(source, target) of two texts, but the split "
                    "'{split}' has {item}"
                )
                raise UserError(text.format(name=name, split=split, item=ascii(item)[:80]))
            if len(item.others) != (needed := others.setdefault(split, len(item.others))):
                text = _(
                    "task '{name}': example {number} of the split '{split}' has {here} references, but must have "
                    "{needed}: a training pair has one, and those of a test have equally many"
                )
                numbers = {"number": len(texts[split]) + 1, "here": len(item.references), "needed": needed + 1}
                raise UserError(text.format(name=name, split=split, **numbers))
            hashes[split].update(texts[split].add(item))
            keys[split][0].append(hash(item.source or item.target))  # eight bytes: a corpus may be large
            if item.source:
                keys[split][1].append(hash(item[:2]))
        if not texts[split] and split != "test":
            text = _("task '{name}': the split '{split}' holds no example, but needs one")
            raise UserError(text.format(name=name, split=split))
        remarks.update(dict.fromkeys(task.remarks()))  # a file of which two splits are read says it once
        dropped |= {f"{path}.{option}": number for option, number in task.dropped().items()}
    if "test" in texts and not texts["test"]:
        _require_own_texts(plan)
    fingerprint = {split: each.hexdigest() for split, each in hashes.items()}
    return Corpus(texts, fingerprint, _in_training(keys), [*remarks], dropped)


def _all_splits(plan: Plan) -> list[str]:
    """What a run needs: the splits of its task, and the texts of its further tests."""
    return list(dict.fromkeys([*SPLITS, *(test.texts(name) for name, test in plan.settings.evaluate.tests.items())]))


def _require_own_texts(plan: Plan) -> None:
    """Raises UserError where a further test is of the test split, but the task has none."""
    for name, test in plan.settings.evaluate.tests.items():
        if test.texts(name) == "test":
            text = _(
                "evaluate.tests.{name} is of the test split, but task '{task}' has none; add `split: valid`, or "
                "another `task`"
            )
            raise UserError(text.format(name=name, task=plan.components["task"].name))


def _in_training(keys: dict[str, tuple[array, array]]) -> dict[str, dict[str, int]]:
    """Of each other split: how many of its sources (targets, where there are none), and pairs, the training split has.

    Args:
        keys: split → hashes of its sources, and of its pairs.
    """
    trained = [np.sort(np.frombuffer(each, np.int64)) for each in keys.pop("train", ())]
    return {split: _counted(of_split, trained) for split, of_split in keys.items() if trained and of_split[0]}


def _counted(of_split: Sequence[array], trained: Sequence[np.ndarray]) -> dict[str, int]:
    counts = {"texts": len(of_split[0])}
    for what, each, known in zip(("sources", "pairs"), of_split, trained):
        if each and known.size:
            wanted = np.frombuffer(each, np.int64)
            places = np.searchsorted(known, wanted).clip(max=known.size - 1)
            counts[what] = int((known[places] == wanted).sum())
    return counts


def _is_example(item: object) -> bool:
    if not isinstance(item, Example) or not all(isinstance(each, tuple) for each in item[2:]):
        return False
    return all(isinstance(text, str) for text in (item.source, *item.references, *item.labels))
