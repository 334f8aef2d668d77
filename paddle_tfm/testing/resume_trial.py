"""The proof that a recipe resumes exactly: trained once in one go, and once killed and resumed, each by processes of
its own, as a user has them."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json
from paddle_tfm.testing.same_runs import differences

# A plugin of one hook: the process ends without a word after a step, as by `kill -9` or the system's out-of-memory
# killer. It has no component, so that the identity of the run is what it is without.
KILLER = """
import os
import signal

from paddle_tfm.hookspecs import hookimpl


@hookimpl
def on_step_end(run, step, metrics):
    if step == {at}:
        os.kill(os.getpid(), signal.SIGKILL)
"""
WHOLE, KILLED = "whole", "killed"


@dataclass(frozen=True)
class ResumeTrial:
    """Trains one run of a recipe twice.

    Args:
        command: what trains it, but for `--out`. name: of the run, variant/seed-n. folder: where both are written.
        report: gets a sentence before each training.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    name: str
    folder: Path
    report: Callable[[str], None] = lambda text: None

    def differences(self, kills: Sequence[int]) -> list[str]:
        """A sentence for each file of the run that is another if it is killed after the steps `kills`; none: it resumes
        exactly.

        Raises:
            UserError: a training failed, or ends before it can be killed.
        """
        self.report("trained in one go")
        self._train(WHOLE)
        self._require_steps(max(kills))
        for at in kills:
            self.report(f"killed after step {at}")
            plugin = self.folder / f"kill_at_{at}.py"
            plugin.write_text(KILLER.format(at=at), "utf-8")
            self._train(KILLED, plugin)
        self.report("resumed, to its end")
        self._train(KILLED)
        return differences(self.folder / WHOLE / self.name, self.folder / KILLED / self.name)

    def _require_steps(self, kill: int) -> None:
        """Raises UserError where the training in one go ended before step `kill`."""
        results = read_json(self.folder / WHOLE / self.name / "results.json", ("steps", "diverged"))
        if results["steps"] < kill:
            why = f" ({results['diverged']}; a smaller learning rate may help)" if results["diverged"] else ""
            raise UserError(
                f"{self.name} ends at step {results['steps']}{why}, before it is to be killed, after step {kill}; "
                "kill it earlier: --kill-at N"
            )

    def _train(self, which: str, plugin: Path | None = None) -> None:
        more = [f"--out={self.folder / which}", *([f"--plugin={plugin}"] if plugin else [])]
        ended = subprocess.run(
            [*self.command, *more], env=dict(self.environment), capture_output=True, text=True, errors="replace"
        )
        expected = -signal.SIGKILL if plugin else 0
        if ended.returncode != expected:
            said = ended.stderr.strip().rpartition("\n")[2] or f"it ended with status {ended.returncode}"
            raise UserError(f"{self.name}: the training failed: {said}")
