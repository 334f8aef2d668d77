"""What a user wants of `paddle-tfm run`: its argument and options, and what follows from them alone."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.units import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from paddle_tfm.recipe.expansion import Recipe

MAX_SEEDS = 1_000
MAX_SEED = 2**31 - 1
SEEDS_FORM = "must be how many, such as 5, or a list of numbers below 2**31, such as 3,7,9"


@dataclass(frozen=True)
class Launched:
    """What a launcher (Paddle's, Slurm's, mpirun's) says of this process: which of `size` it is. `address` is
    HOST:PORT, "" where it says none."""

    launcher: str
    rank: int
    size: int
    on_this_machine: int = 1
    address: str = ""

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Launched | None:
        """What stands in the environment; None where no launcher started several processes of this command."""

        def number(name: str) -> int | None:
            return whole_number(variables.get(name, ""), 0, 1 << 20)

        for launcher, rank_name, size_name, address in (
            ("paddle.distributed.launch", "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", _paddles_address(variables)),
            ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ""),
            ("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ""),
            ("mpirun", "PMI_RANK", "PMI_SIZE", ""),
        ):
            rank, size = number(rank_name), number(size_name)
            if rank is not None and size is not None and size > 1:
                local = number("PADDLE_LOCAL_SIZE") if address else None  # the others bind each process to its cores
                return cls(launcher, rank, size, local or 1, address)
        return None


def _paddles_address(variables: Mapping[str, str]) -> str:
    return variables.get("PADDLE_MASTER") or variables.get("PADDLE_TRAINER_ENDPOINTS", "").partition(",")[0]


@dataclass(frozen=True)
class Request:
    """The argument and the options of `run`, by their names; its help says what each means."""

    name: str
    overrides: Sequence[str] = ()
    seeds: str | None = None
    baseline: str | None = None
    dry_run: bool = False
    out: Path | None = None
    resume: bool = False
    fast: bool = False
    plugins: Sequence[Path] = ()
    device: str | None = None
    workers: int | None = None
    executor: str | None = None
    cell: str | None = None
    of_sweep: bool = False
    nproc: int | None = None
    nodes: int | None = None
    node: int | None = None
    address: str | None = None
    strict: bool = False
    form: str | None = None

    @property
    def processes(self) -> int:
        """How many train each run together, on all machines."""
        launched = self.launched()
        return launched.size if launched else (self.nproc or 1) * (self.nodes or 1)

    def launched(self) -> Launched | None:
        """What a launcher says of this process, where one started several of this command."""
        return Launched.read(os.environ)

    def require_sound(self) -> None:
        """Raises UserError where options contradict each other."""
        if self.dry_run and self.cell:
            raise UserError(_("--dry-run is about all runs of a recipe, and --cell about one: use one of the two"))
        if self.dry_run and self.executor:
            raise UserError(_("--dry-run measures this machine, and --executor trains elsewhere: use one of the two"))
        if self.executor and self.cell:
            raise UserError(_("--cell trains one run, here; --executor distributes all of them: use one of the two"))
        if self.of_sweep and self.out is not None and not self.out.is_dir():
            text = _(
                "{out} is not there on {node}, which does not see the folder of this sweep: share it with this "
                "machine, or have the `template` of the executor `command` copy it there and back"
            )
            raise UserError(text.format(out=self.out, node=platform.node()))
        self._require_sound_ranks()

    def _require_sound_ranks(self) -> None:
        """Raises UserError where what says which processes train a run contradicts itself, or another option."""
        launched = self.launched()
        if launched is not None:
            self._require_only_the_launcher(launched)
        values = {"--nodes": self.nodes, "--node": self.node, "--address": None if launched else self.address}
        missing = [name for name, value in values.items() if value is None]
        if 0 < len(missing) < len(values):
            text = _(
                "several machines need all of --nodes, --node and --address; missing: {missing}; for "
                "instance --nodes 2 --node 0 --address 10.0.0.1:29500"
            )
            raise UserError(text.format(missing=_(" and ").join(missing)))
        if self.nodes is not None and self.node is not None and self.node >= self.nodes:
            text = _("--node must be from 0 to {last} with --nodes={number}, but is {node}")
            raise UserError(text.format(last=self.nodes - 1, number=self.nodes, node=self.node))
        together = launched.launcher if launched else "--nodes" if self.nodes else "--nproc"
        if self.nproc is None and self.nodes is None and launched is None:
            return
        if self.workers or self.executor:
            other = "--workers" if self.workers else "--executor"
            text = _(
                "{together} trains one run after another, each by several processes; {other} trains several runs "
                "side by side: use one of the two"
            )
            raise UserError(text.format(together=together, other=other))
        if self.dry_run:
            text = _("--dry-run measures one process, and {together} trains with several: use one of the two")
            raise UserError(text.format(together=together))

    def _require_only_the_launcher(self, launched: Launched) -> None:
        """Raises UserError where options say otherwise than a launcher, or what it does not say is missing."""
        started = _("{launcher} started {size} processes of this command").format(
            launcher=launched.launcher, size=launched.size
        )
        if self.nproc or self.nodes or self.node is not None:
            option = f"--nproc={self.nproc}" if self.nproc else f"--nodes={self.nodes}" if self.nodes else "--node"
            text = _("{started}, and {option} starts others: use one of the two")
            raise UserError(text.format(started=started, option=option))
        if not (self.address or launched.address):
            text = _(
                "{started}, but does not say where they meet: give --address HOST:PORT, of the machine of the "
                "first one, for instance --address $(hostname):29500"
            )
            raise UserError(text.format(started=started))

    @property
    def settings(self) -> list[str]:
        """Every a.b=value, those of --seeds and --baseline too. Raises UserError: the seeds are no numbers."""
        seeds = [] if self.seeds is None else [f"seeds={_seeds(self.seeds)}"]
        baseline = [] if self.baseline is None else [f"baseline={_as_yaml(self.baseline)}"]
        return [*self.overrides, *seeds, *baseline]

    def recipe(self) -> Recipe:
        """Raises RecipeError, UserError: there is none, or something is wrong with it."""
        from paddle_tfm.recipe import loading

        return loading.load(self.name, self.settings, self.fast)

    def to_resume(self) -> str:
        """The command that continues this one."""
        values = {"out": self.out, "device": self.device, "workers": self.workers, "executor": self.executor}
        values |= {"cell": self.cell, "nproc": self.nproc, "nodes": self.nodes, "address": self.address}
        values["node"] = None if self.node is None else str(self.node)
        options = [*(f"--plugin={file}" for file in self.plugins)]
        options += [f"--{name}={value}" for name, value in values.items() if value]
        options += [f"--{name}" for name in ("strict", "fast") if getattr(self, name)]
        return shlex.join(["paddle-tfm", "run", self.name, *self.settings, *options, "--resume"])


def _seeds(text: str) -> list[int]:
    """Seeds 1 to N of a number; those of a list."""
    if text.strip().isdecimal():
        number = whole_number(text.strip(), 1, MAX_SEEDS)
        if number is None:
            raise UserError(_("--seeds {text}: must be 1 to {most} seeds").format(text=text, most=f"{MAX_SEEDS:,}"))
        return list(range(1, number + 1))
    parts = text.strip().removeprefix("[").removesuffix("]").split(",")
    seeds = [seed for part in parts if (seed := whole_number(part.strip(), 0, MAX_SEED)) is not None]
    if len(seeds) < len(parts):
        raise UserError(f"--seeds {text}: {_(SEEDS_FORM)}")
    return seeds


def _as_yaml(variant: str) -> str:
    """The name of a variant, as YAML that is read as text."""
    bare = bool(re.fullmatch(r"[A-Za-z][\w.+-]*", variant)) and variant not in ("true", "false", "null")
    return variant if bare else json.dumps(variant, ensure_ascii=False)
