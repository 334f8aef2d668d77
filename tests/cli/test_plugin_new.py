"""`paddle-tfm plugin new`: what it writes passes the kit, recipes take it, and nothing is overwritten or hidden."""

import re
from pathlib import Path

import pytest
from command_line import TINY_TASK, call

from paddle_tfm.cli.plugin.new import ALONE, SETTINGS

OF_MODELS = ("attention", "norm", "placement", "position", "feed_forward", "head", "initializer")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def new(kind: str, *options: str) -> str:
    """What is said of a plugin `my-thing` that was written."""
    done = call("plugin", "new", "my-thing", "--kind", kind, *options)
    assert done.status == 0, done.err
    return done.out


@pytest.mark.parametrize("kind", [*OF_MODELS, *SETTINGS])
def test_a_recipe_takes_a_new_file_as_its_last_line_says(kind):
    said = new(kind, "--single-file")
    assert f"{kind}:my_thing" in call("ls", "plugins", "--plugin", "my_thing.py").out
    setting = said.split("run reverse ")[1].split(" --plugin")[0].strip('"')
    if kind == "executor":  # of `run`, and no setting
        assert said.endswith("# does it train them?\n")
        done = call("run", "reverse", "train.steps=0", setting, "--plugin", "my_thing.py")
        assert done.status == 2 and "train.steps" in done.err
        return
    assert said.endswith("# is it better?\n")
    done = call("check", "reverse", *TINY_TASK, setting, "--plugin", "my_thing.py")
    assert (done.status, "reverse.yaml is sound" in done.out) == (0, True), done.err


def _marks(kind: str):
    if kind not in OF_MODELS:
        return ()
    return [pytest.mark.conformance, *([] if kind in ("attention", "norm") else [pytest.mark.exhaustive])]


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=_marks(kind))
        for kind in (*OF_MODELS, *SETTINGS)
        if kind != "executor"  # that one takes minutes: tests/conformance/test_wrong_executors.py
    ],
)
def test_a_new_file_passes_the_kit(kind):
    new(kind, "--single-file")
    done = call("plugin", "check", "my_thing.py", *(["--option", "train=500"] if kind == "task" else []))
    assert done.status == 0 and f"{kind} MyThing: " in done.out, done.out


@pytest.mark.conformance
def test_a_new_kernel_passes_the_kit_and_a_step_by_it_is_that_of_its_formula():
    said = new("kernel")
    done = call("plugin", "check", "my_thing.py")
    assert done.status == 0 and "norm MyThingNorm: " in done.out and "kernel MyThing: " in done.out, done.out
    assert "kernel:my_thing" in call("ls", "plugins", "--plugin", "my_thing.py").out
    command = said.splitlines()[-1].partition("  #")[0].split()
    assert command[1:3] == ["check", "reverse"] and "--no-kernels" in command
    done = call(*command[1:], *TINY_TASK)
    assert done.status == 0 and "by kernels" in done.out, done.err


@pytest.mark.parametrize("kind", ["schedule", *ALONE])
def test_the_recipe_of_a_package_is_sound(kind):
    new(kind)
    module = Path("my-thing/my_thing/my_thing.py").read_text("utf-8")
    hook = Path("my-thing/my_thing/__init__.py").read_text("utf-8").split('"""')[2]
    Path("plugin.py").write_text(f"{module}\n{hook}".replace('"my_thing.my_thing:MyThing"', "MyThing"), "utf-8")
    text = Path("my-thing/recipe.yaml").read_text("utf-8").replace("requires: [my_thing]\n", "")
    Path("recipe.yaml").write_text(text, "utf-8")
    tiny = TINY_TASK if "name: reverse" in text else ()
    done = call("check", "recipe.yaml", *tiny, "--plugin", "plugin.py", "--no-step")
    assert done.status == 0, done.err


@pytest.mark.parametrize(
    "kind, option, message",
    [
        ("norm", "model.norm={name: my_thing, eps: -1.0}", "`eps` must be positive, but is -1.0"),
        ("attention", "model.num_heads=3", "`num_heads` must divide `d_model`, but 3 does not divide"),
    ],
)
def test_a_new_file_checks_its_options_with_the_validators(kind, option, message):
    new(kind, "--single-file")
    text = Path("my_thing.py").read_text("utf-8")
    assert "from paddle_tfm.validators import" in text and "raise ValueError" not in text
    done = call("check", "reverse", f"model.{kind}=my_thing", option, "--plugin", "my_thing.py")
    assert (done.status, message in done.err) == (2, True), done.err


@pytest.mark.parametrize("out", ["my_norm.py", "my-norm"])
def test_nothing_is_overwritten(out):
    Path("my-norm/my_norm").mkdir(parents=True)
    files = [Path("my_norm.py"), Path("my-norm/README.md")]
    for file in files:
        file.write_text("mine", "utf-8")
    done = call("plugin", "new", "my-norm", *["--single-file"] * out.endswith(".py"))
    assert (done.status, "is there already; choose another name" in done.err) == (2, True)
    assert [file.read_text("utf-8") for file in files] == ["mine", "mine"]
    assert not Path("my-norm/pyproject.toml").exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "rms",
            "'rms' is there already, norm of plugin 'norm': the two would clash; choose another name, such as my-rms",
        ),
        ("paddle", "'paddle' is a package of this Python, which yours would hide"),
        ("class", "'class' is a word of Python, and cannot be a module's name"),
        ("position", "'position' is there already, a plugin: the two would clash"),
        ("My-Norm", "cannot be a plugin's name: small letters, digits, - and _, a letter first"),
    ],
)
def test_a_new_plugin_takes_nobody_s_name(name, sentence):
    done = call("plugin", "new", name)
    assert done.status == 2 and sentence in done.err
    assert not list(Path().glob(f"{name}*"))


@pytest.mark.parametrize("kind", ["attention", "norm", "feed_forward"])
def test_templates_have_the_right_article(kind):
    new(kind, "--out", "own")
    for file in Path("own").rglob("*.*"):
        assert not re.search(r"\b[Aa] [aeiou]|\b[Aa]n [^aeiou]", file.read_text("utf-8").replace("an own", "")), file
