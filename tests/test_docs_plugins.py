"""The pages on plugins are followed to the letter: their files are written, their commands are run; docs/checks.md has every check.
What computes for minutes (the kit over each class) is marked `pages`. Translations say the same (test_translations.py)."""

import gettext
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from paddle_tfm import protocols
from paddle_tfm.cli import VERBS, group, main
from paddle_tfm.cli.plugin.new import SETTINGS
from paddle_tfm.cli.run import recipe_command
from paddle_tfm.hookspecs import KINDS, LISTENER
from paddle_tfm.language import DOMAIN, FOLDER
from paddle_tfm.testing import EXPECTED_FAILURE, FAIL, INFO, PASS, SKIP, checks

ROOT = Path(__file__).parent.parent
PAGE = ("docs/plugins.md", "docs/plugins-reference.md")  # read as one
README, CLINIC, CHECKS = "README.md", "docs/clinic.md", "docs/checks.md"
LAYERS = ("attention", "norm", "position", "placement", "feed_forward", "head")
WHOLE = "encoder-decoder"
FEW = ("task.train=100", "task.valid=10", "task.test=10")  # texts, so that `check` reads them in no time


def _text(page):
    return "\n".join((ROOT / file).read_text("utf-8") for file in ([page] if isinstance(page, str) else page))


def _blocks(page):
    """(language, text) of all fenced blocks, in their order."""
    return re.findall(r"^```(\w*)\n(.*?)^```", _text(page), re.DOTALL | re.MULTILINE)


def _files(page):
    """File name → text of the Python blocks that begin with their name."""
    named = [re.match(r"# (\w+\.py)\n", text) for language, text in _blocks(page) if language == "python"]
    return {name[1]: name.string for name in named if name}


def _commands(page):
    """All `paddle-tfm` commands of a page, in blocks and in lines, without their comments."""
    lines = [(language, line) for language, text in _blocks(page) for line in text.splitlines()]
    shell = [line.removeprefix("$ ") for language, line in lines if language == "bash" or line.startswith("$ ")]
    inline = re.findall(
        r"`(paddle-tfm [^`\n]+)`", re.sub(r"^```.*?^```", "", _text(page), flags=re.DOTALL | re.MULTILINE)
    )
    return [shlex.split(line, comments=True)[1:] for line in [*shell, *inline] if line.startswith("paddle-tfm")]


def _tell(capsys, *words):
    """(exit status, standard output) of a command, run here."""
    with pytest.raises(SystemExit) as end:
        main([*map(str, words)])
    out, err = capsys.readouterr()
    assert end.value.code in (0, 1), err
    return end.value.code, out


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the page's files, where commands are given."""
    monkeypatch.chdir(tmp_path)
    for name, text in _files(PAGE).items():
        Path(name).write_text(text, "utf-8")
    return tmp_path


# --------------------------------------------------------------------------------------------------------------- tables


def test_the_table_of_checks_is_complete():
    listed: dict[str, dict[str, str]] = {}
    chinese = gettext.translation(DOMAIN, FOLDER, ["zh"]).gettext
    rows = re.findall(r"^\| ([\w, -]+) \| `(\w+)` \| (.+?) \| (.+?) \|$", _text(CHECKS), re.MULTILINE)
    for kinds, name, invariant, translation in rows:
        assert translation == chinese(invariant)
        for words in kinds.split(", "):
            for kind in {"layers": LAYERS, "whole models": [WHOLE]}.get(words, [words]):
                listed.setdefault(kind, {})[name] = invariant
    assert listed == {kind: {each.name: each.invariant for each in checks(kind)} for kind in (*KINDS, LISTENER, WHOLE)}


def test_the_table_of_givens_is_that_of_the_protocols():
    rows = re.findall(r"^\| \[(\w+)\]\(\S+\) \| (`.*`) \| `(register_\w+)` \|$", _text(PAGE), re.MULTILINE)
    assert {kind: (set(re.findall(r"`(\w+)`", givens)), hook) for kind, givens, hook in rows} == {
        kind: (set(protocols.base_class(kind).givens), KINDS[kind]) for kind in LAYERS
    }


def test_the_table_of_kinds_that_stand_in_no_model_is_complete():
    rows = re.findall(r"^\| \[(\w+)\]\(\S+\) \| `(register_\w+)` \| (.+) \| `(.+)` \|$", _text(PAGE), re.MULTILINE)
    assert {kind: hook for kind, hook, _, _ in rows} == {kind: KINDS[kind] for kind in SETTINGS}
    assert set(KINDS) == {*LAYERS, "initializer", *SETTINGS, "section", "kernel"}
    for kind, _, methods, place in rows:
        assert all(hasattr(protocols.base_class(kind), name) for name in re.findall(r"`(\w+)`", methods))
        assert place.startswith(SETTINGS[kind][0])


