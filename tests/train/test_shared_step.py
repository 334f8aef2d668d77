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
from paddle_tfm.kernels.cpu import primitives
from paddle_tfm.train.divided.shards import number_of_shards
from paddle_tfm.train.divided.shared_step import ShardedStep

DROPOUT = "model.dropout=0.3"


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    yield
    processes.set_threads(1)


def backward(trainer, batches, number=1):
    """The loss of step 3 in so many shards, and the gradients by their paths; None where there is none."""
    trainer.run.model.train()
    with trainer.sharded_step(number) as step:
        assert len(workers(step)) == min(number, processes.available_workers()) - 1
        loss = step.backward(3, batches).loss
    gradients = {}
    for path, parameter in trainer.run.model.named_parameters():
        gradients[path] = None if parameter.grad is None else parameter.grad.numpy()
        parameter.clear_gradient(False)
    return loss, gradients


def workers(step):
    return step.workers if isinstance(step, ShardedStep) else []


def some(trainer, *sizes):
    """Several batches of so many rows."""
    examples, ends = trainer.run.encoded["train"], np.cumsum([0, *sizes])
    return [collate(examples[first:last]) for first, last in pairwise(ends)]


def held() -> int:
    """The bytes that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's /proc")
def test_what_asks_whether_a_batch_may_be_divided_keeps_no_memory(make_trainer):
    """Two sets of gradients, here of more than 30 MB each."""
    trainer = make_trainer("model.d_model=256", "model.d_ff=8192", "train.max_tokens=4096")
    size = sum(4 * int(np.prod(each.shape)) for each in trainer.step.parameters)
    assert size > 30e6, size
    before = held()
    assert number_of_shards(trainer.step, trainer.run.encoded["train"], rows=100) == 2
    assert (held() - before) / size < 0.5


@pytest.mark.parametrize(
    ("overrides", "number", "sizes"),
    [
        (["model.placement=post", "model.position=rotary", "train.label_smoothing=0.1"], 3, [8]),
        (["model.head=pointer", "model.position=shaw"], 4, [6, 1]),
        (["model.attention=linear", "train.r_drop=2.0"], 4, [6, 1]),
    ],
    ids=["post-rotary-smoothing", "pointer", "linear-r-drop"],
)
def test_shards_change_nothing_but_rounding(make_trainer, overrides, number, sizes):
    """With dropout, whose every row must be that of the whole batch; of fewer rows than shards, some are empty."""
    trainer = make_trainer(DROPOUT, *overrides)
    batches = some(trainer, *sizes)
    loss, whole = backward(trainer, batches)
    shared_loss, shared = backward(trainer, batches, number)
    assert shared_loss == pytest.approx(loss, rel=1e-5)
    size = np.sqrt(sum((gradient**2).sum() for gradient in whole.values() if gradient is not None))
    assert size > 0.1
    for path, gradient in whole.items():
        assert (gradient is None) == (shared[path] is None), path
        if gradient is not None:
            np.testing.assert_allclose(shared[path], gradient, atol=2e-6 * size, err_msg=path)


@pytest.mark.parametrize("overrides", [[], ["model.head=tied"]], ids=["plain", "tied"])
def test_the_number_of_processes_changes_no_bit(make_trainer, monkeypatch, overrides):
    """Three shards of several batches, by one process, by two, of which one has two shards, and by three."""
    trainer, outcomes = make_trainer(DROPOUT, *overrides), []
    batches = some(trainer, 5, 8)
    for number in ("1", "2", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", number)
        with processes.divided(3, 1):
            outcomes.append(backward(trainer, batches, 3))
    (loss, gradients), *others = outcomes
    for other_loss, others_gradients in others:
        assert other_loss == loss
        for path, gradient in gradients.items():
            np.testing.assert_array_equal(others_gradients[path], gradient, err_msg=path)


def test_a_kernel_that_was_made_for_other_threads_changes_no_bit(make_trainer, monkeypatch):
    """oneDNN divides sums among the threads that there are when it makes a kernel."""
    gradients = []
    for before in (1, 2):
        monkeypatch.setattr(primitives, "_OF_THREAD", primitives._Primitives())  # no kernel is made yet
        trainer = make_trainer("model.d_model=64", "train.max_tokens=2048", folder=str(before))
        batches = some(trainer, 90)
        processes.set_threads(before)
        backward(trainer, batches)
        with processes.divided(1, 1):
            gradients.append(backward(trainer, batches)[1])
    for path, gradient in gradients[0].items():
        np.testing.assert_array_equal(gradients[1][path], gradient, err_msg=path)


@pytest.mark.parametrize(
    "texts, shards", [("min_length: 2, max_length: 5", 4), ("min_length: 600, max_length: 670", 3)]
)
def test_there_are_no_more_shards_than_a_usual_batch_has_rows(make_trainer, monkeypatch, texts, shards):
    """Of four threads, with short texts and with three to a batch."""
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    task = f"task={{name: reverse, symbols: 5, {texts}, train: 60, valid: 4, test: 4}}"
    trainer = make_trainer(task, "model.max_length=700", "train.max_tokens=2048")
    assert trainer.shards() == shards


def test_workers_see_the_weights_of_every_step(make_trainer):
    """Also those that something else than the optimizer has set."""
    losses = {}
    for number in (1, 2):
        trainer, losses[number] = make_trainer(DROPOUT), []
        trainer.run.model.train()
        with trainer.sharded_step(number) as update:
            for step in range(1, 6):
                losses[number].append(update(step, some(trainer, 6)).loss)
                for parameter in update.parameters:
                    if step == 2:
                        parameter.set_value(parameter.numpy() * 0.5)
                    if step == 3:  # in other memory
                        paddle.to_tensor(parameter.numpy() * 0.5)._share_buffer_to(parameter)
    assert losses[2] == pytest.approx(losses[1], rel=1e-4)
    assert len(set(losses[1])) == 5


class Forgetful(nn.Layer):
    """Dropout from Paddle's own generator, as an author might write it."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *arguments, **more):
        return nn.functional.dropout(self.inner(*arguments, **more), 0.2)


