"""What every variant gets as much of as the baseline: steps, unless a recipe says otherwise.

equal: tokens                       # as many target tokens of training: `train.steps` is solved for
equal: flops                        # as many floating-point operations of training (`model.size`), likewise
equal: seconds                      # as much time of steps, as measured before the training; no other run repeats it
equal: parameters                   # as many parameters: `model.d_ff` is solved for
equal: {parameters: model.d_model}  # or another whole number of the model
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from paddle_tfm.errors import Problem, unknown
from paddle_tfm.language import _
from paddle_tfm.recipe.merging import is_replaced, leaves
from paddle_tfm.recipe.yaml_lines import Origins

BUDGET = "train.steps"
SETTINGS = {"steps": "", "tokens": BUDGET, "flops": BUDGET, "seconds": BUDGET}
SETTINGS["parameters"] = "model.d_ff"  # budget → what is solved for it
# whose values change no tokens, no operations and no parameters, so that they may be tuned beside any equal budget
COSTLESS = (
    *("train.schedule", "train.optimizer", "train.label_smoothing", "train.clip_norm", "train.ema"),
    *("model.dropout", "model.embedding_dropout"),
)


class Equal(NamedTuple):
    """A budget by its name, and the setting that is solved for it; "" where there is nothing to solve."""

    budget: str
    setting: str


def parse(value: object) -> Equal:
    """What a recipe says of it.

    Raises:
        ValueError: it is of another form.
    """
    if isinstance(value, str):
        if value not in SETTINGS:
            raise ValueError(unknown("budget", value, SETTINGS))
        return Equal(value, SETTINGS[value])
    path = value.get("parameters") if isinstance(value, Mapping) and list(value) == ["parameters"] else None
    if not isinstance(path, str) or not path.startswith("model."):
        names = ", ".join(SETTINGS)
        text = _("must be one of {names}, or `{{parameters: model.d_ff}}` with a setting, but is {value!r}")
        raise ValueError(text.format(names=names, value=value))
    return Equal("parameters", path)


def of(data: Mapping[str, Any]) -> Equal:
    """That of a merged recipe; steps where it says nothing, or nothing sound."""
    try:
        return parse(data.get("equal") or "steps")
    except ValueError:
        return parse("steps")


def value_at(data: Mapping[str, Any], path: str) -> int | None:
    """The whole number at a dotted path; None where there is none."""
    value: Any = data
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def problems(
    variants: Mapping[str, tuple[dict, Origins]], data: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]]
) -> Iterator[Problem]:
    """Why a budget cannot be equal, as far as no text and no model is needed to know it.

    Args:
        runs: variant, as it is trained → its resolved recipe.
    """
    budget, setting = of(data)
    if not setting or not variants:
        return
    yield from _beside_tuning(data.get("tune"), budget, setting)
    if len(variants) == 1:
        yield Problem("equal", _("is for variants beside a baseline, but there is one variant; add `variants`"))
    baseline = str(data.get("baseline") or next(iter(variants)))
    for name, (overrides, _places) in variants.items():
        if name != baseline and any(is_replaced(setting, leaf) for leaf in leaves(overrides)):
            yield Problem(
                "equal",
                _("variant '{name}' sets {setting} itself, which equal {budget} solves for").format(
                    name=name, setting=setting, budget=budget
                ),
            )
    for name, settings in runs.items():
        if value_at(settings, setting) is None:
            yield Problem(
                "equal",
                _("solves for {setting}, which is no whole number of variant '{name}'").format(
                    setting=setting, name=name
                ),
            )
            return
    if isinstance(data.get("claims"), Mapping) and data["claims"] and budget == "seconds":
        yield Problem(
            "equal", _("seconds are not reproducible, so no claim can be judged by them; use flops or tokens")
        )


def _beside_tuning(tune: object, budget: str, setting: str) -> Iterator[Problem]:
    """What tuning would undo of an equal budget, which is solved before it."""
    if not isinstance(tune, Mapping):
        return
    if budget == "seconds":
        sentence = _(
            "seconds are measured before any training, with values that `tune` then changes; use flops or tokens"
        )
        yield Problem("equal", sentence)
        return
    space = tune.get("space")
    for path in space if isinstance(space, Mapping) else ():
        if not str(path).startswith(COSTLESS):
            sentence = _(
                "{budget} are solved before `tune` chooses {path}, which may change them; keep one of the two"
            ).format(budget=budget, path=path)
            yield Problem("equal", sentence)
    if tune.get("steps") and setting == BUDGET:
        sentence = _(
            "of all trials would be as many, and `equal: {budget}` gives each variant its own; leave it out"
        ).format(budget=budget)
        yield Problem("tune.steps", sentence)
