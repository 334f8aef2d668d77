"""Beginning with the weights of another run: `train.from`, and `train.vocabulary` for its pieces.

Weights are carried over by name and shape. Rows of embeddings and columns of the head, each of which is of one piece,
are carried by that piece: a piece that the other run lacks begins as the mean of the pieces into which that run cuts
its text (Gee et al. 2022, arXiv:2402.09977). `train.redraw` draws some again: the control of an exchange that loses as
many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paddle_tfm.data.codec import Codec, EncodedTexts
from paddle_tfm.data.corpus import Corpus
from paddle_tfm.data.vocabulary import SPECIAL, UNKNOWN, Vocabulary
from paddle_tfm.errors import Problem, UserError
from paddle_tfm.language import _
from paddle_tfm.model.build import build
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Tokenizer
from paddle_tfm.randomness import generator
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.recipe.settings import Settings
from paddle_tfm.runs import checkpoint, manifest
from paddle_tfm.runs.carried import Pieces, Start
from paddle_tfm.runs.changes import gaps, was_and_is
from paddle_tfm.runs.folders import checkpoint_of, find_run, plan_of
from paddle_tfm.units import plural

SIZES = ("d_model", "d_ff", "max_length")  # of the model: where they differ, weights of one name have other shapes
OF_PIECES = ("shared", "symbols", "file")  # keys of `vocabulary` that say what a piece is
MORE_WORDS = 64  # of the model that shows which axes count pieces
LISTED = 3  # shapes in one sentence
SAMPLE = 1000  # training examples


@dataclass(frozen=True)
class Source:
    """Another run, whose weights a run begins with: its folder, its settings and the checkpoint."""

    folder: Path
    settings: Settings
    point: Path

    @classmethod
    def of(cls, plan: Plan) -> Source | None:
        """That which the recipe names, a run or one of its checkpoints; None where it names none.

        Raises:
            UserError: there is none, it has no whole checkpoint, or its recipe cannot be read.
        """
        if plan.settings.train.from_ is None:
            return None
        path = Path(plan.settings.train.from_)
        if (path / manifest.STATE).is_file():
            folder = path.resolve().parent.parent
            point = checkpoint_of(folder, path.resolve().name)
        else:
            folder = find_run(path)
            point = checkpoint_of(folder, "best")
        run = recipes.load_single(folder / "recipe.yaml")
        return cls(folder, Settings.model_validate(run.data), point)

    def codec(self, plan: Plan) -> Codec | None:
        """Its codec, for a run that cuts texts as it does; None where `train.vocabulary` is `replace`."""
        return None if plan.settings.train.vocabulary == "replace" else Codec.load(plan, self.folder / "codec")

    def carry(self, plan: Plan, codec: Codec, model: Transformer) -> Start:
        """Give `model` the weights that have a place in it."""
        digest = manifest.read(self.point)["files"][manifest.WEIGHTS]["sha256"]
        step = manifest.read_state(self.point).step
        start = Start(run=str(self.folder), checkpoint=self.point.name, step=step, weights=digest)
        start.settings = _other_settings(self.settings, plan.settings)
        rows = self._rows(plan, codec, start)
        sizes = len(codec.source_vocabulary), len(codec.target_vocabulary)
        axes = _axes_of_pieces(plan, model, sizes) if rows else {}
        arrays = checkpoint.load_arrays(self.point)
        start.source_numbers = sum(array.size for array in arrays.values())
        share, initial = plan.settings.train.redraw, dict[str, np.ndarray]()
        for name, tensor in model.state_dict().items():
            start.numbers += int(tensor.size)
            array = arrays.get(name)
            if array is not None and name in axes:
                array = _by_piece(array, axes[name], *rows["source" if name.startswith("source_") else "target"])
            dtype = str(tensor.dtype).removeprefix("paddle.")
            if array is None or [*array.shape] != [*tensor.shape] or array.dtype.name != dtype:
                start.drawn[name] = [*tensor.shape]
                continue
            if share:
                initial[name] = tensor.numpy()
            tensor.set_value(array)
            start.carried += int(tensor.size)
            del arrays[name]
        start.left_out = {name: [*array.shape] for name, array in arrays.items()}
        start.redrawn = _redraw(share, plan.run.seed, model, initial)
        return start

    def _rows(self, plan: Plan, codec: Codec, start: Start) -> dict[str, tuple[int, list[list[int]]]]:
        """side → how many pieces the other run has there, and of which of them each piece here is the mean; empty where
        all pieces are the same. Counts them."""
        if plan.settings.train.vocabulary == "keep":
            return {}
        old = Codec.load(plan_of(self.folder, plan.registry), self.folder / "codec")
        if old.vocabulary_hash() == codec.vocabulary_hash():
            return {}
        sides = {
            "source": (old.source, old.source_vocabulary, codec.source, codec.source_vocabulary),
            "target": (old.target, old.target_vocabulary, codec.target, codec.target_vocabulary),
        }
        for side, (_tokenizer, before, _other, now) in sides.items():
            kept = len(before.ids.keys() & now.ids.keys())
            start.pieces[side] = Pieces(kept=kept, added=len(now.ids) - kept, removed=len(before.ids) - kept)
        return {side: (len(each[1]), means(*each)) for side, each in sides.items()}


def _redraw(share: float, seed: int, model: Transformer, initial: Mapping[str, np.ndarray]) -> int:
    """Give that share of the numbers that were carried over their initial values back; which ones, depends on the seed.
    Returns how many."""
    ends = np.cumsum([array.size for array in initial.values()])
    number = round(share * int(ends[-1])) if len(ends) else 0
    if not number:
        return 0
    chosen = np.sort(generator(seed, "redraw").choice(ends[-1], number, replace=False, shuffle=False))
    tensors = model.state_dict()
    of_each = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    for (name, array), first, places in zip(initial.items(), [0, *ends], of_each):
        carried = tensors[name].numpy().ravel()
        carried[places - first] = array.ravel()[places - first]
        tensors[name].set_value(carried.reshape(array.shape))
    return number


def means(tokenizer: Tokenizer, before: Vocabulary, other: Tokenizer, now: Vocabulary) -> list[list[int]]:
    """For each piece of `now`, of which ids of `before` its row is the mean: its own, where it was a piece before; else
    those of the pieces into which `tokenizer` cuts its text, as `other` writes it; else of the unknown piece."""
    ids = [[i] for i in range(len(SPECIAL))]
    for piece in now.pieces[len(SPECIAL) :]:
        cut = [piece] if piece in before.ids else tokenizer.tokenize(other.detokenize([piece]))
        ids.append([before.ids[each] for each in cut if each in before.ids] or [UNKNOWN])
    return ids


def _by_piece(array: np.ndarray, axis: int, number: int, ids: Sequence[Sequence[int]]) -> np.ndarray | None:
    """The array whose entries along `axis` are the means of those that `ids` says; None where that axis does not count
    the `number` of pieces."""
    if array.shape[axis] != number:
        return None
    result = array.take([first for first, *_more in ids], axis)
    for i, several in enumerate(ids):
        if len(several) > 1:
            result[(slice(None),) * axis + (i,)] = array.take(several, axis).mean(axis)
    return result


def _axes_of_pieces(plan: Plan, model: Transformer, sizes: tuple[int, int]) -> dict[str, int]:
    """name → the first axis that grows with the vocabularies, which have these sizes; found by building the model with
    larger ones."""
    larger = build(plan.sound_model, *(size + MORE_WORDS for size in sizes)).state_dict()
    axes = {}
    for name, tensor in model.state_dict().items():
        grown = [i for i, (one, other) in enumerate(zip(tensor.shape, larger[name].shape)) if one != other]
        if grown:
            axes[name] = grown[0]
    return axes


def _other_settings(theirs: Settings, ours: Settings) -> list[str]:
    """In which settings the model differs from the other run's."""
    return was_and_is(gaps(({"model": theirs.model.model_dump()}, {}), ({"model": ours.model.model_dump()}, {})))


