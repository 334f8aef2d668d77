"""Whatever ends a rank, the run ends with a sentence that names it, and with a checkpoint that any number of processes
resume."""

import os
import re
import signal
import time

import numpy as np
import pytest
from rank_processes import FACTS, ended, forked, team, trainer_of

from paddle_tfm import create_registry
from paddle_tfm.errors import UserError
from paddle_tfm.runs import manifest
from paddle_tfm.runs.logs import read_rows
from paddle_tfm.train.ranks.group import RankLost
from paddle_tfm.train.ranks.meeting import Address
from paddle_tfm.train.ranks.member import Member, ask_to_stop
from paddle_tfm.train.ranks.rank import Rank
from paddle_tfm.train.ranks.rank_zero import Ranks
from paddle_tfm.train.trainer import Interrupted

pytestmark = pytest.mark.reliability

BATCH = ["model.norm=batch", "train.optimizer=sgd", "train.schedule={name: constant, learning_rate: 0.05}"]
NAMED = r"^rank 1 \(process \d+ on .*\), of 2, is lost: it has ended, or cannot be reached; default/seed-1 is saved at step "


def steps_of(folder, kind="loss"):
    return [row["step"] for row in read_rows(folder / "run/metrics.jsonl") if kind in row]


def weights(trainer):
    return {path: each.numpy() for path, each in trainer.run.model.state_dict().items()}


def trained(others, registry, folder, overrides=BATCH, resume=True):
    """Results and weights of a whole training."""
    trainer = trainer_of(registry, *overrides, folder=folder, others=others)
    return trainer.train(resume=resume), weights(trainer)


def failing(others, registry, folder, where, overrides=BATCH):
    """Train, while the other rank is killed at some moment; returns seconds from then to the sentence, that sentence,
    and at which step the run is saved."""
    trainer, killed = trainer_of(registry, *overrides, folder=folder, others=others), []

    def kill():
        if not killed:
            killed.append(time.monotonic())
            os.kill(others.pids[0], signal.SIGKILL)

    at(where, trainer, others, kill)
    with pytest.raises(RankLost) as lost:
        trainer.train()
    return time.monotonic() - killed[0], str(lost.value), manifest.read_state(trainer.state.existing("last")).step


def at(where, trainer, others, kill):
    """Have `kill` be called: between two steps; at the first, or a later, sum of a pass; when gradients are summed;
    while texts are scored, or a checkpoint is saved."""
    step, sums = trainer.run, []

    def before(target, name, when):
        original = getattr(target, name)

        def called(*arguments, **options):
            if when():
                kill()
            return original(*arguments, **options)

        setattr(target, name, called)

    def counted(number):
        sums.append(1)
        return step.step == 6 and len(sums) >= number

    match where:
        case "between":
            before(trainer, "next_batches", lambda: step.step == 6)
        case "forward":
            before(others, "total", lambda: step.step == 6)
        case "backward":
            before(trainer, "next_batches", lambda: sums.clear())
            before(others, "total", lambda: counted(10))  # of 7 forward and 7 backward
        case "gradients":
            before(others, "reduce", lambda: step.step == 6)
        case "evaluation":
            trainer.stop = lambda: others.stop()
            before(trainer.score, "valid", lambda: step.step == 4)
        case "saving":
            before(trainer.state, "save", lambda: step.step == 4)


@pytest.fixture(scope="module")
def whole(registry, tmp_path_factory):
    """The weights of a training that nothing ends."""
    with team(registry, 2) as rank_0:
        return rank_0(trained, tmp_path_factory.mktemp("whole"))[1]


@pytest.mark.parametrize(
    ("where", "saved"),
    [("between", 6), ("forward", 6), ("backward", 6), ("gradients", 6), ("evaluation", 4), ("saving", 4)],
)
def test_a_killed_rank_is_named_within_seconds_and_its_run_resumes_to_the_same_bits(
    registry, whole, tmp_path, where, saved
):
    with team(registry, 2) as rank_0:
        seconds, sentence, step = rank_0(failing, tmp_path / "cut", where)
    assert re.match(NAMED + f"{saved}$", sentence) and step == saved and seconds < 10
    with team(registry, 2) as rank_0:
        _, resumed = rank_0(trained, tmp_path / "cut")
    assert steps_of(tmp_path / "cut") == list(range(1, 13))
    assert steps_of(tmp_path / "cut", "evaluation") == [4, 8, 12]
    for path, value in whole.items():
        np.testing.assert_array_equal(resumed[path], value, err_msg=path)