@pytest.mark.parametrize(
    "override",
    [
        "model.norm=batch",
        "model.norm=batch_per_position",
        "model.feed_forward=mixture_of_experts",
        "model.feed_forward=deepseek_moe",
        None,
    ],
)
def test_what_looks_at_whole_batches_is_not_shared(make_trainer, override):
    trainer = make_trainer("train.shards=2", *([override] if override else []))
    if override is None:
        trainer.run.model.target_embedding = Forgetful(trainer.run.model.target_embedding)
    before = {name: value.numpy().copy() for name, value in trainer.run.model.state_dict().items()}
    trainer.run.model.train()
    with trainer.sharded_step() as step:
        assert step is trainer.step
    assert all(parameter.grad is None for parameter in trainer.step.parameters)
    for name, value in trainer.run.model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name], err_msg=f"looking has changed {name}")


def test_without_a_word_there_are_as_many_shards_as_threads(make_trainer, monkeypatch):
    trainer = make_trainer("train.max_tokens=2048")
    assert trainer.shards() == 2
    assert make_trainer("train.max_tokens=600", folder="small").shards() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert trainer.shards() == 1
    with trainer.sharded_step() as step:
        assert step is trainer.step


def test_a_paddle_that_cannot_move_parameters_shares_nothing(make_trainer, monkeypatch):
    trainer = make_trainer("train.max_tokens=2048")
    assert trainer.shards() == 2
    monkeypatch.delattr(paddle.Tensor, "_share_buffer_to")
    assert trainer.shards() == 1
    with trainer.sharded_step(2) as step:
        assert not workers(step)


def test_the_death_of_a_worker_is_reported(make_trainer):
    trainer = make_trainer()
    with trainer.sharded_step(2) as step:
        os.kill(step.workers[0].pid, signal.SIGKILL)
        with pytest.raises(UserError, match=r"was ended by SIGKILL; if memory ran out, .* OMP_NUM_THREADS=1"):
            step(1, some(trainer, 6))


def test_workers_end_with_a_parent_that_is_killed():
    """A worker waits for tasks on a pipe whose other end closes with its parent."""

    def have_workers(sender):
        workers = [processes.Worker(lambda task: task) for _ in range(2)]
        sender.send([worker.pid for worker in workers])
        time.sleep(60)

    context = multiprocessing.get_context("fork")  # of this process, which has Paddle already
    receiver, sender = context.Pipe(duplex=False)
    parent = context.Process(target=have_workers, args=(sender,))
    parent.start()
    pids = receiver.recv()
    assert len(pids) == 2 and all(Path(f"/proc/{pid}").exists() for pid in pids)
    parent.kill()
    parent.join()
    for pid in pids:
        subprocess.run(["tail", f"--pid={pid}", "-f", "/dev/null"], timeout=20, check=True)
