"""Whether runs differ in what they should share: those of one variant in nothing beside their seeds, and variants in
nothing beside what makes them variants."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from paddle_tfm.errors import UserError
from paddle_tfm.files import content
from paddle_tfm.recipe import limits, yaml_lines
from paddle_tfm.recipe.differences import ABSENT, DESCRIPTIVE
from paddle_tfm.recipe.yaml_lines import recipe_text
from paddle_tfm.runs.changes import DATA, PLUGINS, SETTINGS, TEXTS, VOCABULARY, Gap, facts, gaps
from paddle_tfm.runs.forms import read_stored_identity
from paddle_tfm.runs.sweep_files import read_command

RECIPE = "recipe.yaml"
SECTIONS = ("vocabulary", "model", "train", "evaluate")
NAMED = 2  # differences in one sentence
LEARNED_FROM = {  # what differs in data, and in words
    f"{TEXTS}train": "the training texts", f"{TEXTS}valid": "the validation texts", VOCABULARY: "the vocabulary"
}  # fmt: skip
DECIDED_BY = {VOCABULARY: ("task", "tokenizer", "vocabulary", "model.shape")}  # settings; of texts, the task
# Settings that change no number of a run. What metrics are, and of which texts, is compared where they are.
BESIDE = ("requires", "evaluate.metrics", "evaluate.tests", "train.gradient_norms")
_BESIDE = re.compile(rf"(?m)^(?:{'|'.join(DESCRIPTIVE)}):.*\n(?:[ -].*\n)*")


@dataclass(frozen=True)
class Origin:
    """What the run in a folder was trained from, empty where that is not here: the text of its `settings`, without
    what changes no number and its seed; and of its `facts` the provider of each component, and hashes of the texts that
    it learned from or was chosen by, and of its vocabulary, which a file may hold that a recipe names. Two are equal
    where these are."""

    folder: Path = field(compare=False)
    settings: str = ""
    facts: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    @property
    def sweep(self) -> Path:
        """The folder of the sweep that the run belongs to."""
        return self.folder.parent.parent


def recipe_of(folder: Path) -> dict[str, Any]:
    """The resolved recipe of a run; empty where it cannot be read, or a section of it is none."""
    try:
        recipe = yaml_lines.load_file(folder / RECIPE)[0]
    except UserError:
        return {}
    return recipe if all(isinstance(recipe.get(name, {}), Mapping) for name in SECTIONS) else {}


def origin_of(folder: Path) -> Origin:
    """What the run in a folder was trained from. Its recipe is not parsed, so that thousands are read at once."""
    try:
        settings = _BESIDE.sub("", content(folder / RECIPE, limits.BYTES).decode("utf-8", errors="replace"))
    except FileNotFoundError:
        settings = ""
    try:
        known = facts(read_stored_identity(folder))
    except UserError:
        return Origin(folder, settings)
    texts = {what: value for what, value in known[DATA].items() if what in LEARNED_FROM}
    return Origin(folder, settings, {PLUGINS: known[PLUGINS], DATA: texts})


def unshared(one: Origin, other: Origin) -> list[Gap]:
    """In what two runs differ that decides their numbers: settings, the code of a component that both have, and the
    texts that they learned from or were chosen by, but for what a setting decides in which they differ."""
    if one == other:
        return []
    recipes = [recipe_of(run.folder) if one.settings and other.settings else {} for run in (one, other)]
    differing = gaps((recipes[0], one.facts), (recipes[1], other.facts))
    data = [gap for gap in differing if gap.section == DATA and ABSENT not in (gap.one, gap.other)]
    code = [gap for gap in differing if gap.section == PLUGINS and ABSENT not in (gap.one, gap.other)]
    beside = BESIDE if data or not one.facts.get(DATA) else (*BESIDE, "task")  # files of other names, same texts
    settings = [gap for gap in differing if gap.section == SETTINGS and not _is_within(gap.what, beside)]
    paths = [gap.what for gap in settings]
    data = [gap for gap in data if not any(_is_within(path, DECIDED_BY.get(gap.what, ("task",))) for path in paths)]
    return [*settings, *code, *data]


def _is_within(path: str, sections: Collection[str]) -> bool:
    """Whether a path is one of these, or below one."""
    return any(path == each or path.startswith(f"{each}.") for each in sections)


def unlike(runs: Sequence[Origin]) -> str:
    """In what the runs of one variant differ beside their seeds; "" if in nothing."""
    distinct: list[Origin] = []
    for run in runs:
        if run not in distinct:
            distinct.append(run)
    pairs = combinations(distinct, 2)
    return next(filter(None, (_in_words(*pair, unshared(*pair)) for pair in pairs)), "")


def unlike_in_sweep(one: Origin, other: Origin) -> str:
    """In what two variants of one sweep differ beside what its recipe sets for them, though one command trained both;
    "" if in nothing, or if they are of two sweeps, which may be meant to be compared."""
    if one.sweep != other.sweep:
        return ""
    varied, differing = _varied(one, other), unshared(one, other)
    if varied is None:  # nobody knows what is set for them
        return _in_words(one, other, [gap for gap in differing if gap.section != SETTINGS])
    return _in_words(one, other, [gap for gap in differing if not _is_set(gap, varied)])


def beyond_one(one: Origin, other: Origin) -> str:
    """In what two variants differ beyond one thing that is compared: what their recipes set for variants, or else a
    single setting; "" if in nothing."""
    varied, differing = _varied(one, other) or (), unshared(one, other)
    beyond = [gap for gap in differing if not _is_set(gap, varied)]
    if beyond == differing and sum(gap.section == SETTINGS for gap in differing) == 1:
        beyond = [gap for gap in differing if gap.section != SETTINGS]
    return _in_words(one, other, beyond)


def _varied(one: Origin, other: Origin) -> list[str] | None:
    """The settings that recipes set for either of two variants; None where that is not recorded of both."""
    paths = [read_command(run.sweep).variants.get(run.folder.parent.name) for run in (one, other)]
    return None if None in paths else [path for each in paths for path in each or ()]


def _is_set(gap: Gap, varied: Collection[str]) -> bool:
    """Whether it is of one of these settings, one below it, or one above it, as a component is above its options."""
    if gap.section != SETTINGS:
        return False
    return _is_within(gap.what, varied) or any(_is_within(path, (gap.what,)) for path in varied)


def _in_words(one: Origin, other: Origin, differing: Sequence[Gap]) -> str:
    """`model.dropout is 0.0 in pre/seed-1, and 0.1 in pre/seed-2`."""
    names = [f"{run.folder.parent.name}/{run.folder.name}" for run in (one, other)]
    if names[0] == names[1]:
        names = [str(run.folder) for run in (one, other)]
    hashes = {what: f"the hash of {texts}" for what, texts in LEARNED_FROM.items()}
    texts = [
        f"{hashes.get(gap.what, gap.what)} is {recipe_text(gap.one)} in {names[0]}, and {recipe_text(gap.other)} in "
        f"{names[1]}"
        for gap in differing
    ]
    return "; ".join(texts[:NAMED]) + (f"; and {len(texts) - NAMED} more" if len(texts) > NAMED else "")
