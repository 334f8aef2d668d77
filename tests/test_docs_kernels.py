"""docs/kernels.md is followed to the letter: its files are written, its kernels checked. The Chinese page has the same code
(tests/test_translations.py)."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from paddle_tfm.cli import main

pytestmark = pytest.mark.pages

TEXT = (Path(__file__).parent.parent / "docs/kernels.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)  # (language, text)
FAST, BY_C = (text for language, text in BLOCKS if language == "python")
(C,) = (text for language, text in BLOCKS if language == "c")
PASSED, SAME, FAILED = (text for language, text in BLOCKS if language == "")
COMMANDS = [
    shlex.split(line, comments=True) for language, text in BLOCKS if language == "bash" for line in text.splitlines()
]
BY_NUMPY = FAST[FAST.index("class Deviation(") : FAST.index("@hookimpl")]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def tell(capsys, *words):
    """(exit status, standard output) of a command."""
    with pytest.raises(SystemExit) as end:
        main([*words])
    return end.value.code, capsys.readouterr().out


def lines(report):
    """The lines of a report, but for counts of signals."""
    return [re.sub(r"\d,\d{3} signals", "signals", line) for line in report.splitlines()]


def check(capsys, text):
    Path("fast_norm.py").write_text(text, "utf-8")
    return tell(capsys, *COMMANDS[0][1:])


def test_the_kernel_in_numpy_passes_as_the_page_shows(capsys):
    status, out = check(capsys, FAST)
    assert status == 0
    assert lines(out) == lines(PASSED)


def test_a_step_gives_the_same_by_the_kernel(capsys):
    Path("fast_norm.py").write_text(FAST, "utf-8")
    status, out = tell(capsys, *COMMANDS[1][1:])
    assert status == 0
    shown, here = (
        re.sub(r"[\d.e-]+ ms|[\d.]+ ×|\d\.\d+e-\d+|\d\.\d{4,}", "…", text.splitlines()[-2]) for text in (SAME, out)
    )
    assert shown == here
    for text in (SAME, out):  # which others compute, the processor decides
        assert "deviation 12" in text.splitlines()[-1]


def test_a_mean_that_is_forgotten_is_seen_as_the_page_shows(capsys):
    right = "        of_x = of_c - of_c.mean(-1, keepdims=True)\n"
    assert FAST.count(right) == 1
    Path("fast_norm.py").write_text(FAST.replace(right, "        of_x = of_c\n"), "utf-8")
    (line,) = re.findall(r"^`paddle-tfm (plugin check --brief .*)`:$", TEXT, re.MULTILINE)
    status, out = tell(capsys, *shlex.split(line))
    assert status == 1
    assert lines(out)[-2:] == lines(FAILED)[-2:]
    (seen,) = re.findall(r"fail +same_as_formula +(.*?) is ", out)
    assert f"same_as_formula         {seen} is " in FAILED


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_the_kernel_in_c_passes(capsys):
    (compiler,) = (words for words in COMMANDS if words[0] == "gcc")
    Path("deviation.c").write_text(C, "utf-8")
    subprocess.run(compiler, check=True)
    status, out = check(capsys, FAST.replace(BY_NUMPY, f"{BY_C}\n\n"))
    assert (status, lines(out)) == (0, lines(PASSED)), out
