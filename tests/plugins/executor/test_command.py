"""The executor `command` on commands that take a moment: quoting, how many at once, failures, queues, stopping."""

import subprocess
import sys
import time

import pytest
from fake_cells import FakeCell, FakeSupervisor, is_alive

from paddle_tfm import create_registry
from paddle_tfm_plugins.executor._shell import filled

SHOW = [sys.executable, "-c", "import sys; print(sys.argv[1:])"]
WORDS = ["a b", "task={name: copy, train: 80}", "it's", 'say "no"', "$HOME", "`id`", "back\\slash", "", "*", "é"]


@pytest.mark.parametrize(
    "template",
    [
        "{cell}",
        "env A=1 {cell}",
        "bash -c '{cell}'",
        'bash -c "{cell}"',
        "bash -c 'cd / && {cell}; true'",
        'sh -c "A=\\"1 2\\"; {cell}"',
        "echo \\' >/dev/null; {cell}",
        "cd '/'; bash -c '{cell}'",
    ],
)
def test_the_words_of_a_command_arrive_whole_behind_one_shell_or_two(template):
    done = subprocess.run(filled(template, [*SHOW, *WORDS]), shell=True, capture_output=True, text=True)
    assert done.stdout.strip() == repr(WORDS), done.stderr


# ------------------------------------------------------------------------------------------- cells that train nothing


@pytest.fixture
def supervisor():
    return FakeSupervisor()


def executor(**options):
    return create_registry().build("executor", {"name": "command", **options})


def test_as_many_run_at_once_as_is_said_and_each_once(tmp_path, supervisor):
    log = tmp_path / "log"
    line = f"echo + >> {log}; sleep 0.5; echo - >> {log}; finish"
    cells = [FakeCell(tmp_path, f"cell {i}", line) for i in range(5)]
    outcomes = list(executor(template="bash -c '{cell}'", at_once=2).run(cells, supervisor))
    assert sorted(cell.name for cell, _ in outcomes) == [cell.name for cell in cells]
    assert [failure for _, failure in outcomes] == [""] * 5
    running, most = 0, 0
    for sign in log.read_text().split():
        running += 1 if sign == "+" else -1
        most = max(most, running)
    assert (running, most, log.read_text().count("+")) == (0, 2, 5)


def test_a_failure_is_told_with_its_last_words_and_costs_one_cell(tmp_path, supervisor):
    lines = ["finish", "echo before; echo 'Error: no such data' >&2; exit 2", "kill -9 $$", "finish; exit 3"]
    cells = [FakeCell(tmp_path, str(i), line) for i, line in enumerate(lines)]
    failures = {cell.name: failure for cell, failure in executor().run(cells, supervisor)}
    assert failures == {
        "0": "",
        "1": "its command ended with exit status 2, and wrote last:\n  before\n  Error: no such data",
        "2": "its command was ended by SIGKILL, and wrote last:\n  Killed",  # as a shell says
        "3": "",  # it has results
    }


def test_what_waits_in_a_queue_is_waited_for(tmp_path, supervisor):
    """A command that only submits ends well at once; the results come later."""
    cell = FakeCell(tmp_path, "queued", "finish")
    start = time.monotonic()
    ((ended, failure),) = executor(template="(sleep 1; {cell}) > /dev/null 2>&1 &").run([cell], supervisor)
    assert (ended, failure) == (cell, "") and time.monotonic() - start > 1
    (sentence,) = supervisor.sentences
    assert sentence.startswith("queued: its command has ended without results, so it may wait in a queue")


def test_a_stop_is_passed_on_once_and_waits_for_what_is_saved(tmp_path, supervisor):
    """Behind a shell that ends at the signal, too."""
    saves = "trap 'sleep 1; echo saved >> saved; exit 130' TERM; touch begun; while :; do sleep 0.1; done"
    first = FakeCell(tmp_path, "first", f"cd {tmp_path}; {saves}")
    second = FakeCell(tmp_path, "second", f"touch {tmp_path}/never")
    supervisor.stopped = (tmp_path / "begun").exists
    assert list(executor(template="sh -c '{cell}; true'").run([first, second], supervisor)) == []
    assert (tmp_path / "saved").read_text() == "saved\n"
    assert not (tmp_path / "never").exists()


def test_nothing_is_left_behind_by_an_exception(tmp_path, supervisor):
    cell = FakeCell(tmp_path, "endless", f"echo $$ > {tmp_path}/pid; while :; do sleep 0.1; done")

    def interrupt(_):
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            raise KeyboardInterrupt

    supervisor.follow = interrupt
    with pytest.raises(KeyboardInterrupt):
        list(executor().run([cell], supervisor))
    pid = int((tmp_path / "pid").read_text())
    for _ in range(50):
        if not is_alive(pid):
            return
        time.sleep(0.1)
    raise AssertionError("the command still runs")
