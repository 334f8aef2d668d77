"""The pytest plugin: nothing for a stranger's tests, a test for each check where one is asked for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paddle_tfm.cli.plugin.new import write
from paddle_tfm.testing import checks

pytestmark = pytest.mark.conformance

OURS = ("OMP_NUM_THREADS", "MKL_DEBUG_CPU_TYPE", "FLAGS_use_stride_kernel", "GLOG_minloglevel")

STRANGER = """
import json, os, sys

import pytest


@pytest.mark.conformance  # a mark that others may use, for what they like
def test_mine():
    before = json.load(open("environment.json"))
    now = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    assert now == before
    assert [name for name in sys.modules if name.split(".")[0] in ("paddle", "paddle_tfm", "numpy")] == []
"""

OWN = """
import pytest
from paddle import Tensor, nn

from paddle_tfm.protocols import Norm


class Half(Norm):
    def __init__(self, d_model, gain=0.5):
        super().__init__()
        self.gain = gain
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))

    def forward(self, x, valid=None, positions=None):
        return x * self.gain * self.weight


class Scale(nn.Layer):
    def __init__(self, dim):
        super().__init__()
        self.weight = self.create_parameter([dim])

    def forward(self, x):
        return x * self.weight.numpy()


@pytest.mark.conformance(component=Half, gain=0.25)
def test_half(conformance_check):
    conformance_check()


@pytest.mark.conformance(component=Scale, as_kind="norm")
def test_scale(conformance_check):
    conformance_check()


@pytest.mark.conformance(component=Half, gian=0.25)
def test_misspelt(conformance_check):
    conformance_check()


def test_unmarked(conformance_check):
    conformance_check()
"""


def test_a_strangers_session_keeps_its_environment_and_never_imports_paddle(tmp_path):
    (tmp_path / "test_somebody.py").write_text(STRANGER, "utf-8")
    environment = {k: v for k, v in os.environ.items() if k not in OURS and not k.startswith("PYTEST")}
    (tmp_path / "environment.json").write_text(json.dumps(environment), "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    session = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert session.returncode == 0 and "1 passed" in session.stdout, session.stdout + session.stderr


@pytest.fixture
def session(tmp_path, monkeypatch, capsys):
    """pytest over what lies in an empty folder, within this process, which has Paddle: what it says."""
    monkeypatch.chdir(tmp_path)

    def run(selection: str, *arguments: str) -> str:
        pytest.main(["-p", "no:cacheprovider", "-n", "0", "-k", selection, *arguments])
        return capsys.readouterr().out

    yield run
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def test_there_is_a_test_for_each_check_with_its_consequence_and_a_hint_and_a_wrong_mark_is_one_sentence(session):
    Path("test_somebody.py").write_text(OWN, "utf-8")
    Path("test_wrong.py").write_text(OWN.replace(', as_kind="norm"', ""), "utf-8")
    selection = (
        "(test_half and (invariances or runs))"
        " or (scale and (trains or half_precision)) or (misspelt and runs) or unmarked"
    )
    said = session(selection, "--continue-on-collection-errors")
    assert f"2 failed, 2 passed, 1 skipped, {3 * len(checks('norm')) + 1 - 6} deselected" in said, said
    assert "needs a component, but is <class 'test_wrong.Scale'>" in said
    assert "hint: tensors that went through NumPy" in said
    assert "did you mean 'gain'" in said
    assert "must be marked with @pytest.mark.conformance(component=MyClass)" in said


def test_a_new_package_passes_its_own_tests(session, tmp_path, monkeypatch):
    """As after `pip install -e .`, which puts its folder on the path."""
    new = write("my-norm", "norm", out=Path("my-norm"))
    assert new.advice.splitlines()[0] == 'pip install -e "my-norm[test]"'
    monkeypatch.syspath_prepend(tmp_path / "my-norm")
    assert "3 passed" in (said := session("invariances or registered or runs", "my-norm")), said
