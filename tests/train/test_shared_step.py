"""A batch shared among processes has the gradients of the whole; what cannot be shared is not."""

import multiprocessing
import os
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import paddle
import pytest
from paddle import nn

from paddle_tfm import UserError, processes
from paddle_tfm.data.batches import collate
from paddle_tfm.train.shared_step import Gradients, Update

DROPOUT = "model.dropout=0.3"


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    yield
    paddle.base.core.set_num_threads(1)


def of(trainer, update, number=1):
    """The loss, and the gradients by their paths; None where there is none."""
    gradients = Gradients(trainer.run, trainer.parameters)
    trainer.run.model.train()
    with gradients.shared(number):
        assert len(gradients.helpers) == number - 1
        loss = gradients.add(update)
    found = {}
    for path, parameter in trainer.run.model.named_parameters():
        found[path] = None if parameter.grad is None else parameter.grad.numpy()
        parameter.clear_gradient(False)
    return loss, found


def some(trainer, *sizes):
    """An update of several batches of so many rows."""
    examples, ends = trainer.run.encoded["train"], np.cumsum([0, *sizes])
    return Update(3, [collate(examples[first:last]) for first, last in pairwise(ends)])


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["model.placement=post", "model.position=rotary", "train.label_smoothing=0.1"],
        ["model.head=pointer", "model.position=shaw"],
        ["train.r_drop=2.0"],
        ["model.attention=linear", "model.norm=rms", "model.feed_forward=swiglu"],
    ],
    ids=["plain", "post-rotary-smoothing", "pointer", "r-drop", "linear"],
)
@pytest.mark.parametrize(("number", "sizes"), [(2, [7]), (3, [8]), (2, [4, 5])])
def test_shares_change_nothing_but_rounding(make_trainer, overrides, number, sizes):
    """With dropout, whose every row must be that of the whole batch."""
    trainer = make_trainer(DROPOUT, *overrides)
    update = some(trainer, *sizes)
    loss, whole = of(trainer, update)
    shared_loss, shared = of(trainer, update, number)
    assert shared_loss == pytest.approx(loss, rel=1e-5)
    size = np.sqrt(sum((gradient**2).sum() for gradient in whole.values() if gradient is not None))
    assert size > 0.1
    for path, gradient in whole.items():
        assert (gradient is None) == (shared[path] is None), path
        if gradient is not None:
            np.testing.assert_allclose(shared[path], gradient, atol=2e-6 * size, err_msg=path)


def test_a_batch_of_too_few_rows_is_one_processs(make_trainer, monkeypatch):
    """With all the threads; the next batch is shared again."""
    trainer, threads = make_trainer(DROPOUT), []
    set_threads = processes.set_threads
    monkeypatch.setattr(processes, "set_threads", lambda number: threads.append(number) or set_threads(number))
    expected = [of(trainer, some(trainer, *sizes))[0] for sizes in [(1,), (6, 1), (6,)]]
    trainer.run.model.train()
    with trainer.gradients.shared(2):
        del threads[:]
        found = [trainer.gradients.add(some(trainer, *sizes)) for sizes in [(1,), (6, 1), (6,)]]
        assert threads == [2, 1, 2, 1]
    assert found == pytest.approx(expected, rel=1e-5)


def test_helpers_see_the_weights_of_every_step(make_trainer):
    """Also those that something else than the optimizer has set."""
    told = {}
    for number in (1, 2):
        trainer, told[number] = make_trainer(DROPOUT), []
        trainer.run.model.train()
        with trainer.gradients.shared(number):
            for step in range(1, 6):
                told[number].append(trainer.update(step, some(trainer, 6).batches)["loss"])
                for parameter in trainer.parameters:
                    if step == 2:
                        parameter.set_value(parameter.numpy() * 0.5)
                    if step == 3:  # in other memory
                        paddle.to_tensor(parameter.numpy() * 0.5)._share_buffer_to(parameter)
    assert told[2] == pytest.approx(told[1], rel=1e-4)
    assert len(set(told[1])) == 5


class Forgetful(nn.Layer):
    """Dropout from Paddle's own generator, as an author might write it."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *arguments, **more):
        return nn.functional.dropout(self.inner(*arguments, **more), 0.2)


@pytest.mark.parametrize(
    "override", ["model.norm=batch", "model.norm=batch_per_position", "model.feed_forward=mixture_of_experts", None]
)
def test_what_looks_at_whole_batches_is_not_shared(make_trainer, override):
    trainer = make_trainer(*([override] if override else []))
    if override is None:
        trainer.run.model.target_embedding = Forgetful(trainer.run.model.target_embedding)
    before = {name: value.numpy().copy() for name, value in trainer.run.model.state_dict().items()}
    trainer.run.model.train()
    with trainer.gradients.shared(2):
        assert trainer.gradients.helpers == []
    assert all(parameter.grad is None for parameter in trainer.parameters)
    for name, value in trainer.run.model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name], err_msg=f"looking has changed {name}")


def test_one_thread_shares_nothing(make_trainer, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    trainer = make_trainer()
    with trainer.gradients.shared(2):
        assert trainer.gradients.helpers == []


def test_the_death_of_a_helper_is_told(make_trainer):
    trainer = make_trainer()
    with trainer.gradients.shared(2):
        os.kill(trainer.gradients.helpers[0].pid, signal.SIGKILL)
        with pytest.raises(UserError, match=r"died; if memory ran out, .* OMP_NUM_THREADS=1"):
            trainer.update(1, some(trainer, 6).batches)


def test_helpers_end_with_a_parent_that_is_killed():
    """A helper waits for questions on a pipe whose other end closes with its parent."""

    def have_helpers(sender):
        helpers = [processes.Helper(lambda question: question) for _ in range(2)]
        sender.send([helper.pid for helper in helpers])
        time.sleep(60)

    context = multiprocessing.get_context("fork")  # of this process, which has Paddle already
    receiver, sender = context.Pipe(duplex=False)
    parent = context.Process(target=have_helpers, args=(sender,))
    parent.start()
    pids = receiver.recv()
    assert len(pids) == 2 and all(Path(f"/proc/{pid}").exists() for pid in pids)
    parent.kill()
    parent.join()
    for pid in pids:
        subprocess.run(["tail", f"--pid={pid}", "-f", "/dev/null"], timeout=20, check=True)
