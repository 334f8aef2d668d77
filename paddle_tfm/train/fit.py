"""Whether the texts of a run fit its model, and how far its outputs reach: before it is trained, and where it is
scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from paddle_tfm.caveats import Reach, beside, looks_cut, seldom
from paddle_tfm.data.codec import EncodedTexts
from paddle_tfm.data.shapes import check_padding, check_texts
from paddle_tfm.errors import UserError
from paddle_tfm.language import _, enumerated
from paddle_tfm.protocols import Prediction, Search
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.recipe.sites import BOTH
from paddle_tfm.search.decoding import max_length
from paddle_tfm.units import AT, metric_name

SAMPLE = 1000  # training examples that are looked at


def require_fit(plan: Plan, encoded: Mapping[str, EncodedTexts]) -> None:
    """The texts that are there can be learned from, and scored.

    Raises:
        UserError: what `check_texts` and `check_padding` raise, or that most references of a split or of a further test
            are longer than any output of the model may be: such a score is of that bound alone.
    """
    model = plan.settings.model
    for split, texts in encoded.items():
        check_texts(model, split, texts)
    for name, test in plan.settings.evaluate.tests.items():
        if test.texts(name) in encoded:  # not all are read where only some are asked for
            check_padding(test.max_length or model.max_length, name, test.padding, encoded[test.texts(name)])
    for label, reach in reaches(plan, encoded):
        if 2 * (reach.beyond - reach.by_search) > reach.texts:  # the search can still be changed after the training
            raise UserError(beside(label, reach.sentences(label.partition(AT)[2])[0]))


def reaches(plan: Plan, encoded: Mapping[str, EncodedTexts]) -> Iterator[tuple[str, Reach]]:
    """(a split, or `test@name`, how far its references can be reached), of those that are there."""
    settings, longest = plan.settings, plan.settings.model.max_length
    searches = dict.fromkeys(("evaluate.search", "search"))
    if settings.model.shape == BOTH and any(part.build().needs_search for part in plan.metrics().values()):
        searches = {path: plan.components[path].build() for path in searches}
    for split, path in (("valid", "evaluate.search"), ("test", "search")):
        if split in encoded:
            yield split, reach_of(longest, searches[path], encoded[split])
    for name, test in settings.evaluate.tests.items():
        if test.texts(name) in encoded:
            texts = encoded[test.texts(name)]
            yield test.label(name), reach_of(test.max_length or longest, searches["search"], texts)


def remarks(plan: Plan, encoded: Mapping[str, EncodedTexts]) -> list[str]:
    """What a user should know of these texts before the training."""
    first = encoded["train"][:SAMPLE]
    return [
        *encoded["train"].codec.remarks(),
        *looks_cut([each.text for each in first]),
        *_of_first_references(plan, encoded),
        *seldom((each.source, each.target) for each in encoded["train"]),
        *(
            beside(label, sentence)
            for label, reach in reaches(plan, encoded)
            for sentence in reach.sentences(label.partition(AT)[2])
        ),
    ]


def _of_first_references(plan: Plan, encoded: Mapping[str, EncodedTexts]) -> Iterator[str]:
    """A sentence for each split with several references: what compares with the first of them alone."""
    single = [name for name, part in plan.metrics().items() if not part.build().several_references]
    for split, texts in encoded.items():
        if texts and (number := len(texts[0].example.references)) > 1:
            text = _("{split} has {number} references for each source; {metrics} take the first alone")
            metrics = enumerated(map(metric_name, ["loss", *single]))
            yield text.format(split=split, number=number, metrics=metrics)


def reach_of(
    longest: int, search: Search | None, examples: EncodedTexts, predictions: Sequence[Prediction] = ()
) -> Reach:
    """How far references reach, and outputs where there are some.

    Args:
        longest: model.max_length. search: None where texts are scored as they are, without one. predictions: none, or
            one of each example. One as long as an output may be is taken as cut, unless it is the reference.
    """
    reach = Reach(most=longest - 1)
    outputs: Iterable[Prediction | None] = predictions or [None] * len(examples)
    for (source, target), output in zip((examples.lengths - 1).tolist(), outputs):
        if search is None:
            reach.add(max(source, target))
        elif output is None:
            reach.add(source, max_length(longest, search, source), reference=target)
        else:
            is_right = output.hypothesis_pieces == output.reference_pieces
            reach.add(source, max_length(longest, search, source), len(output.hypothesis_pieces), target, is_right)
    return reach
