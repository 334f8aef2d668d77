"""`doctor` says what is wrong with an installation, and how to mend it."""

import re

from command_line import call

from paddle_tfm import blas, create_registry
from paddle_tfm.cli import doctor


class Lines(doctor.Report):
    """A report that keeps its lines."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def add(self, mark, subject, message):
        self.lines.append((mark, subject, message))
        super().add(mark, subject, message)


def test_the_path_in_use_is_measured():
    done = call("doctor")
    assert done.status == 0, done.out
    (line,) = re.findall(r"^ok +blas +path '(\w+)': \d+ GFLOP/s, in NumPy \d+ ", done.out, re.M)
    assert line == blas.path_in_use()
    assert re.search(r"^ok +plugins +\d+ plugins with \d+ components", done.out, re.M)


def test_wrong_products_and_slow_ones_have_a_solution(monkeypatch):
    monkeypatch.setattr(blas, "deviation", lambda: 1.0)
    monkeypatch.setattr(blas, "path_in_use", lambda: "avx512")
    monkeypatch.setattr(blas.Processor, "paths", ["avx512", "avx2"])
    report = Lines()
    doctor._blas(report)
    ((mark, _, message),) = report.lines
    assert mark == "bad" and report.broken
    assert "products are wrong by 1; set MKL_DEBUG_CPU_TYPE=5" in message
    monkeypatch.setattr(blas, "deviation", lambda: 0.0)
    rates = [30.0, 100.0]  # of Paddle, of NumPy
    monkeypatch.setattr(doctor, "_rate", lambda product: rates.pop())
    report = Lines()
    doctor._blas(report)
    assert [mark for mark, *_ in report.lines] == ["ok", "note"] and "slow beside NumPy" in report.lines[1][2]


def test_a_plugin_that_failed_to_load_is_named(monkeypatch):
    registry = create_registry()
    registry.plugins.failures["broken"] = "ImportError: no module"
    monkeypatch.setattr(doctor, "create_registry", lambda files: registry)
    report = Lines()
    doctor._plugins(report, [])
    assert report.lines[1][2].startswith("broken failed to load: ImportError: no module. Repair or uninstall it")
