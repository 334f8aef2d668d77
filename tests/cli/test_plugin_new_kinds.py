"""`plugin new` for kinds that stand in no model: what it writes passes the kit, and recipes take it."""

import subprocess
import sys
from pathlib import Path

import pytest

from paddle_tfm.cli import main
from paddle_tfm.cli.plugin.new import ALONE, SETTINGS, write
from paddle_tfm.hookspecs import KINDS


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def status_of(*words):
    with pytest.raises(SystemExit) as end:
        main([*words])
    return end.value.code


@pytest.mark.parametrize("kind", SETTINGS)
def test_what_is_written_passes_the_kit_and_is_taken_by_a_recipe(kind, capsys):
    plugin = write("my-thing", kind, single_file=True)
    assert f"def {KINDS[kind]}():" in Path("my_thing.py").read_text("utf-8")
    if kind != "executor":  # that one takes minutes: tests/conformance/test_wrong_executors.py
        assert status_of("plugin", "check", "my_thing.py") == 0, capsys.readouterr()
        assert f"{kind} MyThing: " in capsys.readouterr().out
    assert plugin.advice.endswith("# does it train them?" if kind == "executor" else "# is it better?")
    setting = plugin.advice.split("run reverse ")[1].split(" --plugin")[0].strip('"')
    if kind == "executor":  # of `run`, and no setting
        words = ["run", "reverse", "train.steps=0", setting, "--plugin", "my_thing.py"]
        assert status_of(*words) == 2 and "train.steps" in capsys.readouterr().err
        return
    assert status_of("check", "reverse", setting, "--plugin", "my_thing.py", "--no-step") == 0, capsys.readouterr()


@pytest.mark.parametrize("kind", ["schedule", *ALONE])
def test_the_recipe_of_a_package_is_sound(kind, tmp_path):
    write("my-thing", kind)
    module = Path("my-thing/my_thing/my_thing.py").read_text("utf-8")
    hook = Path("my-thing/my_thing/__init__.py").read_text("utf-8").split('"""')[2]
    Path("plugin.py").write_text(f"{module}\n{hook}".replace('"my_thing.my_thing:MyThing"', "MyThing"), "utf-8")
    text = Path("my-thing/recipe.yaml").read_text("utf-8").replace("requires: [my_thing]\n", "")
    Path("recipe.yaml").write_text(text, "utf-8")
    command = [sys.executable, "-m", "paddle_tfm", "check", "recipe.yaml", "--plugin", "plugin.py", "--no-step"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