def preview(plan: Plan) -> Start | None:
    """What a run of this plan would begin with; None where that is nothing, or its pieces are yet to be learned.

    Raises:
        UserError: that run cannot be read.
    """
    source = Source.of(plan)
    if source is None or plan.settings.train.vocabulary != "keep":
        return None
    codec = Codec.load(plan, source.folder / "codec")
    sizes = len(codec.source_vocabulary), len(codec.target_vocabulary)
    return source.carry(plan, codec, build(plan.sound_model, *sizes, seed=plan.run.seed))


# ---------------------------------------------------------------------------------------------------- what is wrong


def problems(plan: Plan) -> Iterator[Problem]:
    """Why a run cannot begin with the run that its recipe names."""
    if plan.problems or plan.settings.train.from_ is None:
        return
    try:
        source = Source.of(plan)
        shapes = {} if source is None else checkpoint.shapes(source.point)
    except UserError as error:
        yield Problem("train.from", str(error))
        return
    if source is None:
        return
    theirs, ours = source.settings, plan.settings
    if theirs.model.shape != ours.model.shape:
        text = _("{run} is {theirs}, and this model is {ours}: a run of another kind has no weights for it")
        yield Problem("train.from", text.format(run=source.folder, theirs=theirs.model.shape, ours=ours.model.shape))
        return
    if ours.train.vocabulary != "replace":
        yield from _other_pieces(source, ours)
    yield from _other_sizes(source, plan, shapes)


