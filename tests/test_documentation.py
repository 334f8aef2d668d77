"""The documentation is run: its code, its commands, its lists."""

import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from scipy import stats

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.cli import VERBS, main
from paddle_tfm.recipe.differences import DESCRIPTIVE, differences
from paddle_tfm.recipe.reading import shipped

ROOT = Path(__file__).parent.parent
READMES = ["README.md", "README.zh-CN.md"]
TINY = ["task.train=100", "task.valid=10", "task.test=10", "model.d_model=16", "train.steps=3", "evaluate.every=3"]


def blocks(file, language):
    """The fenced blocks of a language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / file).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [text for name, text in fenced if name == language]


def run(*command, cwd, **environment):
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_plugin_of_the_readme_trains(tmp_path, monkeypatch, capsys):
    """The block is written under its own file name and trained by README's own command, and its class is the one that
    ran. The Chinese README has the same code (tests/test_translations.py)."""
    readme = READMES[0]
    (code,) = [block for block in blocks(readme, "python") if "hookimpl" in block]
    file = re.match(r"# (\w+\.py)\n", code)[1]
    kind, name = re.search(r"def register_(\w+)s\(\):\n    return \{\"(\w+)\": \w+\}", code).groups()
    (command,) = re.findall(rf"^paddle-tfm (run .* --plugin {file})$", (ROOT / readme).read_text("utf-8"), re.MULTILINE)
    assert f"model.{kind}={name}" in command
    assert (kind, name) not in {(entry.kind, entry.name) for entry in create_registry()}
    (tmp_path / file).write_text(code, "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main([*shlex.split(command), *TINY])
    assert end.value.code == 0 and "exact match" in capsys.readouterr().out
    identity = json.loads((tmp_path / "runs/reverse/default/seed-1/identity.json").read_text("utf-8"))
    assert identity["components"][f"{kind} {name}"].startswith(f"{Path(file).stem} ")


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    (code,) = [block for block in blocks(READMES[0], "python") if "build_model" in block]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, READMES[0], "exec"), {"__name__": "readme"})
    assert (tmp_path / "runs/from-python/default/seed-1/results.json").is_file()


def _check(folder, code):
    """What `plugin check` prints of README's plugin."""
    folder.mkdir()
    (folder / "scale_norm.py").write_text(code, "utf-8")
    command = [sys.executable, "-m", "paddle_tfm", "plugin", "check", "scale_norm.py"]
    anywhere = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # which breaks lines, and which
    # pytest's import of readline sets for the processes that it starts
    return subprocess.run(command, cwd=folder, env=anywhere, capture_output=True, text=True).stdout.splitlines()


def _shown_checks(readme):
    """The blocks of the README that show a check: of the plugin as it is, and with one digit wrong."""
    shown = [block for block in blocks(readme, "") if "norm ScaleNorm" in block]
    return [
        [line.removesuffix(" […]") for line in block.splitlines() if line != "  …" and line[0] != "$"]
        for block in shown
    ]


@pytest.mark.pages
def test_the_check_of_the_readme_says_what_is_shown(tmp_path):
    """Line by line."""
    right, wrong = _shown_checks(READMES[0])
    (code,) = [block for block in blocks(READMES[0], "python") if "hookimpl" in block]
    broken = code.replace("axis=-1", "axis=1")
    assert broken != code and len(right) > 4 and len(wrong) > 4
    for shown, lines in (
        (right, _check(tmp_path / "right", code)),
        (wrong, _check(tmp_path / "wrong", broken)),
    ):
        for line in shown:
            assert any(printed.startswith(line) for printed in lines), line


def test_the_readme_is_one_screen_to_the_first_result():
    lines = _text("README.md").splitlines()
    assert len(lines) <= 150
    assert next(i for i, line in enumerate(lines) if "exact match" in line) < 40


@pytest.mark.parametrize("readme", READMES)
def test_the_readme_leads_to_every_verb_and_recipe(readme):
    """The page of the verbs is held to be whole by tests/test_docs_generated.py."""
    ending = readme.removeprefix("README")
    assert f"](docs/cli{ending})" in _text(readme) and f"](docs/recipes{ending})" in _text(readme)
    for recipe in shipped():
        assert f"[`{recipe}`](" in _text("docs/recipes.md"), recipe


def test_every_command_of_the_readme_is_one():
    """Each `paddle-tfm VERB …` in it names a verb, and each `run RECIPE` a recipe or a file."""
    commands = re.findall(r"paddle-tfm ([a-z]+)(?: ([\w./-]+))?", _text("README.md"))
    assert len(commands) > 6
    for verb, word in commands:
        assert verb in VERBS, verb
        if verb == "run" and word:
            assert word in shipped() or word.endswith(".yaml"), word


@pytest.mark.pages
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
    run(*command, "run", "reverse", *TINY, "model.norm=centre", cwd=tmp_path, **path)


