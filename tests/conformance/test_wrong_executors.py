"""The kit over executors: the ones that ship and the template, and some with one mistake each, of the kinds that authors
make. Each check trains tiny runs, most of them in processes of their own."""

import subprocess
import time
from pathlib import Path

import pytest
from catalogue import examined

from paddle_tfm import create_registry
from paddle_tfm.cli.plugin.new import write
from paddle_tfm.errors import UserError
from paddle_tfm.protocols import Executor, Outcome
from paddle_tfm.testing import FAIL, PASS, examine

pytestmark = pytest.mark.conformance


class Here(Executor):
    """Trains each run by itself on this machine; a failure costs only that run."""

    def run(self, cells, supervisor):
        for cell in cells:
            if supervisor.stop():
                return
            yield from self.one(cell, supervisor)

    def one(self, cell, supervisor):
        try:
            yield from supervisor.train([cell])
        except UserError as error:
            yield Outcome(cell, str(error))


class Twice(Here):
    def one(self, cell, supervisor):
        for _ in range(2):
            yield from super().one(cell, supervisor)


class StartsTwice(Here):
    """Two processes for the last run: the second ends at once, for it finds the run finished."""

    def run(self, cells, supervisor):
        yield from super().run(cells[:-1], supervisor)
        for _ in range(2):
            subprocess.run(cells[-1].command, env=cells[-1].environment)
        yield Outcome(cells[-1])


class DropsTheLast(Here):
    def run(self, cells, supervisor):
        return super().run(cells[:-1], supervisor)


class Swallows(Here):
    def one(self, cell, supervisor):
        try:
            yield from supervisor.train([cell])
        except UserError:
            yield Outcome(cell)


class GivesUp(Here):
    """After a failure it trains no more."""

    def run(self, cells, supervisor):
        for cell in cells:
            for outcome in self.one(cell, supervisor):
                yield outcome
                if outcome.failure:
                    return


class RunsOnAfterAStop(Executor):
    def run(self, cells, supervisor):
        for cell in cells[:2]:
            process = subprocess.run(cell.command, env=cell.environment)
            yield Outcome(cell, f"status {process.returncode}" if process.returncode else "")


class Kills(Executor):
    """What the user stops ends without a checkpoint."""

    def run(self, cells, supervisor):
        for cell in cells:
            process = subprocess.Popen(cell.command, env=cell.environment)
            while process.poll() is None:
                if supervisor.stop():
                    process.kill()
                    process.wait()
                    return
                time.sleep(0.05)
            yield Outcome(cell)


class DoesNotWait(Executor):
    """Where the user stops, it returns at once, and what is under way trains on."""

    def run(self, cells, supervisor):
        for cell in cells:
            process = subprocess.Popen(cell.command, env=cell.environment)
            while process.poll() is None:
                if supervisor.stop():
                    return
                time.sleep(0.05)
            yield Outcome(cell, "" if cell.is_finished else f"status {process.returncode}")


class OtherTraining(Executor):
    """It takes the liberty of another setting; one run shows it."""

    def run(self, cells, supervisor):
        subprocess.run([*cells[0].command, "train.clip_norm=0.5"], env=cells[0].environment)
        yield Outcome(cells[0])


@pytest.mark.parametrize(
    "cls, check, sentence",
    [
        (Twice, "each_once", "default/seed-1, default/seed-2, default/seed-3 has two outcomes"),
        (StartsTwice, "each_once", "default/seed-3 was started twice"),
        (DropsTheLast, "each_once", "default/seed-3 was not trained"),
        (OtherTraining, "same_numbers", "default/seed-1: metrics.jsonl is not what the same run trained here has"),
        (Swallows, "failure", "default/seed-2 was killed, and has an outcome without a failure"),
        (GivesUp, "failure", "default/seed-2 was killed, and default/seed-3 was not trained"),
        (RunsOnAfterAStop, "stops", "default/seed-2 was started after the user's stop"),
        (Kills, "stops", ", and its checkpoint is of step 0"),
        (DoesNotWait, "stops", "default/seed-1 is still being trained where it has returned"),
    ],
)
def test_one_mistake_is_seen_by_the_check_that_is_for_it(cls, check, sentence):
    seen = examined(cls, frozenset({check}))[check]
    assert seen.status == FAIL and sentence in seen.detail, seen


@pytest.mark.exhaustive  # `local` passes too
def test_one_that_trains_here_and_reports_its_failures_passes():
    report = examined(Here)
    assert [each.status for each in report] == [PASS] * 5, report


@pytest.mark.exhaustive  # the example of the contract passes too
def test_the_template_passes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("my-cluster", "executor", single_file=True)
    report = examine("executor", "my_cluster", registry=create_registry([Path("my_cluster.py")]))
    assert [each.status for each in report] == [PASS] * 5, report
