"""Every component that a recipe names: its kind, the path, and what is said there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paddle_tfm.recipe.further_tests import task_specs
from paddle_tfm.recipe.sites import PER_SITE, at_site, is_spelled, shape, sites


def component_specs(data: Mapping) -> Iterator[tuple[str, str, object]]:
    """(kind, dotted path, spec) of every component of a run's data. What is missing or of a wrong form is left out:
    `validation` says so."""
    model, train, evaluate = (
        data[name] if isinstance(data.get(name), Mapping) else {} for name in ("model", "train", "evaluate")
    )
    metrics = evaluate.get("metrics")
    tokenizers = dict(tokenizer_specs(data.get("tokenizer")).values())
    specs = [
        ("task", "task", data.get("task")),
        *(("tokenizer", path, spec) for path, spec in tokenizers.items()),
        *model_components(model),
        *((kind, f"train.{kind}", train.get(kind)) for kind in ("optimizer", "schedule")),
        *(
            ("metric", f"evaluate.metrics[{i}]", spec)
            for i, spec in enumerate(metrics if isinstance(metrics, list) else [])
        ),
        *(("task", path, spec) for path, spec in task_specs(data)),
        ("search", "evaluate.search", evaluate.get("search")),
        ("search", "search", data.get("search")),
    ]
    return ((kind, path, spec) for kind, path, spec in specs if isinstance(spec, (str, Mapping)))


def model_components(model: Mapping) -> Iterator[tuple[str, str, object]]:
    """(kind, dotted path, spec) of every component that the model section names, per site where it says so."""
    model_shape = shape(model.get("encoder_layers"), model.get("decoder_layers"))
    for kind in PER_SITE:
        if not is_spelled(model.get(kind)):
            continue  # `validation` says so
        subpaths = set()
        for stack, sublayer in sites(kind, model_shape):
            try:
                subpath, spec = at_site(kind, model.get(kind), stack, sublayer)
            except ValueError:
                continue  # the structure is wrong, and said to be
            if spec is not None and subpath not in subpaths:
                subpaths.add(subpath)
                yield kind, f"model.{kind}{subpath}", spec
    yield from ((kind, f"model.{kind}", model.get(kind)) for kind in ("head", "initializer"))


def tokenizer_specs(tokenizer: object) -> dict[str, tuple[str, object]]:
    """side → (dotted path, spec): one tokenizer for both sides, or {source: …, target: …}."""
    if isinstance(tokenizer, Mapping) and "name" not in tokenizer:
        return {side: (f"tokenizer.{side}", tokenizer.get(side)) for side in ("source", "target")}
    return dict.fromkeys(("source", "target"), ("tokenizer", tokenizer))
