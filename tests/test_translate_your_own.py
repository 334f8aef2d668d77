"""docs/translate-your-own.md is followed to the letter: its files are written, its commands are run in their order, on
a corpus and a model that are made smaller."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.cli import VERBS, group, main
from paddle_tfm.cli.run import recipe_command
from paddle_tfm.recipe.merging import override
from paddle_tfm.recipe.settings import Settings
from paddle_tfm.recipe.sites import tokenizer_specs
from paddle_tfm.sweep.check import check

DOCS = Path(__file__).parent.parent / "docs"
TEXT = (DOCS / "translate-your-own.md").read_text("utf-8")
RUN = "runs/my/default/seed-1"
# What is made smaller: texts of a file, settings of a recipe, options of a command.
TEXTS = {"range(4000)": "range(130)", "pairs[:200]": "pairs[:12]", "pairs[200:]": "pairs[12:]"}
SETTINGS = {
    "my.yaml": {
        "task.valid": 12,
        "tokenizer.size": 330,
        "model.d_model": 32,
        "model.d_ff": 32,
        "model.encoder_layers": 1,
        "model.decoder_layers": 1,
        "train.steps": 30,
        "train.schedule.peak": 1e-2,
        "train.schedule.warmup": 5,
        "evaluate.every": 15,
        "evaluate.examples": 4,
        # A model that has learned next to nothing finds no end: half of what this page costs.
        "evaluate.search": {"name": "greedy", "max_length": 12},
        "search": {"name": "beam", "size": 5, "alpha": 1.0, "max_length": 12},
    },
    "my-compare.yaml": {"train.steps": 4, "evaluate.every": 4, "seeds": [1]},
}
OPTIONS = {"paddle-tfm run my-compare.yaml": " --workers 1"}


BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)  # (language, text)


def write(name, text):
    """A file of the page. A recipe that is there already gets these settings in place of its own."""
    for of_page, smaller in TEXTS.items():
        text = text.replace(of_page, smaller)
    if not name.endswith(".yaml"):
        Path(name).write_text(text, "utf-8")
        return
    data = yaml.safe_load(Path(name).read_text("utf-8")) if Path(name).exists() else {}
    for path, value in {**yaml.safe_load(text), **SETTINGS.get(name, {})}.items():
        override(data, path, value, {}, {})
    Path(name).write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")


def follow(line, capsys):
    """Run one command of the page; returns what it prints."""
    if not line.startswith("paddle-tfm"):
        line = re.sub(r"^python\b", shlex.quote(sys.executable), line)
        done = subprocess.run(["bash", "-ceu", line], capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        return done.stdout
    options = next((smaller for start, smaller in OPTIONS.items() if line.startswith(start)), "")
    with pytest.raises(SystemExit) as end:
        main(shlex.split(line + options, comments=True)[1:])
    out, errors = capsys.readouterr()
    assert end.value.code == 0, f"{line}\n{errors}"
    return out


@pytest.mark.pages
def test_the_page_leads_from_two_files_to_a_translated_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    printed = {}
    for language, text in BLOCKS:
        name = re.match(r"# ([\w.-]+\.(?:py|yaml))\n", text)
        if name:
            write(name[1], text)
        elif language == "bash":
            printed |= {line: follow(line, capsys) for line in text.splitlines()}
        elif language == "yaml":
            overrides = [
                f"{path}={yaml.safe_dump(value, default_flow_style=True, sort_keys=False)}"
                for path, value in yaml.safe_load(text).items()
            ]
            written = [name for name in ("my-compare.yaml", "my.yaml") if Path(name).exists()]
            assert check(load_recipe([*written, "multi30k"][0], overrides), create_registry())

    def of(part):
        return next(out for line, out in printed.items() if part in line)

    assert of("comm -12").strip() == "0"
    assert "my.yaml is sound" in of("check my.yaml")
    assert {path.name for path in Path("runs/peaks").iterdir() if path.is_dir()} == {
        "0.003",
        "0.01",
        "0.03",
    }
    assert Path(RUN, "results.json").is_file() and "bleu" in of('run my.yaml "seeds=[1]"')
    assert re.fullmatch(r".+\n", of(f'translate {RUN} "'))
    assert len(Path("test.out.de").read_text("utf-8").splitlines()) == 12
    assert [row.split("\t")[0] for row in of("--nbest 10").splitlines()] == ["1"] * 10
    assert re.fullmatch(r"(1\t.*\t-\d+\.\d+\t-\d+\.\d+\n){3}", of("--nbest 3 --scores"))
    assert len(of("{name: sampling").splitlines()) == 3
    assert of("--prefix").startswith("Die frohe Ärztin lacht im Zug, weil")
    assert Path("maps/alignments.txt").is_file() and Path("maps/00001.png").is_file()
    assert "nrefs:1|" in of(f"evaluate {RUN}")
    assert "in test.out.de" in of("--hypotheses")
    assert "difference to plain" in of("run my-compare.yaml") and "95% interval" in of("--bootstrap")
    assert re.fullmatch(r".+\n", of("translate there"))


def test_the_table_of_recipes_tells_their_sizes():
    rows = re.findall(r"^\| `([\w-]+)` \|[^|]*\| ([\d,]+)[^|]*\| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", TEXT, re.MULTILINE)
    assert len(rows) == 4
    for name, pieces, *sizes in rows:
        data = load_recipe(name).data
        model, learned = data["model"], [spec for _, spec in tokenizer_specs(data["tokenizer"]).values()]
        known = {spec["size"] for spec in learned if isinstance(spec, dict)} or {data["vocabulary"]["max_size"]}
        assert known == {int(pieces.replace(",", ""))}, name
        layers = f"{model['encoder_layers']} + {model['decoder_layers']}"
        assert sizes == [f"{model['d_model']:,}", f"{model['d_ff']:,}", layers], name


def test_every_setting_and_option_that_is_named_is_one():
    sections = {name: field.annotation for name, field in Settings.model_fields.items()}
    settings = set(re.findall(r"(?<![\w-])(model|train|evaluate|vocabulary)\.(?!en\b|de\b)([a-z_]+)", TEXT))
    assert len(settings) > 15 and all(key in sections[section].model_fields for section, key in settings), settings
    commands = [recipe_command("base"), *(group.get_command(None, verb) for verb in VERBS)]
    options = {option for command in commands for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TEXT)) <= options


def test_the_beam_that_is_named_is_the_recipe_s():
    assert int(re.search(r"A beam of (\d+), the recipe's", TEXT)[1]) == load_recipe("multi30k").data["search"]["size"]
