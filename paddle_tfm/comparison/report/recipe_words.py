"""Recipes and data in words, for reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from paddle_tfm.language import _, counted
from paddle_tfm.recipe.differences import ABSENT

WORDS = {"None": "none", "True": "yes", "False": "no"}
PARTS = ("attention", "norm", "placement", "position", "feed_forward", "head", "initializer")
SPLITS = {"train": "training", "valid": "validation", "test": "test"}


def component(value: object) -> str:
    """A value of a recipe: `cosine (peak 0.002, warmup 100)`."""
    if value is ABSENT:
        return "–"
    if isinstance(value, Mapping) and "name" in value:
        options = ", ".join(f"{key} {component(item)}" for key, item in value.items() if key != "name")
        return f"{value['name']} ({options})" if options else str(value["name"])
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {component(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(component, value))
    if isinstance(value, float):
        return f"{value:g}"
    return WORDS.get(str(value), str(value))


def data(about: Mapping) -> str:
    """How many examples there are, how long they are, and how many pieces there are to write them with."""
    examples, length, vocabulary = (about.get(name) or {} for name in ("examples", "mean_length", "vocabulary"))
    parts = []
    if examples:
        counts = [f"{count:,} {_(SPLITS.get(split, split))}" for split, count in examples.items() if count]
        parts.append(_("{counts} examples").format(counts=_(", ").join(counts)))
    if length:
        both, one = (
            _("{source} pieces to {target} on average, end tokens included"),
            _("{target} pieces on average, end tokens included"),
        )
        text = both if length["source"] > 1 else one  # a source of 1 is its end alone
        parts.append(text.format(source=f"{length['source']:g}", target=f"{length['target']:g}"))
    if vocabulary:
        sizes = list(dict.fromkeys(vocabulary.values()))
        parts.append(_("vocabulary of {sizes} pieces").format(sizes=_(" and ").join(f"{size:,}" for size in sizes)))
    return " · ".join(parts)


def pairs(samples: Sequence[tuple[str, str]]) -> str:
    """Sources and what they become, as an HTML list."""
    rows = ""
    for source, target in samples:
        left = f'<span dir="auto">{escape(source)}</span>' if source.strip() else ""
        rows += f'<li>{left}<span dir="auto">{escape(target)}</span></li>'
    return f'<ul class="pairs">{rows}</ul>' if rows else ""


def model(settings: Mapping) -> str:
    """The shape of a model and its parts."""
    if not settings:
        return ""
    encoder, decoder = settings.get("encoder_layers"), settings.get("decoder_layers")
    if encoder == 0 or decoder == 0:
        stacks = counted(int(encoder or decoder or 0), "encoder layer" if encoder else "decoder layer")
    else:
        stacks = _("{encoder} encoder and {decoder} decoder layers").format(encoder=encoder, decoder=decoder)
    shape = _("{stacks}, d_model {d_model}, {num_heads} heads, d_ff {d_ff}")
    shape = shape.format(stacks=stacks, **{key: settings.get(key) for key in ("d_model", "num_heads", "d_ff")})
    parts = [f"{name.replace('_', '-')} {component(settings[name])}" for name in PARTS if name in settings]
    return " · ".join([shape, f"dropout {component(settings.get('dropout'))}", *parts])


def training(settings: Mapping) -> str:
    """The budget of a training, and what stands beside it."""
    if not settings:
        return ""
    text = _("{steps} steps of at most {tokens} target tokens")
    parts = [text.format(steps=f"{settings.get('steps'):,}", tokens=f"{settings.get('max_tokens'):,}")]
    parts += [f"{name} {component(settings[name])}" for name in ("optimizer", "schedule") if name in settings]
    if settings.get("batches") == "mixed":
        parts.append(_("batches of texts of all lengths"))
    if settings.get("accumulate", 1) > 1:
        parts.append(_("{number} batches a step").format(number=settings["accumulate"]))
    for name in ("label_smoothing", "clip_norm", "max_ratio", "r_drop", "ema", "average"):
        if settings.get(name):
            parts.append(f"{name.replace('_', ' ')} {component(settings[name])}")
    return " · ".join(parts)


def described(
    recipe: Mapping,
    summaries: Iterable[str],
    about: Mapping,
    samples: Sequence[tuple[str, str]],
    size: str,
    trained: str = "",
) -> list[tuple[str, str]]:
    """What was trained, each fact with its name, as HTML: `summaries` are what recipes say of themselves, `samples`
    examples of the task; `trained` is what the budget is called, where it is not the training."""
    said = [component(recipe.get("task", "")), *(f"“{summary}”" for summary in summaries)]
    return [
        (_("task"), "<br>".join(escape(text) for text in said if text)),
        (_("data"), escape(data(about))),
        (_("for example"), pairs(samples)),
        (_("tokenizer"), escape(component(recipe.get("tokenizer", "")))),
        (_("model"), escape(model(recipe.get("model") or {}))),
        (_("size"), escape(size)),
        (trained or _("training"), escape(training(recipe.get("train") or {}))),
        (_("output by"), escape(component(recipe.get("search", "")))),
    ]
