"""A standard output that is full, that nobody reads or that is of another encoding, a current directory that is gone, and
environment variables that hold nonsense: a sentence."""

import os
import re
import subprocess
import sys

import pytest

PROGRAM = f"{sys.executable} -m paddle_tfm"
FULL = "Error: No space left on device\n"


def shell(command, folder, **variables):
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}".replace("paddle-tfm", PROGRAM)],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.parametrize(
    ("command", "status", "error"),
    [
        ("paddle-tfm ls > /dev/full", 2, FULL),
        ("paddle-tfm ls | true", 0, ""),
        ("mkdir gone; cd gone; rmdir ../gone; paddle-tfm check reverse", 2, "Error: the current directory: No such"),
    ],
)
def test_no_stream_or_folder_ends_in_a_traceback(command, status, error, tmp_path):
    left, _, said = shell(command, tmp_path)
    assert left == status and said.startswith(error) and said.count("\n") <= 1


def test_an_encoding_without_a_character_has_a_question_mark_there(tmp_path):
    (tmp_path / "绪论.yaml").write_text("base: reverse\nname: 绪论\nsummary: 绪论\n", "utf-8")
    status, out, said = shell("paddle-tfm show 绪论.yaml", tmp_path, PYTHONIOENCODING="latin-1", PYTHONUTF8="1")
    assert status == 0, said
    assert "name: ??" in out.decode("latin-1")


@pytest.mark.parametrize(
    ("variables", "command", "sentence"),
    [
        (
            {"PADDLE_TRAINER_ID": "abc"},
            "check reverse",
            "Paddle does not start: ValueError: .*; set in the environment: .*PADDLE_TRAINER_ID$",
        ),
        ({"PADDLE_TFM_DATA": "~nobody-here/x"}, "ls data", "PADDLE_TFM_DATA=~nobody-here/x: Could not determine home"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(variables, command, sentence, tmp_path):
    status, _, said = shell(f"paddle-tfm {command}", tmp_path, **variables)
    assert status == 2 and re.match(f"Error: {sentence}", said) and said.count("\n") == 1, said


def test_figures_need_no_backend(tmp_path):
    program = "from paddle_tfm.cli import main\ntry:\n main(['--version'])\nfinally:\n import matplotlib.pyplot"
    status, _, said = shell(f'{sys.executable} -c "{program}"', tmp_path, MPLBACKEND="nonsense")
    assert status == 0, said