def test_the_table_of_statuses_is_complete():
    statuses = {PASS, FAIL, EXPECTED_FAILURE, SKIP, INFO}
    assert statuses <= set(re.findall(r"^\| `([a-z ]+)` \|", _text(PAGE), re.MULTILINE))


@pytest.mark.parametrize("page", [PAGE, README, CLINIC])
def test_what_is_shown_of_checks_are_sentences_of_the_kit(page):
    known = {each.name: each for kind in LAYERS for each in checks(kind)}
    sentences = {
        part: {getattr(each, part) for each in known.values()} for part in ("invariant", "consequence", "hint")
    }
    shown = "\n".join(text for language, text in _blocks(page) if language == "")
    lines = re.findall(r"^  (pass|fail|skip|expected failure|information) +(\w+) +(.+)$", shown, re.MULTILINE)
    assert lines
    for status, name, text in lines:
        assert name in known
        assert status != PASS or text == known[name].invariant or name == "invariances"
    for part, said in sentences.items():
        assert set(re.findall(rf"^ +{part} +(.+)$", shown, re.MULTILINE)) <= said


# ------------------------------------------------------------------------------------------------------------- commands


def test_every_command_and_option_exists():
    """Each command is understood, with its options and their values, and then not run."""
    commands = _commands(PAGE)
    assert len(commands) > 15
    for verb, *words in commands:
        assert verb in VERBS, verb
        command = recipe_command(words[0]) if verb == "run" else group.get_command(None, verb)
        if isinstance(command, click.Group):
            command = command.get_command(None, words.pop(0))
        if len(words) > (verb == "run"):
            command.make_context(verb, words[verb == "run" :])


def test_every_option_of_plugin_is_described_and_every_one_that_is_named_exists():
    plugin = group.get_command(None, "plugin")
    commands = [plugin.get_command(None, name) for name in plugin.commands]
    options = {option for command in commands for parameter in command.params for option in parameter.opts}
    described = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", _text(PAGE)))
    assert {option for option in options if option.startswith("--")} - described <= {"--device"}
    named_elsewhere = [recipe_command("base"), *(group.get_command(None, verb) for verb in VERBS)]
    known = {option for command in named_elsewhere for parameter in command.params for option in parameter.opts}
    assert described <= known | options


def test_the_recipes_of_the_page_are_sound_and_its_errors_are_real(folder, capsys):
    commands = [words for words in _commands(PAGE) if words[0] == "check" and words[1] == "reverse"]
    assert len(commands) == 2
    for words in commands:
        assert _tell(capsys, *words, *FEW)[0] == 0, words
    for option in ("epsilon: 0.001", "eps: 0"):
        with pytest.raises(SystemExit) as end:
            main(
                ["check", "reverse", *FEW, f"model.norm={{name: deviation, {option}}}", "--plugin", "deviation_norm.py"]
            )
        assert end.value.code == 2
        assert capsys.readouterr().err.strip() in _text(PAGE)


def test_the_package_is_what_the_page_says(folder, installed, capsys):
    commands = [words for words in _commands(PAGE) if words[:2] == ["plugin", "new"]]
    assert len(commands) == 5
    assert _tell(capsys, *commands[0])[1] in _text(PAGE)
    (toml,) = [text for language, text in _blocks(PAGE) if language == "toml"]
    assert toml in Path("my-norm/pyproject.toml").read_text("utf-8")
    (test,) = [text for language, text in _blocks(PAGE) if language == "python" and "pytest" in text]
    written = Path("my-norm/tests/test_my_norm.py").read_text("utf-8")
    assert test.replace(", eps=1e-3", "") in written
    installed()
    out = _tell(capsys, "ls", "plugins")[1]
    (shown,) = [line for language, text in _blocks(PAGE) for line in text.splitlines() if "my-norm 0.1.0" in line]
    assert shown.split() in [line.split() for line in out.splitlines()]
    assert _tell(capsys, "check", "my-norm/recipe.yaml")[0] == 0
    for command in commands[1:]:
        assert _tell(capsys, *command)[0] == 0
    assert all(Path(name).is_file() for name in ("my_encoding.py", "my_log.py", "my_cluster.py", "best_steps.py"))


