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


LAYER = """
import paddle
from paddle import nn
from paddle.nn import functional as F


class Right(nn.Layer):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = [0, 0, num_heads, d_model // num_heads]
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in range(4))

    def weights(self, scores, mask):
        return F.softmax(paddle.where(mask, scores, paddle.full_like(scores, -1e9)))

    def forward(self, query, key, value, mask):
        q, k, v = (
            f(x).reshape(self.heads).transpose([0, 2, 1, 3])
            for f, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        weights = self.weights(q @ k.transpose([0, 1, 3, 2]) / self.heads[3] ** 0.5, mask)
        return self.out((weights @ v).transpose([0, 2, 1, 3]).reshape(query.shape))


class masked_rows(Right):
    def weights(self, scores, mask):
        return F.softmax(paddle.where(mask, scores, paddle.full_like(scores, -float("inf"))))


class extremes(Right):
    def weights(self, scores, mask):
        weights = scores.exp() * mask.astype(scores.dtype)
        return weights / weights.sum(-1, keepdim=True).clip(1e-9)


class evaluation(Right):
    def weights(self, scores, mask):
        return F.dropout(super().weights(scores, mask), 0.1)


class saved(Right):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.gains = [paddle.uniform([d_model], min=0.5, max=1.5)]

    def forward(self, query, key, value, mask):
        return super().forward(query, key, value, mask) * self.gains[0]


class trains(Right):
    def weights(self, scores, mask):
        return paddle.to_tensor(super().weights(scores, mask).numpy())


class runs(Right):
    def weights(self, scores, mask):
        return super().weights(scores, mask.squeeze(1))
"""


@pytest.mark.pages
def test_each_error_is_found_by_its_check_and_the_right_layer_passes(tmp_path, monkeypatch, capsys):
    """An attention with the mistake of each row of the table of errors, a class called as its check."""
    monkeypatch.chdir(tmp_path)
    Path("layer.py").write_text(LAYER, "utf-8")
    errors = {name for row in tables()[1] for name in named(row)}
    assert errors == set(re.findall(r"class (\w+)\(Right", LAYER))
    for layer, only in [("Right", errors), *((name, {name}) for name in sorted(errors))]:
        with pytest.raises(SystemExit):
            main(["plugin", "check", "--as", "attention", f"layer.py:{layer}", *(f"--only={name}" for name in only)])
        failed = set(re.findall(r"^  fail +(\w+)", capsys.readouterr().out, re.MULTILINE))
        assert failed == (set() if layer == "Right" else only), layer


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
