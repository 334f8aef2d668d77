"""A rank that ends ends the run with a sentence, and a checkpoint that any number of processes resume."""

import os
import signal
import time

import numpy as np
import pytest
from rank_processes import FACTS, forked, free_address, other_ranks

from paddle_tfm import create_registry
from paddle_tfm.train import manifest
from paddle_tfm.train.logs import read_rows
from paddle_tfm.train.meeting import join, listen, meet
from paddle_tfm.train.members import RankLost
from paddle_tfm.train.rank import Rank
from paddle_tfm.train.trainer import Interrupted

pytestmark = pytest.mark.reliability

BATCH = ["model.norm=batch", "train.optimizer=sgd", "train.schedule={name: constant, learning_rate: 0.05}"]


def steps_of(trainer, kind="loss"):
    return [row["step"] for row in read_rows(trainer.run.folder / "metrics.jsonl") if kind in row]


def test_a_killed_rank_is_named_and_its_run_resumes_on_one_and_on_three(make_trainer, registry):
    whole = make_trainer(*BATCH, folder="whole")
    expected = whole.train()
    with other_ranks(registry, 2) as others:
        trainer = make_trainer(*BATCH, others=others)

        def stop():
            if trainer.run.step == 6:
                os.kill(others.pids[0], signal.SIGKILL)
            return False

        trainer.stop = stop
        with pytest.raises(
            RankLost, match=r"^rank 1 \(process \d+ on .*\), of 2, is lost: .*; default/seed-1 is saved at step 6$"
        ):
            trainer.train()
    assert steps_of(trainer) == list(range(1, 7))
    assert manifest.read_state(trainer.state.existing("last")).step == 6
    alone = make_trainer(*BATCH)
    alone.stop = lambda: alone.run.step >= 8
    with pytest.raises(Interrupted):
        alone.train(resume=True)
    with other_ranks(registry, 3) as others:
        trainer = make_trainer(*BATCH, others=others)
        results = trainer.train(resume=True)
    assert steps_of(trainer) == list(range(1, 13)) and steps_of(trainer, "evaluation") == [4, 8, 12]
    assert results["valid"]["loss"] == pytest.approx(expected["valid"]["loss"], rel=1e-5)
    for (path, one), other in zip(whole.run.model.state_dict().items(), trainer.run.model.state_dict().values()):
        np.testing.assert_allclose(other.numpy(), one.numpy(), rtol=1e-3, atol=1e-5, err_msg=path)


@pytest.mark.parametrize("call", [37, 66], ids=["forward", "backward"])
def test_a_rank_that_is_killed_within_a_pass_is_named(make_trainer, registry, call):
    """Also where Paddle's backward pass makes another exception of it."""
    with other_ranks(registry, 2) as others:
        trainer, total, numbers = make_trainer(*BATCH, others=others), others.chain.total, []

        def dying(array, number):
            numbers.append(number)
            if len(numbers) == call:
                os.kill(others.pids[0], signal.SIGKILL)
                os.waitpid(others.pids.pop(), 0)
            return total(array, number)

        others.chain.total = dying
        with pytest.raises(RankLost, match=r"^rank 1 .* is lost: it has ended.* is saved at step 0$"):
            trainer.train()
    in_forward = 3 * sum(type(layer).__name__ == "BatchNorm" for layer in trainer.run.model.sublayers())
    assert numbers.count(1) == 2 and (numbers[-1] <= in_forward) == (call == 37)  # a probe, and one step


FAILING = """
import os
from paddle_tfm import hookimpl
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import FeedForward

FIRST = os.getpid()

class Failing(FeedForward):
    def __init__(self, d_model):
        super().__init__()
        self.map = Linear(d_model, d_model)

    def forward(self, x, info, tap):
        if os.getpid() != FIRST:
            raise MemoryError("no room")
        return self.map(x)

@hookimpl
def register_feed_forwards():
    return {"failing": Failing}
"""


def test_a_rank_that_fails_says_with_what(make_trainer, tmp_path):
    file = tmp_path / "failing.py"
    file.write_text(FAILING)
    registry = create_registry([file])
    with other_ranks(registry, 2) as others:
        trainer = make_trainer("model.feed_forward=failing", registry=registry, others=others)
        with pytest.raises(
            RankLost, match=r"rank 1 .* of 2, is lost: .*Failing.* failed \(.*failing\.py line 16.*no room"
        ):
            trainer.train()


def test_without_rank_0_the_others_end_with_a_sentence(registry, tmp_path, capfd):
    address = free_address()
    listener = listen(address)

    def zero():
        meet(listener, FACTS, 3)
        (tmp_path / "met").touch()
        time.sleep(60)

    pids = [forked(lambda: zero())]
    listener.close()
    for rank in (1, 2):
        pids.append(forked(lambda rank=rank: Rank(join(address, rank, 3, FACTS), registry).serve()))
    while not (tmp_path / "met").exists():
        time.sleep(0.01)
    started = time.monotonic()
    os.kill(pids[0], signal.SIGKILL)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert statuses == [-signal.SIGKILL, 2, 2] and time.monotonic() - started < 5
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith(f"[UserError] rank 0 ({address}) is lost: ") and "--resume continues it" in line


def test_a_rank_asks_all_to_stop(make_trainer, registry):
    with other_ranks(registry, 2, stop=lambda: True) as others:
        trainer = make_trainer(others=others)
        trainer.stop = lambda: others.asked_to_stop
        with pytest.raises(Interrupted):
            trainer.train()
    assert steps_of(trainer) == [1]


def test_rank_0_that_ends_before_all_met_is_no_wait(capfd):
    address = free_address()
    listener = listen(address)

    def one():
        listener.close()
        join(address, 1, 2, FACTS)

    pid = forked(one)
    time.sleep(0.3)
    listener.close()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
    assert f"rank 0 ({address}) ended before the training began" in capfd.readouterr().out
