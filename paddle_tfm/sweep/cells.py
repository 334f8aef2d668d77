"""What is to be trained: a cell is one variant under one seed, and the folder that its run goes to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json
from paddle_tfm.recipe.expansion import RunSpec
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.train.identity import changes, identity, read_identity, rounding


@dataclass(frozen=True)
class Cell:
    """One training of a sweep: plain data, so that any process can run it."""

    spec: RunSpec
    folder: Path

    @property
    def name(self) -> str:
        """variant/seed-n."""
        return self.spec.name

    @property
    def is_begun(self) -> bool:
        """Whether its folder holds the start of a run."""
        return (self.folder / "identity.json").exists()

    @property
    def is_finished(self) -> bool:
        """Whether its folder holds results, whole."""
        try:
            return "variant" in read_json(self.folder / "results.json")
        except UserError:
            return False

    def require_unchanged(self, plan: Plan, data: dict[str, str] | None = None) -> None:
        """Refuse to resume a run with another recipe, other plugins or other data than it began with.

        Args:
            plan: of this cell's run. data: split → hash of its texts, where they are read; without it they are taken as
                unchanged.
        Raises:
            UserError: what changed.
        """
        if not self.is_begun:
            return
        then = read_identity(self.folder)
        now = identity(plan, then["data"] if data is None else data)
        if differences := changes(then, now):
            raise UserError(
                f"{self.folder} cannot be resumed: {'; '.join(differences)}. Use --out DIR for another place, or "
                "remove it"
            )

    def rounds_otherwise(self, plan: Plan) -> list[str]:
        """Why the last bits of a run that is resumed here will differ from those of an uninterrupted one: sentences."""
        if not self.is_begun or self.is_finished:
            return []
        then = read_identity(self.folder)
        return rounding(then, identity(plan, then["data"]))
