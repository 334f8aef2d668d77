"""`doctor` measures every path of the BLAS in a process of its own, so that a bad one is a line and not an end."""

import os
import subprocess
import sys

import pytest

from paddle_tfm import blas
from paddle_tfm.cli import doctor


class Lines(doctor.Report):
    """A report that keeps its lines."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def add(self, mark, subject, message):
        self.lines.append((mark, subject, message))
        super().add(mark, subject, message)


def test_the_rate_and_the_error_of_every_path_are_printed():
    clean = {name: value for name, value in os.environ.items() if name != blas.VARIABLE}
    script = "from paddle_tfm.cli import main; main(['doctor'])"
    done = subprocess.run([sys.executable, "-c", script], env=clean, capture_output=True, text=True, check=True)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for path in blas.Processor.read().paths:
        assert sum(f"ok blas path '{path}' (" in line for line in lines) == 1, done.stdout
    assert sum("(in use)" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("paddle", "fault"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "ends the process with signal 4"),
        ("raise OSError('no such instruction')", "fails: OSError: no such instruction"),
    ],
)
def test_a_path_whose_process_ends_is_reported(monkeypatch, tmp_path, paddle, fault):
    (tmp_path / "paddle").mkdir()
    (tmp_path / "paddle" / "__init__.py").write_text(paddle)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert doctor._measure(None) == fault
    report = Lines()
    doctor._blas(report)
    assert report.broken
    assert report.lines[0] == ("bad", "blas", f"path '{blas.path_in_use()}' (in use): a matrix product {fault}")
    assert {mark for mark, *_ in report.lines[1:]} <= {"note"}


def test_a_faster_path_is_proposed():
    report = Lines()
    doctor._judge(report, "avx2", {"avx2": 80.0, "avx512": 150.0}, 150.0)
    doctor._judge(report, "avx2", {"avx2": 80.0, "avx512": 85.0}, 150.0)
    doctor._judge(report, "avx2", {"avx2": 30.0}, 150.0)
    assert [mark for mark, *_ in report.lines] == ["note", "note"]
    assert "path 'avx512' is faster than 'avx2' here: set MKL_DEBUG_CPU_TYPE=7" in report.lines[0][2]
    assert "slow beside NumPy" in report.lines[1][2]


def test_what_a_plugin_holds_is_counted_and_a_listener_said_to_listen(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from paddle_tfm import hookimpl\nfrom paddle_tfm_plugins.norm.rms import RMSNorm\n\n\n"
        "@hookimpl\ndef register_norms():\n    return {'mine': RMSNorm}\n\n\n@hookimpl\ndef on_step_end(run, step):\n    pass\n"
    )
    report = Lines()
    doctor._plugins(report, [file])
    said = {message.split(" (")[0]: message.split(": ")[-1] for _, _, message in report.lines}
    assert said["mine"] == "1 component, listens to trainings" and said["listener"] == "listens to trainings"
    assert said["executor"].endswith(" components")
