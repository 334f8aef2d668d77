"""Where a recipe has components: the stacks of each shape of model, the sites of each kind, what a recipe says at one,
and every component that it names.

A value of the model section is a component for all sites, or a mapping of stacks or sublayers to such values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paddle_tfm.errors import unknown
from paddle_tfm.language import _
from paddle_tfm.recipe.sections.further_tests import task_specs

Component = str | dict
PerSite = str | dict
STACKS = ("encoder", "decoder")
SUBLAYERS = ("self", "cross", "feed_forward", "final")
# kinds of the model section that are chosen per site, with their sites: stack -> sublayers
PER_SITE: dict[str, dict[str, tuple[str, ...]]] = {
    "attention": {"encoder": ("self",), "decoder": ("self", "cross")},
    "norm": {"encoder": ("self", "feed_forward", "final"), "decoder": SUBLAYERS},
    "placement": {"encoder": ("self",), "decoder": ("self",)},  # one a layer, asked for at its first site
    "position": {"encoder": ("self",), "decoder": ("self", "cross")},
    "feed_forward": {"encoder": ("feed_forward",), "decoder": ("feed_forward",)},
}
# The shapes of a model: which stacks it has.
BOTH, DECODER_ONLY, ENCODER_ONLY = "encoder-decoder", "decoder-only", "encoder-only"


def shape(encoder_layers: object, decoder_layers: object) -> str:
    """The shape of a model of so many layers; `BOTH` where they are no numbers, or both 0, which is said elsewhere."""
    if encoder_layers == 0 and decoder_layers != 0:
        return DECODER_ONLY
    return ENCODER_ONLY if decoder_layers == 0 and encoder_layers != 0 else BOTH


def sites(kind: str, model_shape: str = BOTH) -> list[tuple[str, str]]:
    """(stack, sublayer) of all sites where a model of this shape has a component of this kind."""
    without = {DECODER_ONLY: ("encoder", "cross"), ENCODER_ONLY: ("decoder",)}.get(model_shape, ())
    return [
        (stack, sublayer)
        for stack, sublayers in PER_SITE[kind].items()
        for sublayer in sublayers
        if stack not in without and sublayer not in without
    ]


def at_site(kind: str, value: object, stack: str, sublayer: str) -> tuple[str, object]:
    """(sub-path, component) that a per-site value names for this site. `cross` falls back to the decoder's choice,
    except for positions: queries and keys of cross attention live in two sentences, so it has none (None) unless a
    recipe asks for one. None too where a model has no component of this kind.

    Raises:
        ValueError: the mapping says nothing about this site.
    """
    if (stack, sublayer) not in sites(kind):
        return "", None
    absent = kind == "position" and sublayer == "cross"  # until a key says otherwise
    subpath = ""
    while isinstance(value, Mapping) and _per_site(value):
        key = sublayer if sublayer in value else stack
        if key not in value and not absent:
            site = stack if sublayer in ("self", "final") else f"{stack}.{sublayer}"
            raise ValueError(_("says nothing about {site}; add `{stack}:`").format(site=site, stack=stack))
        if key not in value:
            break
        absent = absent and key != sublayer
        subpath, value = f"{subpath}.{key}", value[key]
    return ("", None) if absent else (subpath, value)


def refuse_unused(kind: str, value: PerSite, model_shape: str) -> None:
    """Refuse a choice for a site that a model of this shape does not have, or that another key decides.

    Raises:
        ValueError: (sentence, sub-path) of the first such choice, or that of `at_site`.
    """
    _refuse_misspelled(value)
    used = {at_site(kind, value, *site)[0] for site in sites(kind, model_shape)}
    elsewhere = {_subpath(kind, value, *site) for site in sites(kind)} - used
    for path in _choices(value):
        # What a whole stack would have, and what lies below it, may stand: an override spreads over both stacks.
        if path in used or path.removeprefix(".") in ("", *STACKS) or (path in elsewhere and path.count(".") > 1):
            continue
        if path in elsewhere and model_shape != BOTH:
            text = _("a model that is {shape} has no {kind} there; leave it out")
            raise ValueError(text.format(shape=model_shape, kind=kind), path)
        raise ValueError(_("a model has no {kind} there, or another key decides it").format(kind=kind), path)


def _refuse_misspelled(value: object, path: str = "") -> None:
    """Refuse a mapping of places in which one has an unknown name.

    Raises:
        ValueError: (sentence, sub-path); the nearest place is named.
    """
    if not isinstance(value, Mapping) or "name" in value:
        return
    places = (*STACKS, *SUBLAYERS) if not path else SUBLAYERS
    for key, item in value.items():
        if key not in (*STACKS, *SUBLAYERS):
            raise ValueError(unknown("place of a model", key, places), f"{path}.{key}")
        _refuse_misspelled(item, f"{path}.{key}")


def is_spelled(value: object) -> bool:
    """Whether each key of a mapping of places is the name of one."""
    try:
        _refuse_misspelled(value)
    except ValueError:
        return False
    return True


def _per_site(value: Mapping) -> bool:
    return bool(value) and "name" not in value and all(key in (*STACKS, *SUBLAYERS) for key in value)


def _choices(value: object, path: str = "") -> Iterator[str]:
    """The sub-paths at which a per-site value names a component."""
    if not isinstance(value, Mapping) or not _per_site(value):
        yield path
        return
    for key, item in value.items():
        yield from _choices(item, f"{path}.{key}")


def _subpath(kind: str, value: object, stack: str, sublayer: str) -> str:
    """The sub-path of `at_site`; "" where nothing is said about this site."""
    try:
        return at_site(kind, value, stack, sublayer)[0]
    except ValueError:
        return ""


def place(kind: str) -> str:
    """The dotted path at which a recipe names a component of this kind; of one that no recipe names, the option of
    `paddle-tfm run` that does, or the command that shows all of them."""
    if kind in ("task", "tokenizer", "search"):
        return kind
    if kind == "executor":
        return "--executor"
    if kind == "section":
        return "report"
    if kind == "dataset":
        return "task.dataset"
    if kind == "metric":
        return "evaluate.metrics"
    return f"train.{kind}" if kind in ("schedule", "optimizer") else f"model.{kind}"


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
