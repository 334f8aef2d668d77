"""docs/more-data.md: every command is understood, and with the marker `pages` the page is followed on a tiny corpus."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from test_docs_how_do_i import _run, understood

from paddle_tfm.recipe.merging import override

PAGE = (Path(__file__).parent.parent / "docs/more-data.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = [shlex.split(line) for language, text in BLOCKS if language == "bash" for line in text.splitlines()]
RECIPES = {text.split()[1]: text for language, text in BLOCKS if language == "yaml"}
# What is made smaller.
TINY = {
    "model.d_model": 16,
    "model.num_heads": 2,
    "model.d_ff": 16,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
}
SETTINGS = {
    "mine.yaml": {**TINY, "tokenizer.size": "auto", "train.steps": 20, "evaluate.every": 10, "search.max_length": 12},
    "back.yaml": {"seeds": [1]},
    "student.yaml": {**TINY, "seeds": [1]},
}


def test_every_command_is_understood():
    understood(COMMANDS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the reader stands: the corpora, and the page's recipes, smaller."""
    monkeypatch.chdir(tmp_path)
    animals = {"dog": "狗", "cat": "猫", "bird": "鸟", "horse": "马", "fish": "鱼", "cow": "牛"}
    adjectives = {"small": "小", "old": "老", "white": "白", "black": "黑", "good": "好"}
    pairs = [(f"a {a} {n}", f"一只{adjectives[a]}{animals[n]}") for a in adjectives for n in animals]
    parts = {"train": pairs[:18], "valid": pairs[18:21], "test": pairs[21:24], "mono": pairs[20:]}  # mono: test, too
    for name, part in parts.items():
        for side, language in enumerate(("en", "zh")):
            Path(f"{name}.{language}").write_text("".join(pair[side] + "\n" for pair in part), "utf-8")
    Path("mono.en").unlink()
    for name, text in RECIPES.items():
        data = yaml.safe_load(text)
        for path, value in SETTINGS[name].items():
            override(data, path, value, {}, {})
        Path(name).write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), "utf-8")
    return tmp_path


@pytest.mark.pages
def test_the_page_is_followed(folder):
    for _program, *words in COMMANDS:
        assert _run(words) == 0, words
    numbers = {name: Path(name).read_text("utf-8").count("\n") for name in ("mono.en", "teacher.zh", "of-teacher.tsv")}
    assert numbers == {"mono.en": 10, "teacher.zh": 18, "of-teacher.tsv": 18}
    results = json.loads(Path("runs/with-back-translation/back-translated/seed-1/results.json").read_text("utf-8"))
    assert sum(results["dropped"].values()) >= 4, "four texts of `mono.zh` stand in valid and test"
    for variant in ("people", "distilled", "both"):
        assert Path(f"runs/students/{variant}/seed-1/results.json").exists()
