"""Whether runs differ in what they should share: those of one variant in nothing beside their seeds, and the variants
of one sweep neither in the code of a component that both have nor in the texts of one task; nor tuned runs in these
from their trials."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from paddle_tfm.component_source import recipe_text
from paddle_tfm.errors import UserError
from paddle_tfm.files import content
from paddle_tfm.recipe import limits, yaml_lines
from paddle_tfm.recipe.differences import DESCRIPTIVE, differences
from paddle_tfm.recipe.tuning import FOLDER
from paddle_tfm.train.changes import is_same_code
from paddle_tfm.train.forms import read_stored_identity

RECIPE = "recipe.yaml"
SECTIONS = ("vocabulary", "model", "train", "evaluate")
NAMED = 2  # differences in one sentence
TEXTS = {"train": "the training texts", "valid": "the validation texts", "vocabulary": "the vocabulary"}
DECIDED_BY = {"the vocabulary": ("task", "tokenizer", "vocabulary", "model.shape")}  # settings; of all others, the task
# Settings that change no number of a run. What metrics are, and of which texts, is compared where they are.
BESIDE = ("requires", "evaluate.metrics", "evaluate.tests", "train.gradient_norms")
_BESIDE = re.compile(rf"(?m)^(?:{'|'.join(DESCRIPTIVE)}):.*\n(?:[ -].*\n)*")


class Origin(NamedTuple):
    """What a run was trained from, empty where that cannot be read: the text of its `settings`, without what changes no
    number and its seed; the provider of each component; hashes of the texts that it learned from or was chosen by, and
    of its vocabulary, which a file may hold that a recipe names."""

    settings: str = ""
    components: Mapping[str, str] = {}
    texts: Mapping[str, str] = {}


class Trained(Protocol):
    """A finished run, as far as what it was trained from is concerned."""

    @property
    def folder(self) -> Path:
        """Of the run."""

    @property
    def origin(self) -> Origin:
        """What it was trained from."""


def recipe_of(folder: Path) -> dict[str, Any]:
    """The resolved recipe of a run; empty where it cannot be read, or a section of it is none."""
    try:
        recipe = yaml_lines.load_file(folder / RECIPE)[0]
    except (UserError, OSError):
        return {}
    return recipe if all(isinstance(recipe.get(name, {}), Mapping) for name in SECTIONS) else {}


def origin_of(folder: Path) -> Origin:
    """What the run in a folder was trained from. Its recipe is not parsed, so that thousands are read at once."""
    try:
        settings = _BESIDE.sub("", content(folder / RECIPE, limits.BYTES).decode("utf-8", errors="replace"))
    except FileNotFoundError:
        settings = ""
    except OSError as error:  # so that it is no other's
        settings = f"{folder / RECIPE}: {error.strerror}"
    try:
        identity = read_stored_identity(folder)
    except UserError:
        return Origin(settings)
    hashes = {**identity.get("data", {}), "vocabulary": identity.get("vocabulary", "")}
    texts = {name: hashes[split] for split, name in TEXTS.items() if hashes.get(split)}
    return Origin(settings, identity.get("components", {}), texts)


def unlike(runs: Sequence[Trained]) -> str:
    """In what the runs of one variant differ beside their seeds; "" if in nothing."""
    distinct: list[Trained] = []
    for run in runs:
        if not any(run.origin == other.origin for other in distinct):
            distinct.append(run)
    known = [run for run in distinct if run.origin.settings]
    settings = (_settings(known[0], other) for other in known[1:])
    # Each with each: of a run that is older than the hash of some code, nobody knows which it had.
    others = (_texts(one, other) or _code(one, other) for one, other in combinations(distinct, 2))
    return next(filter(None, chain(settings, others)), "")


class Trial(NamedTuple):
    """A trial of tuning."""

    folder: Path
    origin: Origin


def unlike_trials(run: Trained) -> str:
    """In what code or texts the trials that chose a run's values differ from it; "" if in nothing, or if there are
    none."""
    folders = sorted((run.folder.parent.parent / FOLDER / run.folder.parent.name).glob("trial-*"))
    trials = (Trial(folder, origin_of(folder)) for folder in folders)
    return next(filter(None, (_code(trial, run) or _texts(trial, run) for trial in trials)), "")


def unlike_in_sweep(one: Trained, other: Trained) -> str:
    """In what two variants of one sweep differ, though one command trained both; "" if in nothing, or if they are of
    two sweeps, which may be meant to be compared."""
    if one.folder.parent.parent != other.folder.parent.parent:
        return ""
    if sentence := _code(one, other):
        return sentence
    if not (changed := _changed_texts(one, other)):
        return ""
    varied = [change.path for change in differences(recipe_of(one.folder), recipe_of(other.folder))]
    meant = {name for name in changed if any(_is_within(path, DECIDED_BY.get(name, ("task",))) for path in varied)}
    return _of_texts(one, other, [name for name in changed if name not in meant])


def _settings(one: Trained, other: Trained) -> str:
    if one.origin.settings == other.origin.settings or not one.origin.settings or not other.origin.settings:
        return ""
    recipes = [recipe_of(run.folder) for run in (one, other)]
    for run, recipe in zip((one, other), recipes):
        if not recipe:
            return f"{run.folder / RECIPE} cannot be read"
    same = one.origin.texts and one.origin.texts == other.origin.texts
    beside = (*BESIDE, "task") if same else BESIDE  # files of other names may hold the same
    changed = [
        (change.path, recipe_text(change.one), recipe_text(change.other))
        for change in differences(*recipes)
        if not _is_within(change.path, beside)
    ]
    return _both(one, other, changed)


def _is_within(path: str, sections: Sequence[str]) -> bool:
    """Whether a path is one of these, or below one."""
    return any(path == each or path.startswith(f"{each}.") for each in sections)


def _code(one: Trained, other: Trained) -> str:
    ours, theirs = one.origin.components, other.origin.components
    both = [name for name in ours if name in theirs]
    changed = [name for name in both if not is_same_code(*sorted((ours[name], theirs[name])))]
    return _both(one, other, [(name, ours[name], theirs[name]) for name in changed])


def _texts(one: Trained, other: Trained) -> str:
    return _of_texts(one, other, _changed_texts(one, other))


def _changed_texts(one: Trained, other: Trained) -> list[str]:
    ours, theirs = one.origin.texts, other.origin.texts
    return [name for name in ours if name in theirs and ours[name] != theirs[name]]


def _of_texts(one: Trained, other: Trained, names: Sequence[str]) -> str:
    ours, theirs = one.origin.texts, other.origin.texts
    return _both(one, other, [(f"the hash of {name}", ours[name][:12], theirs[name][:12]) for name in names])


def _both(one: Trained, other: Trained, changed: Sequence[tuple[str, str, str]]) -> str:
    """`model.dropout is 0.0 in pre/seed-1, and 0.1 in pre/seed-2`."""
    names = [f"{run.folder.parent.name}/{run.folder.name}" for run in (one, other)]
    if names[0] == names[1]:
        names = [str(run.folder) for run in (one, other)]
    texts = [f"{what} is {here} in {names[0]}, and {there} in {names[1]}" for what, here, there in changed]
    return "; ".join(texts[:NAMED]) + (f"; and {len(texts) - NAMED} more" if len(texts) > NAMED else "")
