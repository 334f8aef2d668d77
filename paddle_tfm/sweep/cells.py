"""What is to be trained: a cell is one variant under one seed, and the folder that its run goes to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from paddle_tfm import protocols
from paddle_tfm.errors import UserError
from paddle_tfm.files import PARTIAL, remove, write_whole
from paddle_tfm.language import _
from paddle_tfm.recipe import yaml_lines
from paddle_tfm.recipe.differences import differences
from paddle_tfm.recipe.expansion import RunSpec
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.recipe.sections.further_tests import texts_key
from paddle_tfm.runs import manifest
from paddle_tfm.runs.changes import DESCRIPTIVE_KEYS, RECIPE_CHANGED, changes, gaps, rounding, was_and_is
from paddle_tfm.runs.forms import IDENTITY, RESULTS, read_results
from paddle_tfm.runs.identity import history_of, identity, read_identity
from paddle_tfm.sweep import claim

T = TypeVar("T")
NAMED_SETTINGS = 5  # of those that changed, in one sentence


@dataclass(frozen=True, eq=False)
class Cell(protocols.Cell):
    """One training of a sweep: plain data, so that any process can run it.

    Args:
        command, environment: what trains it in a process of its own: `protocols.Cell`.
    """

    spec: RunSpec
    folder: Path
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:  # type: ignore[override]
        """variant/seed-n."""
        return self.spec.name

    @property
    def is_begun(self) -> bool:
        """Whether its folder holds the start of a run."""
        return (self.folder / "identity.json").exists()

    @property
    def is_finished(self) -> bool:  # type: ignore[override]
        """Whether its folder holds results, whole."""
        try:
            return "variant" in read_results(self.folder)
        except UserError:
            return False

    @property
    def is_claimed(self) -> bool:  # type: ignore[override]
        """Whether a process trains it now."""
        return claim.is_claimed(self.folder)

    def require_whole(self) -> None:
        """Refuse a finished run of which a file is not as it was saved.

        Raises:
            UserError: which, and what to do.
        """
        if sentence := manifest.damage_of_run(self.folder) or manifest.damage_of_best(self.folder):
            again = _("remove {folder} to train this run again").format(folder=self.folder)
            if RESULTS in sentence or "predictions" in sentence:
                again = _("remove {folder} to have it scored again from its last checkpoint").format(
                    folder=self.folder / RESULTS
                )
            raise UserError(_("{sentence}; put back what was there, or {again}").format(sentence=sentence, again=again))

    def tidy(self) -> None:
        """Remove what a process left of this finished run that was killed after it had written the results."""
        if self.is_claimed:
            return
        manifest.remove_intermediate(self.folder / "checkpoints")
        for left in (self.folder / claim.FILE, *self.folder.glob(f"*{PARTIAL}")):
            with suppress(OSError):  # a folder for reading only
                remove(left)

    def continued(self, plan: Plan) -> str:
        """Continue a finished run, where a plan gives it more steps, with its schedule or another, and is the same
        otherwise: its results are removed, and its identity says where it was continued. Returns a sentence, "" where
        there is nothing to do.

        Raises:
            UserError: its files cannot be read.
        """
        if not self.is_finished or manifest.damage_of_run(self.folder):  # of which `require_whole` speaks
            return ""
        then, train = read_identity(self.folder), plan.settings.train
        before = yaml_lines.load_file(self.folder / "recipe.yaml")[0]
        paths = [gap.path for gap in differences(before, plan.run.data, DESCRIPTIVE_KEYS)]
        steps = before["train"]["steps"]
        grows = "train.steps" in paths and train.steps > steps == read_results(self.folder, ["steps"])["steps"]
        only = all(path.startswith(("train.steps", "train.schedule")) for path in paths)
        if not (grows and only and changes(then, identity(plan, then["data"])) == [_(RECIPE_CHANGED)]):
            return ""
        now = [*then.get("continued", []), {"steps": steps, "identity": then["hash"]}]
        history = {**history_of(then), "continued": now}
        new = identity(plan, then["data"], then["shards"], then["processes"], history)
        for name in (RESULTS, manifest.FILE):
            (self.folder / name).unlink(missing_ok=True)
        manifest.forget_snapshots(self.folder / "checkpoints" / "last", new["hash"])
        # The recipe is written where the training continues: with this it is the one that the plan says.
        write_whole(self.folder / IDENTITY, json.dumps({**new, "vocabulary": then["vocabulary"]}, indent=1))
        text = _("{name} is finished after {steps:,} steps, and continues to {more:,}{schedule}")
        givens, component = {"d_model": plan.settings.model.d_model}, plan.components["train.schedule"]
        rates = [[component.build(**givens, steps=end)(step) for step in (1, steps)] for end in (steps, train.steps)]
        of_length = _("; its schedule depends on the length: the steps so far had the rates of {steps:,} steps")
        schedule = "" if rates[0] == rates[1] and "train.schedule" not in paths else of_length.format(steps=steps)
        return text.format(name=self.name, steps=steps, more=train.steps, schedule=schedule)

    def require_unchanged(self, plan: Plan, data: dict[str, str] | None = None) -> None:
        """Refuse to resume a run with another recipe, other plugins or other data than it began with.

        Args:
            plan: of this cell's run. data: split → hash of its texts, where they are read; without it they are taken as
                unchanged.
        Raises:
            UserError: what changed.
        """
        if self.is_begun and (differing := self.differences(plan, data)):
            text = _(
                "{folder} cannot be resumed: {why}. Undo that to continue it, or use --out DIR for another place "
                "(in Python out=DIR)"
            )
            raise UserError(text.format(folder=self.folder, why=differing))

    def differences(self, plan: Plan, data: dict[str, str] | None = None) -> str:
        """How its run, as it was begun, differs from what a plan, and the hashes of its texts, say; "" if it does
        not. Raises UserError: its identity cannot be read."""
        then = read_identity(self.folder)
        sentences = changes(then, identity(plan, then["data"] if data is None else data))
        if (changed := _(RECIPE_CHANGED)) in sentences and (settings := self.other_settings(plan.run.data)):
            sentences[sentences.index(changed)] = f"{changed}{_(': ')}{settings}"
        return "; ".join(sentences)

    def other_settings(self, now: Mapping[str, Any]) -> str:
        """Which settings of its run, as it was begun, are others than those of a resolved recipe `now`, the first of
        them; "" where none are, or where its old text cannot be read."""
        try:
            before = yaml_lines.load_file(self.folder / "recipe.yaml")[0]
        except UserError:
            return ""
        sentences = was_and_is(gaps((before, {}), (now, {}), DESCRIPTIVE_KEYS))
        more = f", and {len(sentences) - NAMED_SETTINGS} more" if len(sentences) > NAMED_SETTINGS else ""
        return ", ".join(sentences[:NAMED_SETTINGS]) + more

    def rounds_otherwise(self, plan: Plan, processes: int = 1) -> list[str]:
        """Why the last bits of a run that is resumed here, by so many processes together, will differ from those of an
        uninterrupted one: sentences."""
        if not self.is_begun or self.is_finished:
            return []
        then = read_identity(self.folder)
        return rounding(then, identity(plan, then["data"], then["shards"], processes))


class OncePerTexts(Generic[T]):
    """plan → what `make` makes of its texts, once for all plans of the same texts, which cells share.

    Args:
        make: reads, or fetches, the texts of a plan's run.
    """

    def __init__(self, make: Callable[[Plan], T]):
        self.make, self.known = make, dict[str, T]()

    def __call__(self, plan: Plan) -> T:
        """Raises: what `make` raises."""
        key = texts_key(plan.run.data)
        if key not in self.known:
            self.known[key] = self.make(plan)
        return self.known[key]