def test_the_architecture_lists_every_room_and_no_other():
    (block,) = [block for block in blocks("ARCHITECTURE.md", "") if block.startswith("paddle_tfm/\n")]
    entries, room = set(), ""
    for indent, name in re.findall(r"^( +)([\w.]+/?)(?= )", block, re.MULTILINE):
        room = name if len(indent) == 2 else room
        path = name if len(indent) == 2 else room + name
        assert (ROOT / "paddle_tfm" / path).exists(), path
        entries.add(path.rstrip("/"))
    present = {path.name for path in (ROOT / "paddle_tfm").iterdir() if path.name not in ("__pycache__", "py.typed")}
    assert present <= entries


WRITTEN_BY_THE_READER = {"plugins/norm/centre.py", "tests/test_my_norm.py"}
PATH = r"`((?:paddle_tfm|plugins|recipes|tests|docs)/[\w./-]*)`|pytest((?: (?:-\w \w+|tests/[\w./]+))+)"


def test_every_path_that_a_page_names_exists():
    pages = ["ARCHITECTURE.md", "CONTRIBUTING.md", *READMES]
    pages += [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))]
    named = {
        (page, word)
        for page in pages
        for path, command in re.findall(PATH, _text(page))
        for word in (path or command).split()
        if "/" in word
    }
    assert len(named) > 100
    assert [each for each in named if not (ROOT / each[1]).exists() and each[1] not in WRITTEN_BY_THE_READER] == []


@pytest.mark.parametrize("page", ["docs/results.md", *READMES])
def test_the_figures_of_multi30k_are_those_of_its_records(page):
    folders = sorted((ROOT / "docs/results/multi30k-products/float32").iterdir())
    runs = [json.loads((folder / "results.json").read_text("utf-8")) for folder in folders]
    recorded = yaml.safe_load((folders[0] / "recipe.yaml").read_text("utf-8"))
    assert [run["seed"] for run in runs] == [1, 2, 3, 4, 5]
    assert not differences(load_recipe("multi30k").runs()[0].data, recorded, [*DESCRIPTIVE, "variant", "seeds"])

    def figure(split, metric, digits):
        values = [run[split][metric] for run in runs]
        return f"{statistics.fmean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"

    bleu = [run["test"]["bleu"] for run in runs]
    new_seed = stats.t.ppf(0.975, 4) * statistics.stdev(bleu) * (1 + 1 / 5) ** 0.5
    (row,) = re.findall(r"^\|.*`multi30k`.*BLEU.*±.*$", _text(page), re.M)
    if page in READMES:
        assert f"BLEU {figure('test', 'bleu', 1)}" in row and f"± {new_seed:.1f}" in row
        return
    assert f"BLEU {figure('test', 'bleu', 2)}" in row and f" ± {new_seed:.2f}" in row
    assert f"chrF {figure('test', 'chrf', 2)}" in row and f"BLEU {figure('valid', 'bleu', 2)}" in row
    for values in ([f"{value:.2f}" for value in bleu], [f"{run['valid']['loss']:.3f}" for run in runs]):
        assert re.search("(, |、)".join(map(re.escape, values)), row)


def test_no_page_names_an_address_of_ours_that_does_not_exist():
    files = [*ROOT.glob("*.md"), *ROOT.glob("*.cff"), ROOT / "setup.py", *(ROOT / "docs").rglob("*.md")]
    files += [*(ROOT / "paddle_tfm").rglob("*.py"), *(ROOT / "paddle_tfm/templates").rglob("*.in")]
    for file in files:
        text = file.read_text("utf-8")
        assert not re.search(
            r"github\.com/(?:paddle-tfm|paddle_tfm)|git clone|pip install [\"']?paddle[-_]tfm|pypi\.org/project/paddle[-_]tfm",
            text,
        ), file


def _text(page):
    return (ROOT / page).read_text("utf-8")


CITING = ("attention", "norm", "placement", "position", "feed_forward", "head", "optimizer")


def test_a_variant_says_in_one_line_what_it_is_and_where_it_is_from():
    for entry in (each for each in create_registry() if each.kind in CITING):
        words = r"^Wrong on purpose: " if entry.wrong_on_purpose else r"arXiv:\d{4}\.\d{4,5}"
        assert 20 < len(entry.summary()) < 125, entry
        assert re.search(words, entry.summary()), entry


def test_the_recipe_from_paddlenlp_is_sound_and_says_what_the_table_says(tmp_path):
    """Every setting of the table's second column is in the recipe, with that value."""
    page = "docs/from-paddlenlp.md"
    (text,) = blocks(page, "yaml")
    (tmp_path / "paddlenlp-base.yaml").write_text(text, "utf-8")
    (run_spec,) = load_recipe(str(tmp_path / "paddlenlp-base.yaml")).runs()
    recipe = run_spec.data
    rows = re.findall(r"^\|[^|]+\| ([^|]+) \|[^|]*\|$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    settings = [setting for row in rows for setting in re.findall(r"`([\w.]+): ([^`]+)`", row)]
    assert len(settings) > 20
    for path, value in settings:
        if path == "train.precision":  # what stands there for a GPU
            continue
        actual = recipe
        for key in path.split("."):
            actual = actual[key]
        expected = yaml_value(value)
        if isinstance(expected, dict):
            expected, actual = expected.items(), actual.items()
            assert expected <= actual, path
        else:
            assert actual == expected, path


def yaml_value(text):
    from paddle_tfm.recipe.yaml_lines import value

    return value(text)
