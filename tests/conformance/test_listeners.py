"""The kit over listeners: the template and the one that ships, and four with one mistake each, of the kinds that users
make. Each check trains a tiny model in processes of its own."""

from pathlib import Path

import pytest

from paddle_tfm import create_registry
from paddle_tfm.cli.plugin.new import write
from paddle_tfm.errors import UserError
from paddle_tfm.testing import EXPECTED_FAILURE, FAIL, PASS, SKIP, examine

APPENDS = """
from paddle_tfm import hookimpl

@hookimpl
def on_step_end(run, step, metrics):
    with open(run.folder / "steps.txt", "a") as file:
        file.write(f"{step}\\n")
"""
BUFFERS = """
from paddle_tfm import hookimpl

files = {}

@hookimpl
def on_run_start(run):
    files[run.folder] = open(run.folder / "steps.txt", "w" if run.step == 0 else "a")

@hookimpl
def on_step_end(run, step, metrics):
    files[run.folder].write(f"{step}\\n")
"""
RAISES = """
from paddle_tfm import hookimpl

@hookimpl
def on_evaluation_end(run, step, metrics, samples):
    print(metrics["nothing"])
"""
WAITS = """
import subprocess
from paddle_tfm import hookimpl

@hookimpl
def on_evaluation_end(run, step, metrics, samples):
    subprocess.run(["sleep", "601.5"])
"""
CHANGES = """
from paddle_tfm import hookimpl

@hookimpl
def on_step_end(run, step, metrics):
    weight = next(iter(run.model.parameters()))
    weight.set_value(weight * 0.9)
"""


def _report(text: str, *only: str):
    Path("plugin.py").write_text(text, "utf-8")
    return examine("listener", "plugin", registry=create_registry(["plugin.py"]), only=frozenset(only))


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.conformance
def test_one_that_appends_writes_steps_twice():
    outcome = _report(APPENDS, "resumes")["resumes"]
    assert outcome.status == FAIL
    assert outcome.detail.startswith("steps.txt has 8 lines after 8 steps, and 11 where the run was killed at step 7")


def test_there_is_no_listener_of_that_name_and_none_has_options():
    with pytest.raises(UserError, match="unknown listener 'listenr'; did you mean 'listener'"):
        examine("listener", "listenr")
    with pytest.raises(UserError, match="a listener has no options"):
        examine("listener", "listener", {"a": 1})


@pytest.mark.conformance
def test_what_waits_in_a_buffer_is_missing():
    outcome = _report(BUFFERS, "resumes")["resumes"]
    assert outcome.status == FAIL and "8 lines after 8 steps, and 4 where" in outcome.detail


@pytest.mark.conformance
def test_one_that_raises_is_quoted():
    outcome = _report(RAISES, "runs")["runs"]
    assert outcome.status == FAIL
    assert "plugin.py line 6, in on_evaluation_end" in outcome.detail and "KeyError: 'nothing'" in outcome.detail


@pytest.mark.conformance
def test_one_that_waits_for_ever_is_ended_and_says_where(monkeypatch):
    monkeypatch.setattr("paddle_tfm.testing.kinds.listener.TIMES_WITHOUT", 2)
    monkeypatch.setattr("paddle_tfm.testing.kinds.listener.GRACE", 3.0)
    Path("plugin.py").write_text(WAITS, "utf-8")
    report = examine("listener", "plugin", registry=create_registry(["plugin.py"]))
    assert [outcome.status for outcome in report] == [FAIL]  # the other checks would say nothing new
    detail = report["runs"].detail
    assert "it has not ended after" in detail and "plugin.py line 7, in on_evaluation_end" in detail
    sleeping = [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"sleep\x00601.5" in _content(path)]
    assert not sleeping


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process ended meanwhile
        return b""


@pytest.mark.conformance
def test_one_that_changes_the_run_fails_unless_its_module_says_so():
    report = _report(CHANGES, "same_metrics", "resumes")
    assert (report["same_metrics"].status, report["resumes"].status) == (FAIL, SKIP)
    declared = f'{CHANGES}\nexpected_failures = {{"same_metrics": "weights decay"}}\n'
    outcome = _report(declared, "same_metrics")["same_metrics"]
    assert (outcome.status, outcome.detail) == (EXPECTED_FAILURE, "weights decay")


@pytest.mark.conformance
def test_the_template_and_the_one_that_ships_pass():
    write("my-log", "listener")
    for report in (
        examine("listener", "listener"),
        examine("listener", "my_log", registry=create_registry(["my_log.py"])),
    ):
        assert [outcome.status for outcome in report] == [PASS, PASS, PASS], report