@pytest.fixture
def installed(monkeypatch):
    """As `pip install -e my-norm` does: the package can be imported, and its entry point found. Afterwards it is
    forgotten, so that no other test imports it."""
    yield lambda: _install(monkeypatch)
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_norm"]:
        del sys.modules[name]


def _install(monkeypatch):
    information = Path("my-norm/my_norm-0.1.0.dist-info")
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: my-norm\nVersion: 0.1.0\n")
    (information / "entry_points.txt").write_text("[paddle_tfm]\nmy_norm = my_norm\n")
    monkeypatch.syspath_prepend(Path("my-norm").resolve())


# -------------------------------------------------------------------------------------------------------------- the kit


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """The command of the clinic whose output it shows, where its file lies."""
    monkeypatch.chdir(tmp_path)
    Path("my_transformer.py").write_text(_files(CLINIC)["my_transformer.py"], "utf-8")
    lines = [line for _, text in _blocks(CLINIC) for line in text.splitlines()]
    (line,) = [line for line in lines if line.startswith("$ paddle-tfm plugin")]
    return shlex.split(line)[2:]


def test_the_layer_of_the_clinic_looks_ahead(clinic, capsys):
    status, out = _tell(capsys, *clinic, "--only", "causal")
    assert status == 1
    (fail,) = re.findall(r"^  fail .*$", "\n".join(text for _, text in _blocks(CLINIC)), re.MULTILINE)
    assert fail.removesuffix(" […]") in out


@pytest.mark.pages
def test_as_many_checks_fail_as_the_clinic_says(clinic, capsys):
    out = _tell(capsys, *clinic)[1]
    assert {out.splitlines()[0], out.splitlines()[-1]} <= {*_text(CLINIC).splitlines()}


def _checked():
    """The page's `plugin check` commands whose output it shows: of files that stand in it whole."""
    shell = [line for language, text in _blocks(PAGE) if language == "bash" for line in text.splitlines()]
    checked = [re.sub(r" *#.*", "", line) for line in shell if line.startswith("paddle-tfm plugin check")]
    return [line for line in checked if any(name in line for name in _files(PAGE)) and "start=" not in line]


@pytest.mark.pages
@pytest.mark.parametrize("line", _checked())
def test_the_kit_says_what_the_page_shows(line, folder, capsys):
    """The last line, with its counts, stands in the page."""
    status, out = _tell(capsys, *shlex.split(line)[1:])
    assert status == 0, out
    summary = [line for line in out.splitlines() if re.search(r": \d+ pass", line)]
    if "Translator" not in line:
        assert summary[0] in _text(PAGE).splitlines()
    for shown in re.findall(r"^  (?:fail|expected failure|note) .*$", out, re.MULTILINE):
        assert shown in _text(PAGE).splitlines()


MISTAKES = {
    "deviation_norm.py": (r"x\.mean\(-1(, keepdim=True\)  #)", r"x.mean(1\1", ["--brief"]),
    "null_key.py": (
        r"(        null = [^\n]*\n)(        q = info[^\n]*\n)",
        r"\2\1",
        ["--option", "start=0.5", "--only", "supported_hooks"],
    ),
}


@pytest.mark.pages
@pytest.mark.parametrize("name", MISTAKES)
def test_the_mistakes_of_the_page_are_seen(name, folder, capsys):
    right, wrong, options = MISTAKES[name]
    text = Path(name).read_text("utf-8")
    broken = re.sub(right, wrong, text)
    assert broken != text
    Path(name).write_text(broken, "utf-8")
    status, out = _tell(capsys, "plugin", "check", name, *options)
    assert status == 1
    shown = _text(PAGE).splitlines()
    assert out.splitlines()[-1] in shown
    fails = re.findall(r"^  fail .*$", out, re.MULTILINE)
    assert fails[0] in shown and fails[-1] in shown


@pytest.mark.pages
def test_the_test_of_the_package_runs(folder, monkeypatch, capsys):
    _tell(capsys, "plugin", "new", "my-norm", "--kind", "norm")
    (test,) = [text for language, text in _blocks(PAGE) if language == "python" and "pytest" in text]
    Path("my-norm/tests/test_my_norm.py").write_text(test, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-k", "invariances or shapes or half_precision", "my-norm"]
    path = {"PYTHONPATH": str(Path("my-norm").resolve())}
    done = subprocess.run(command, env={**os.environ, **path}, capture_output=True, text=True)
    assert done.returncode == 0 and "2 passed, 1 skipped" in done.stdout, done.stdout
