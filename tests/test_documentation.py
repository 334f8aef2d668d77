"""The documentation is run: its code, its commands, its lists."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.cli import VERBS
from paddle_tfm.hookspecs import KINDS
from paddle_tfm.recipe.loading import shipped
from paddle_tfm.sweep.check import check

ROOT = Path(__file__).parent.parent
READMES = ["README.md", "README.zh-CN.md"]
TINY = ["task.train=100", "task.valid=10", "task.test=10", "model.d_model=16", "train.steps=3", "evaluate.every=3"]


def blocks(file, language):
    """The fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / file).read_text("utf-8"), re.DOTALL)


def run(*command, cwd, **environment):
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("readme", READMES)
def test_the_plugin_of_the_readme_trains(readme, tmp_path):
    """The block is written under its own file name and trained by README's own command, and its class is the one that ran."""
    (code,) = [block for block in blocks(readme, "python") if "hookimpl" in block]
    file = re.match(r"# (\w+\.py)\n", code)[1]
    kind, name = re.search(r"def register_(\w+)s\(\):\n    return \{\"(\w+)\": \w+\}", code).groups()
    (command,) = re.findall(rf"^paddle-tfm (run .* --plugin {file})$", (ROOT / readme).read_text("utf-8"), re.MULTILINE)
    assert f"model.{kind}={name}" in command
    assert (kind, name) not in {(entry.kind, entry.name) for entry in create_registry()}
    (tmp_path / file).write_text(code, "utf-8")
    out = run(sys.executable, "-m", "paddle_tfm", *shlex.split(command), *TINY, cwd=tmp_path)
    assert "exact match" in out
    identity = json.loads((tmp_path / "runs/reverse/default/seed-1/identity.json").read_text("utf-8"))
    assert identity["components"][f"{kind} {name}"].startswith(f"{Path(file).stem} ")


@pytest.mark.parametrize("readme", READMES)
def test_the_python_of_the_readme_runs(readme, tmp_path):
    (code,) = [block for block in blocks(readme, "python") if "build_model" in block]
    run(sys.executable, "-c", code, cwd=tmp_path)
    assert (tmp_path / "runs/from-python/default/seed-1/results.json").is_file()


@pytest.mark.parametrize("readme", READMES)
def test_the_recipe_of_the_readme_is_sound(readme, tmp_path):
    (text,) = blocks(readme, "yaml")
    (tmp_path / "mine.yaml").write_text(text, "utf-8")
    runs = check(load_recipe(str(tmp_path / "mine.yaml")), create_registry())
    assert len(runs) == len(yaml.safe_load(text)["variants"]) * 3


@pytest.mark.parametrize("readme", READMES)
def test_the_readme_names_every_verb_and_recipe(readme):
    text = (ROOT / readme).read_text("utf-8")
    for verb in VERBS:
        assert f"`{verb}" in text, verb
    for recipe in shipped():
        assert f"`{recipe}`" in text, recipe


@pytest.mark.parametrize("readme", READMES)
def test_every_command_of_the_readme_is_one(readme):
    """Each `paddle-tfm VERB …` in it names a verb, and each `run RECIPE` a recipe or a file."""
    commands = re.findall(r"paddle-tfm ([a-z]+)(?: ([\w./-]+))?", (ROOT / readme).read_text("utf-8"))
    assert len(commands) > 6
    for verb, word in commands:
        assert verb in VERBS, verb
        if verb == "run" and word:
            assert word in shipped() or word.endswith(".yaml"), word


def test_a_norm_in_ten_lines(tmp_path):
    """CONTRIBUTING.md, followed to the letter in a copy of the sources."""
    code, line = blocks("CONTRIBUTING.md", "python")
    assert len([row for row in code.splitlines() if row.strip()]) <= 10
    for package, folder in (
        ("paddle_tfm", "paddle_tfm"),
        ("paddle_tfm_plugins", "plugins"),
        ("paddle_tfm_recipes", "recipes"),
    ):
        shutil.copytree(ROOT / folder, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "paddle_tfm_plugins/norm/centre.py").write_text(code, "utf-8")
    table = tmp_path / "paddle_tfm_plugins/norm/__init__.py"
    table.write_text(table.read_text("utf-8").replace("    return {\n", "    return {\n" + line, 1), "utf-8")
    command = [sys.executable, "-m", "paddle_tfm"]
    path = {"PYTHONPATH": str(tmp_path)}
    listed = run(*command, "ls", "components", "--kind", "norm", cwd=tmp_path, **path)
    assert "centre" in listed and "nothing else" in listed
    run(*command, "run", "reverse", *TINY, "model.norm=centre", cwd=tmp_path, **path)


def test_the_architecture_lists_every_hook():
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    for hook in KINDS.values():
        assert f"`{hook}`" in text


CITING = ("attention", "norm", "placement", "position", "feed_forward", "head", "optimizer")


@pytest.mark.parametrize(
    "entry", [each for each in create_registry() if each.kind in CITING], ids=lambda entry: f"{entry.kind} {entry.name}"
)
def test_a_variant_says_in_one_line_what_it_is_and_where_it_is_from(entry):
    wrong = entry.wrong_on_purpose
    assert 20 < len(entry.summary()) < 125
    assert (
        entry.summary().startswith("Wrong on purpose: ")
        if wrong
        else re.search(r"arXiv:\d{4}\.\d{4,5}", entry.summary())
    )


def test_every_public_name_is_documented():
    import paddle_tfm

    for name in paddle_tfm.__all__:
        if name != "__version__":
            assert getattr(paddle_tfm, name).__doc__, name
