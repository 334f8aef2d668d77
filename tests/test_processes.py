"""Work shared among processes: the same results, complaints that arrive, and nobody left behind."""

import gc
import os
import signal
import time
from pathlib import Path

import paddle
import pytest

from paddle_tfm import UserError, paddle_compat, processes


@pytest.fixture(autouse=True)
def three_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    yield
    processes.set_threads(1)


def children():
    """The forks of this process that have not ended."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_every_item_is_done_once():
    x = paddle.arange(12, dtype="float32")
    before = children()
    results = dict(processes.imap_unordered(lambda item: (float((x * item).sum()), os.getpid()), [3, 1, 4, 1, 5, 9, 2]))
    assert [results[i][0] for i in range(7)] == [66.0 * item for item in [3, 1, 4, 1, 5, 9, 2]]
    pids = {pid for _, pid in results.values()}
    assert os.getpid() not in pids and 1 <= len(pids) <= 3
    assert children() == before


def test_one_thread_or_one_item_needs_no_other_process(monkeypatch):
    assert list(processes.imap_unordered(lambda item: os.getpid(), [0])) == [(0, os.getpid())]
    assert list(processes.imap_unordered(lambda item: item, [])) == []
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert {pid for _, pid in processes.imap_unordered(lambda item: os.getpid(), [0, 1])} == {os.getpid()}


def test_work_goes_to_whoever_is_free():
    """One long item, and many short ones beside it."""
    done = [i for i, _ in processes.imap_unordered(lambda seconds: time.sleep(seconds), [1.0, *[0.01] * 20])]
    assert done[-1] == 0


CTRL_C_AT_FORKS = []
os.register_at_fork(after_in_parent=lambda: [os.kill(os.getpid(), number) for number in CTRL_C_AT_FORKS])


def test_ctrl_c_during_a_fork_is_not_lost(monkeypatch):
    """An exception inside the functions that Python runs at a fork is printed and forgotten."""
    handler = signal.getsignal(signal.SIGINT)
    monkeypatch.setitem(globals(), "CTRL_C_AT_FORKS", [signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        list(processes.imap_unordered(lambda item: item, [1, 2, 3]))
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) == handler


def refuse(item):
    if item == 2:
        raise UserError("line 3: nothing to translate")
    if item == 5:
        raise KeyError("unexpected")
    if item == 7:
        raise MemoryError("too long")
    return item


def test_what_a_process_complains_of_is_heard():
    before = children()
    with pytest.raises(UserError, match=r"^line 3: nothing to translate$"):
        list(processes.imap_unordered(refuse, [1, 2, 3]))
    with pytest.raises(RuntimeError, match=r"(?s)Traceback.*KeyError: 'unexpected'"):
        list(processes.imap_unordered(refuse, [1, 5, 3]))
    with pytest.raises(MemoryError, match=r"^too long$"):
        list(processes.imap_unordered(refuse, [1, 7, 3]))
    assert children() == before


def test_who_looks_no_further_ends_the_others():
    before = children()
    for _ in processes.imap_unordered(lambda item: time.sleep(0.01 if item == 0 else 30), [0, 1, 2, 3]):
        break
    assert children() == before


def test_an_answer_that_cannot_be_sent_is_reported():
    with pytest.raises(RuntimeError, match=r"(?s)Can't.*pickle|cannot pickle"):
        list(processes.imap_unordered(lambda item: lambda: item, [0, 1]))


class Remains:
    """Garbage that only a garbage collection finds, and that says so."""

    def __init__(self, said):
        self.said, self.itself = said, self

    def __del__(self):
        self.said.append(os.getpid())


def test_garbage_of_the_parent_is_not_collected_in_a_fork():
    """Paddle's store waits in its destructor for a thread, which a fork does not have."""
    said = []
    Remains(said)
    worker = processes.Worker(lambda task: (gc.collect(), [*said])[1])
    worker.submit(None)
    assert worker.result() == []
    worker.close()
    gc.collect()
    assert said == [os.getpid()]


def test_a_share_of_the_threads_ends_with_its_block():
    with processes.share_of_threads(3):
        assert (os.environ["OMP_NUM_THREADS"], paddle_compat.num_threads()) == ("1", 1)
    assert (os.environ["OMP_NUM_THREADS"], paddle_compat.num_threads()) == ("3", 3)