def _other_pieces(source: Source, ours: Settings) -> Iterator[Problem]:
    """Settings by which pieces would be others than those of the weights, though as many."""
    theirs, ours_too = (
        {"tokenizer": each.tokenizer, "vocabulary": {key: getattr(each.vocabulary, key) for key in OF_PIECES}}
        for each in (source.settings, ours)
    )
    for gap in gaps((theirs, {}), (ours_too, {})):
        text = _(
            "{setting}, but the weights of {run} are of its pieces; write it as there, or `train.vocabulary=replace`, "
            "which learns other pieces"
        )
        yield Problem(gap.what, text.format(setting=was_and_is([gap])[0], run=source.folder))


def _other_sizes(source: Source, plan: Plan, shapes: Mapping[str, Sequence[int]]) -> Iterator[Problem]:
    """Weights of one name and another shape, where sizes of the model are to blame; and whether none fits."""
    model = build(plan.sound_model, MORE_WORDS, MORE_WORDS)
    axes = _axes_of_pieces(plan, model, (MORE_WORDS, MORE_WORDS))
    named = {name: [*tensor.shape] for name, tensor in model.state_dict().items() if name not in axes}
    common = [name for name in named if name in shapes]
    others = {name: shapes[name] for name in common if [*shapes[name]] != named[name]}
    sizes = [
        f"model.{key}" for key in SIZES if getattr(source.settings.model, key) != getattr(plan.settings.model, key)
    ]
    if others and sizes:
        text = _("{number} of {run} have another shape there: {listed}; weights are carried by name and shape")
        listed = [f"{name} {[*shape]}, {_('here')} {named[name]}" for name, shape in [*others.items()][:LISTED]]
        number, more = plural(len(others), "weight"), ["…"] * (len(others) > LISTED)
        yield Problem(sizes[0], text.format(number=number, run=source.folder, listed="; ".join([*listed, *more])))
    elif len(others) == len(common):
        yield Problem("train.from", _("no weight of {run} has a place in this model").format(run=source.folder))


def encoded(plan: Plan, corpus: Corpus) -> tuple[Source | None, Codec, dict[str, EncodedTexts]]:
    """The run that another begins with, if its recipe names one, its codec, and the ids of all splits.

    Raises:
        UserError: that run cannot be read, or most pieces of the training texts are none of it.
    """
    source = Source.of(plan)
    codec, texts = corpus.encoded(plan, None if source is None else source.codec(plan))
    if source is not None and plan.settings.train.vocabulary == "keep":
        _require_known(source, texts["train"])
    return source, codec, texts


def _require_known(source: Source, texts: EncodedTexts) -> None:
    ids: Iterable[int] = (i for each in texts[:SAMPLE] for i in (*each.source, *each.target))
    counts = Counter(i == UNKNOWN for i in ids)
    if 2 * counts[True] > counts.total():
        text = _(
            "train.from: {share}% of the pieces of the training texts are none of {run}; `train.vocabulary=extend` "
            "adds them, `replace` learns others"
        )
        raise UserError(text.format(share=100 * counts[True] // counts.total(), run=source.folder))
