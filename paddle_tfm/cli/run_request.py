"""What a user wants of `paddle-tfm run`: its argument and options, and what follows from them alone."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_tfm.cli.forecast import require_alone
from paddle_tfm.cli.sweep_options import as_overrides, require_new
from paddle_tfm.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paddle_tfm.recipe.expansion import Recipe


@dataclass(frozen=True)
class Request:
    """The argument and the options of `run`, by their names; its help says what each means."""

    name: str
    overrides: Sequence[str] = ()
    seeds: str | None = None
    baseline: str | None = None
    budget: float | None = None
    dry_run: bool = False
    save: Path | None = None
    out: Path | None = None
    resume: bool = False
    fast: bool = False
    plugins: Sequence[Path] = ()
    device: str | None = None
    workers: int | None = None
    executor: str | None = None
    cell: str | None = None
    strict: bool = False
    paranoid: bool = False
    form: str | None = None

    def require_sound(self) -> None:
        """Raises UserError where options contradict each other, or the recipe cannot be saved."""
        require_new(self.save)
        require_alone(self.dry_run, self.budget, self.cell, self.executor, self.save)
        if self.executor and self.cell:
            raise UserError("--cell trains one run, here; --executor distributes all of them: use one of the two")
        if self.paranoid and self.dry_run:
            raise UserError("--paranoid trains everything twice, and --dry-run trains nothing: use one of the two")

    @property
    def settings(self) -> list[str]:
        """Every a.b=value, those of --seeds and --baseline too."""
        return [*self.overrides, *as_overrides(self.seeds, self.baseline)]

    def recipe(self) -> Recipe:
        """Raises RecipeError, UserError: there is none, or something is wrong with it."""
        from paddle_tfm.recipe import loading

        return loading.load(self.name, self.settings, self.fast)

    def to_resume(self) -> str:
        """The command that continues this one."""
        return shlex.join(["paddle-tfm", *self.words_to_resume()])

    def words_to_resume(self) -> list[str]:
        """The words of that command behind `paddle-tfm`."""
        values = {"out": self.out, "device": self.device, "workers": self.workers, "executor": self.executor}
        values["cell"] = self.cell
        options = [*(f"--plugin={file}" for file in self.plugins)]
        options += [f"--{name}={value}" for name, value in values.items() if value]
        options += [f"--{name}" for name in ("strict", "fast", "paranoid") if getattr(self, name)]
        return ["run", self.name, *self.settings, *options, "--resume"]
