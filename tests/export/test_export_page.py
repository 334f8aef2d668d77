"""docs/export.md: its program, its lists, its component."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_refusals import ENTRIES, HELD, HELD_IN_PART

import paddle_tfm
from paddle_tfm.export.folder import export, export_folder

pytestmark = pytest.mark.pages

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "export.md"


def code(page: str, mark: str) -> str:
    (block,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
        if mark in block
    ]
    return block


@pytest.fixture(scope="module")
def pieces_run(tmp_path_factory):
    """A run with sentencepiece, after a few steps."""
    folder = tmp_path_factory.mktemp("pieces")
    rng, words = (
        np.random.default_rng(0),
        ["the", "a", "old", "dog", "cat", "sings", "waits", "in", "garden", "house", "quiet", "river"],
    )
    texts = [" ".join(rng.choice(words, size=rng.integers(2, 6))) + "." for _ in range(80)]
    for side, lines in (("en", texts), ("up", [text.upper() for text in texts])):
        (folder / f"train.{side}").write_text("\n".join(lines) + "\n")
    overrides = [
        f"task={{name: parallel, train: [{folder}/train.en, {folder}/train.up], valid: 20}}",
        "tokenizer={name: sentencepiece, size: 60, byte_fallback: false}", "model.d_model=16", "model.num_heads=2", "model.d_ff=16",
        "model.encoder_layers=1", "model.decoder_layers=1", "model.max_length=32", "train.max_tokens=512",
        "train.steps=40", "evaluate.every=40", "evaluate.search={name: greedy, max_length: 8}",
    ]  # fmt: skip
    (path,) = paddle_tfm.run("base", overrides, out=folder / "out")
    return paddle_tfm.load_run(path)


def test_the_program_needs_no_paddle_tfm(pieces_run, rules, tmp_path):
    folder = export_folder(pieces_run)
    if not folder.exists():
        export(pieces_run, rules, folder)
    program = tmp_path / "use_export.py"
    program.write_text(
        code(PAGE, "# use_export.py") + "\nassert not {'paddle', 'paddle_tfm'} & sys.modules.keys()\n", "utf-8"
    )
    lines = ["the old dog sings.", "a cat waits in the garden.", "Ünknown, rivers"]
    done = subprocess.run(
        [sys.executable, program, folder],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        env={**os.environ},
    )
    assert done.returncode == 0, done.stderr
    search = paddle_tfm.create_registry().build("search", "greedy", "")
    for whole, own in zip(done.stdout.split("\n"), pieces_run.translate(lines, search)):
        assert own and whole.startswith(own)  # ours end at twice the source and twenty


def test_the_table_names_every_component():
    table = (DOCS / PAGE).read_text("utf-8").partition("## What can be held")[2].partition("## ")[0]
    rows = dict(re.findall(r"^\| ([a-z-]+) \| (.*)$", table, re.MULTILINE))
    for entry in ENTRIES:
        held, refused = re.findall(r"(.*?)\|", rows[entry.kind.replace("_", "-")])[:2]
        partly = (entry.kind, entry.name) in HELD_IN_PART
        assert (f"`{entry.name}`" in held) == (entry.name in HELD[entry.kind] or partly), entry.name
        if entry.name not in HELD[entry.kind] and not partly:
            assert f"`{entry.name}`" in refused, entry.name


def test_the_pages_component_is_trained_and_exported_with_its_rule(tmp_path, call):
    """A user's file, as the commands take it."""
    file = tmp_path / "plus_one.py"
    file.write_text(code(PAGE, "PlusOne"), "utf-8")
    overrides = [
        "task={name: reverse, symbols: 6, min_length: 1, max_length: 6, train: 200, valid: 10, test: 10}",
        "model.d_model=16", "model.num_heads=2", "model.d_ff=16", "model.encoder_layers=1", "model.decoder_layers=1",
        "model.max_length=32", "model.norm=plus_one", "train.max_tokens=256", "train.steps=20", "evaluate.every=20",
        "train.schedule={name: constant, learning_rate: 0.03}",
    ]  # fmt: skip
    status, out, err = call("run", "base", *overrides, "--out", tmp_path / "out", "--plugin", file)
    assert status == 0, err
    run = tmp_path / "out/default/seed-1"
    listed = json.loads(call("ls", "plugins", "--plugin", file, "--json")[1])
    assert ["norm:plus_one", "register_ctranslate2_rules"] in [row["registers"] for row in listed]
    status, out, err = call("export", run, "--to", "ctranslate2", "--plugin", file)
    assert status == 0 and "10 of 10 greedy outputs the same" in out, out + err
    gamma = paddle_tfm.load_run(run, plugins=[file]).model.encoder.final_norm.weight
    assert np.abs(gamma.numpy()).max() > 0.01  # the rule adds 1 to what was learned

    text = file.read_text("utf-8")
    file.write_text(text.replace("norm.weight.numpy() + 1.0", "norm.wait.numpy() + 1.0"), "utf-8")
    status, out, err = call("export", run, "--to", "ctranslate2", "--plugin", file)
    assert status == 2 and "norm 'plus_one' has a rule that fails" in err and "plus_one.py line" in err
    file.write_text(text.replace("@hookimpl\ndef register_ctranslate2_rules", "def unused"), "utf-8")
    status, out, err = call("export", run, "--to", "ctranslate2", "--plugin", file)
    assert status == 2 and "norm 'plus_one' has no export rule" in err
