"""A folder that somebody else filled holds modules named like those that we import: none of them is executed."""

import subprocess
import sys
from importlib.util import find_spec

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
