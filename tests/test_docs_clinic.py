"""docs/clinic.md: its checks exist, its commands are understood, its rows are the recipe's variants."""

import re
import shlex
import textwrap
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.cli import group, main
from paddle_tfm.recipe.reading import shipped
from paddle_tfm.testing import checks

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs/clinic.md").read_text("utf-8")
RECIPE = "findings/why-mine-fails"
KINDS = ("attention", "norm", "position", "placement", "head", "initializer", "encoder-decoder")


def section(number):
    return re.split(r"^## (?=\d )", TEXT, flags=re.MULTILINE)[number]


def tables():
    """The rows of the two tables of symptoms: curves and outputs, errors."""
    return [
        re.findall(r"^\| .*?\|$", table, re.MULTILINE)[1:]
        for table in re.findall(r"(?:^\|.*\n)+", section(1), re.MULTILINE)
    ]


def named(row):
    """The checks in a row's last column."""
    return re.findall(r"`(\w+)`", row.rsplit("|", 2)[1])


def test_every_check_it_names_is_one():
    known = {check.name for kind in KINDS for check in checks(kind)} | {"norm_discrepancy_mean"}
    assert [len(rows) for rows in tables()] == [14, 6]
    for rows in tables():
        assert all(named(row) for row in rows)
        assert {name for row in rows for name in named(row)} <= known
    assert set(re.findall(r"^\*\*[^*]+\*\* ?[（(].*?`(\w+)`", section(4), re.MULTILINE)) <= known


def test_its_table_has_the_variants_of_the_recipe():
    rows = re.findall(r"^\| `([\w-]+)` \|", section(3), re.MULTILINE)
    assert sorted(rows) == sorted({run.variant for run in load_recipe(RECIPE).runs()})
    assert f"{load_recipe(RECIPE).runs()[0].settings.train.steps}" in section(3)


def test_its_code_is_python_and_its_commands_are_understood():
    code = re.findall(r"^```python\n(.*?)^```", section(4), re.DOTALL | re.MULTILINE)
    assert len(code) == 14
    for block in code:
        compile("def f(self):\n" + textwrap.indent(block, "    "), "clinic.md", "exec")
    commands = [shlex.split(line)[1:] for line in re.findall(r"^(paddle-tfm .*)$", TEXT, re.MULTILINE)]
    assert len(commands) == 3
    for verb, *words in commands:
        command = group.get_command(None, verb)
        if isinstance(command, click.Group):
            command = command.get_command(None, words.pop(0))
        command.make_context(verb, words)
    assert set(re.findall(r"`paddle-tfm run ([\w/-]+)`", TEXT)) <= set(shipped())


def test_what_is_wrong_on_purpose_is_listed_when_asked_for_and_never_completed(capsys):
    clinic = {entry.name for entry in create_registry() if entry.provider.plugin == "clinic"}
    assert clinic == {entry.name for entry in create_registry() if entry.wrong_on_purpose}
    listings = []
    for options in ([], ["--all"]):
        with pytest.raises(SystemExit):
            main(["ls", "components", *options])
        out = capsys.readouterr().out
        listings.append(set(re.findall(r"clinic_\w+", out)))
        assert ("components wrong on purpose not listed: add --all" in out) is not bool(options)
    assert listings == [set(), clinic]
    completion = ShellComplete(group, {}, "paddle-tfm", "_PADDLE_TFM_COMPLETE")
    for incomplete, name in (("", "rotary"), ("norm:", "norm:rms")):
        names = [item.value for item in completion.get_completions(["plugin", "check"], incomplete)]
        assert name in names and not any("clinic" in name for name in names)
