"""One process at a time trains a run, and a dead one keeps nobody out."""

import json
import os
import signal
import subprocess
import sys

import pytest

from paddle_tfm.errors import UserError
from paddle_tfm.sweep.claim import FILE, claimed, is_claimed

HOLD = """
import sys
from pathlib import Path
from paddle_tfm.sweep.claim import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the claim of a folder."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_one_is_told_who_trains(holder, tmp_path):
    owner = json.loads((tmp_path / "run" / FILE).read_text("utf-8"))
    assert (owner["pid"], owner["host"]) == (holder.pid, os.uname().nodename)
    sentence = f"run is being trained by process {holder.pid} on {owner['host']}, since {owner['since']}"
    for _ in range(2):  # the first refusal takes nothing away from the holder
        with pytest.raises(UserError, match=sentence.replace("+", r"\+")), claimed(tmp_path / "run"):
            pass
    assert is_claimed(tmp_path / "run")
    holder.communicate("")
    assert not (tmp_path / "run").exists()
    with claimed(tmp_path / "run"):
        assert json.loads((tmp_path / "run" / FILE).read_text("utf-8"))["pid"] == os.getpid()


def test_one_that_was_killed_keeps_nobody_out(holder, tmp_path):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "run" / FILE).is_file() and not is_claimed(tmp_path / "run")
    with claimed(tmp_path / "run"):
        assert json.loads((tmp_path / "run" / FILE).read_text("utf-8"))["pid"] == os.getpid()
    assert not (tmp_path / "run").exists()


def test_what_was_written_stays_and_nothing_else(tmp_path):
    with claimed(tmp_path / "run"):
        (tmp_path / "run" / "metrics.jsonl").touch()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["metrics.jsonl"]
    with pytest.raises(ZeroDivisionError), claimed(tmp_path / "other"):
        print(1 / 0)
    assert not (tmp_path / "other").exists()
