"""Texts of a corpus that a terminal would take for commands: none reaches it, wherever they are printed."""

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import TINY, call, in_terminal

from paddle_tfm.cli.common import visible

COMMANDS = ["\x1b[31m", "\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "\x08", "\r", "\x7f"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The folder of a comparison of two seeds on texts with a command each, and its recipe."""
    folder = tmp_path_factory.mktemp("hostile")
    pairs = [f"a{n} {command}b\tb{command} a{n}" for n in range(20) for command in COMMANDS if command != "\r"]
    (folder / "texts.tsv").write_text("\n".join(pairs) + "\n", "utf-8")
    of_each = ", ".join(f"{split}: {folder / 'texts.tsv'}" for split in ("train", "valid", "test"))
    (folder / "mine.yaml").write_text(f"base: base.yaml\ntask: {{name: parallel, {of_each}}}\n")
    return folder


@pytest.mark.reliability
def test_no_command_reaches_the_terminal(hostile, tmp_path):
    recipe, out = hostile / "mine.yaml", tmp_path / "out"
    run = call("run", recipe, *[text for text in TINY if not text.startswith("task")], "--out", out)
    assert run.status == 0, run.err
    outputs = [run, call("ls", "data", recipe), call("compare", out), call("evaluate", out / "default" / "seed-1")]
    assert "␛[31mb" in run.out  # a sample, shown
    for output in outputs:
        for stream in (output.out, output.err):
            assert re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f].*", stream) == []


@pytest.fixture(scope="module")
def named(trained, tmp_path_factory):
    """Two runs, of which one's folder and variant are called by what a terminal takes for commands."""
    out = tmp_path_factory.mktemp("named") / "out"
    for variant in ("plain", "x\x1b[2J\x9b2J"):
        run = Path(shutil.copytree(trained.folder, out / variant / "seed-1"))
        results = json.loads((run / "results.json").read_text())
        (run / "results.json").write_text(json.dumps(results | {"variant": variant}))
        (run / "manifest.json").unlink()
    return out


@pytest.mark.reliability
def test_a_name_commands_no_terminal(named, tmp_path):
    """Tables and reports are mended wherever they go; what programs read is, on a terminal."""
    compared = call("compare", *sorted(named.glob("*/seed-1")), "--out", tmp_path)
    assert compared.status == 0, compared.err
    for text in (compared.out, compared.err, in_terminal(100, "ls", "runs", "--csv", named)):
        assert re.search(r"x␛\[2J\ufffd2J", text) or text == compared.err
        of_colours = re.compile(r"\x1b\[[0-9;]*m")
        assert re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f].*", of_colours.sub("", text)) == []
    page = tmp_path / "page"
    assert call("report", named, "--out", page).status == 0
    written = {file: file.read_text("utf-8") for file in page.rglob("*") if file.suffix in (".html", ".tex", ".svg")}
    assert {file.suffix for file in written} == {".html", ".tex", ".svg"}
    for file, text in written.items():
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), file
        if file.suffix == ".svg":
            ElementTree.fromstring(text)
    assert "x␛[2J\ufffd2J" in written[page / "comparison.html"]


def test_an_error_or_help_holds_none_either(tmp_path):
    recipe = tmp_path / "red.yaml"
    recipe.write_text('base: base.yaml\ntask: {name: "\\e[31mcopy"}\n')
    shown = call("run", Path("\x1b[31mred.yaml"), "--help")
    assert shown.status == 0 and "run ␛[31mred.yaml" in shown.out and "\x1b" not in shown.out
    for arguments in (["check", recipe], ["check", Path("\x1b[31mred.yaml")], ["ls", "--\x1b[31m"]):
        done = call(*arguments)
        assert done.status == 2 and "\x1b" not in done.err
        assert "[31m" in done.err


def test_what_is_visible_is_as_it_was():
    text = "绪论\tnaïve – “ ” \n e\u0301 \u0634"
    assert visible(text) == text
    assert visible("\x00\x1b\x7f\x85") == "␀␛␡\ufffd"