def test_the_ranks_that_are_left_hear_who_is_lost(registry, tmp_path, capfd):
    with team(registry, 3) as rank_0:
        seconds, sentence, _ = rank_0(failing, tmp_path, "forward")
    assert re.match(r"^rank 1 \(process \d+ on .*\), of 3, is lost: ", sentence) and seconds < 10
    assert capfd.readouterr().out.splitlines() == [f"[failed] {sentence.partition(';')[0]}"]


def test_a_run_of_two_ranks_resumes_on_one_and_on_three(registry, tmp_path):
    expected, whole = trained(None, registry, tmp_path / "whole")
    with team(registry, 2) as rank_0:
        rank_0(failing, tmp_path / "cut", "between")
    alone = trainer_of(registry, *BATCH, folder=tmp_path / "cut")
    alone.stop = lambda: alone.run.step >= 8
    with pytest.raises(Interrupted):
        alone.train(resume=True)
    with team(registry, 3) as rank_0:
        results, resumed = rank_0(trained, tmp_path / "cut")
    assert results["valid"]["loss"] == pytest.approx(expected["valid"]["loss"], rel=1e-5)
    for path, value in whole.items():
        np.testing.assert_allclose(resumed[path], value, rtol=1e-3, atol=1e-5, err_msg=path)


def standing_still(others, registry, folder):
    """Train, while the other rank is stopped, and does not go on."""
    trainer = trainer_of(registry, *BATCH, folder=folder, others=others)
    trainer.stop = lambda: trainer.run.step == 6 and bool(os.kill(others.pids[0], signal.SIGSTOP))
    started = time.monotonic()
    with pytest.raises(RankLost) as lost:
        trainer.train()
    return time.monotonic() - started, str(lost.value)


def test_a_rank_that_stands_still_ends_the_run(registry, tmp_path):
    with team(registry, 2) as rank_0:
        seconds, sentence = rank_0(standing_still, tmp_path)
    assert re.search(r"^rank 1 \(.*\), of 2, stood still for 30 s \(.*; default/seed-1 is saved at step 6$", sentence)
    assert 29 < seconds < 35 + 5  # the steps before


FAILING = """
from paddle import distributed
from paddle_tfm import hookimpl
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import FeedForward

class Failing(FeedForward):
    def __init__(self, d_model):
        super().__init__()
        self.map = Linear(d_model, d_model)

    def forward(self, x, info, tap):
        if distributed.get_rank() == 1:
            raise MemoryError("no room")
        return self.map(x)

@hookimpl
def register_feed_forwards():
    return {"failing": Failing}
"""


def test_a_rank_that_fails_says_with_what(tmp_path):
    file = tmp_path / "failing.py"
    file.write_text(FAILING)
    sentence = r"^rank 1 .* of 2, is lost: .*Failing.* failed \(.*failing\.py line 14.*no room"
    with team(create_registry([file]), 2) as rank_0, pytest.raises(UserError, match=sentence):
        rank_0(trained, tmp_path, ["model.feed_forward=failing"])


def test_without_rank_0_the_others_end_with_a_sentence(registry, tmp_path, capfd):
    address = Address.free()

    def zero():
        Ranks(3, address).meet(FACTS)
        (tmp_path / "met").touch()
        time.sleep(60)

    pids = [forked(zero)]
    pids += [
        forked(lambda rank=rank: Rank(Member(rank, 3, address, FACTS, ended), registry).serve()) for rank in (1, 2)
    ]
    while not (tmp_path / "met").exists():
        time.sleep(0.01)
    started = time.monotonic()
    os.kill(pids[0], signal.SIGKILL)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert statuses == [-signal.SIGKILL, 2, 2] and time.monotonic() - started < 5
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith(f"[failed] rank 0 ({address}) is lost: ") and "--resume continues it" in line


def asked(others, registry, folder):
    trainer = trainer_of(registry, "train.steps=4000", "evaluate.every=4", folder=folder, others=others)
    trainer.stop, valid = lambda: others.stop(), trainer.score.valid

    def ask():
        ask_to_stop(others.address)
        while not others.asked_to_stop:
            time.sleep(0.01)
        return valid()

    trainer.score.valid = ask
    with pytest.raises(Interrupted):
        trainer.train()
    return trainer.run.step, manifest.read_state(trainer.state.existing("last")).step


def test_a_rank_asks_all_to_stop_while_rank_0_evaluates(registry, tmp_path):
    with team(registry, 2) as rank_0:
        assert rank_0(asked, tmp_path) == (4, 4)
