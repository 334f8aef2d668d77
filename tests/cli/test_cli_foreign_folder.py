"""A folder that somebody else filled holds modules named like those that we import: none of them is executed."""

import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from command_line import TINY

from paddle_tfm import runtime

pytestmark = [
    pytest.mark.reliability,
    pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 always looks in the current folder"),
]
MODULES = (
    "json",
    "numpy",
    "flask",
    "click",
    "socket",
    "subprocess",
    "paddle",
    "yaml",
    "safetensors",
    "visualdl",
    "pydantic",
)
ONCE = [*TINY, "seeds=[1]"]
RAY = pytest.param("ray", marks=[pytest.mark.cluster, pytest.mark.skipif(not find_spec("ray"), reason="no Ray")])


@pytest.fixture
def foreign(tmp_path):
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text("import os; os.mkdir(os.path.join(os.path.dirname(__file__), 'executed'))")
    return tmp_path


@pytest.mark.parametrize("executor", ["{name: command, template: '{cell}'}", RAY])
def test_no_command_executes_what_lies_there(foreign, executor):
    command = [*runtime.python(), "-m", "paddle_tfm", "run", "reverse", *ONCE, f"--executor={executor}"]
    done = subprocess.run(command, cwd=foreign, capture_output=True, text=True)
    assert not (foreign / "executed").exists()
    assert done.returncode == 0, done.stderr


def wait_for(address):
    """Until a server answers there, whatever it answers."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            return urlopen(address)
        except HTTPError as answer:
            return answer
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(address)


def test_nor_do_the_curves(foreign):
    (foreign / "runs").mkdir()
    (foreign / "runs" / "vdlrecords.1.log").touch()
    (foreign / ".env").write_text("no assignment")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [*runtime.python(), "-m", "paddle_tfm", "board", f"--port={port}"]
    with (foreign / "said").open("wb") as said:
        unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
        board = subprocess.Popen(command, cwd=foreign, stdout=said, stderr=said, env=unbuffered)
    try:
        wait_for(f"http://127.0.0.1:{port}/")
        assert board.poll() is None
    finally:
        board.kill()
        board.wait()
    assert not (foreign / "executed").exists()
    assert "dotenv" not in (foreign / "said").read_text()  # who reads it says that, or who would and cannot
