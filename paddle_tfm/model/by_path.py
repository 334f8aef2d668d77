"""Parameters by patterns of their paths: `train.freeze` and `train.rate_factors`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from paddle_tfm.errors import Problem, nearest
from paddle_tfm.language import _

if TYPE_CHECKING:
    from paddle_tfm.model.transformer import Transformer
    from paddle_tfm.recipe.settings import TrainSettings


def prepare(model: Transformer, train: TrainSettings) -> Transformer:
    """The model, of which a training changes what it shall: a frozen parameter gets no gradient and no moments, and
    where nothing before a layer is trained, its activations are not kept. The rate of each other parameter is
    multiplied by the factors of all patterns that its path fits. Call it once for a model."""
    for path, parameter in model.named_parameters():
        if any(fnmatchcase(path, pattern) for pattern in train.freeze):
            parameter.stop_gradient = True
        for pattern, factor in train.rate_factors.items():
            if fnmatchcase(path, pattern):
                parameter.optimize_attr["learning_rate"] *= factor
    return model


def problems(model: Transformer, train: TrainSettings) -> Iterator[Problem]:
    """The patterns that fit no parameter, and patterns that leave nothing to train."""
    paths = [path for path, _parameter in model.named_parameters()]
    places = [*((f"train.freeze[{i}]", pattern) for i, pattern in enumerate(train.freeze))]
    places += [(f"train.rate_factors.{pattern}", pattern) for pattern in train.rate_factors]
    for place, pattern in places:
        if not any(fnmatchcase(path, pattern) for path in paths):
            text = _("'{pattern}' fits the path of no parameter{hint} Paths begin with {parts}")
            hint = nearest(pattern, list(_patterns(paths))) or _(".")
            parts = ", ".join(dict.fromkeys(path.partition(".")[0] for path in paths))
            yield Problem(place, text.format(pattern=pattern, hint=hint, parts=parts))
    if paths and all(any(fnmatchcase(path, pattern) for pattern in train.freeze) for path in paths):
        yield Problem("train.freeze", _("freezes every parameter, so that nothing is left to train"))


def _patterns(paths: Iterable[str]) -> dict[str, None]:
    """What one may have meant: each path, and all below each of its parts."""
    patterns: dict[str, None] = {}
    for path in paths:
        parts = path.split(".")
        patterns |= dict.fromkeys(".".join(parts[:end]) + ".*" for end in range(1, len(parts)))
        patterns[path] = None
    return patterns
