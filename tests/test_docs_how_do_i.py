"""docs/how-do-i.md: every command is understood, and with the marker `pages` each is run, in the page's order, on a tiny corpus."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import click
import pytest

from paddle_tfm.cli import VERBS, group, main
from paddle_tfm.cli.run import recipe_command

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "how-do-i.md").read_text("utf-8")
FINE_TUNE = re.findall(r"^paddle-tfm (.*)$", (DOCS / "fine-tune.md").read_text("utf-8"), re.MULTILINE)
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = [shlex.split(line) for language, text in BLOCKS if language == "bash" for line in text.splitlines()]
FILES = {name[1]: text for _, text in BLOCKS if (name := re.match(r"# (\w+\.py)\n", text))}
RECIPE = """
base: base.yaml
name: mine
task: {name: parallel, train: [train.en, train.zh], valid: 0.2, test: [test.en, test.zh]}
tokenizer: {source: word, target: char}
model: {d_model: 16, num_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1, max_length: 32}
train: {steps: 4, schedule: {name: inverse_sqrt, peak: 1.0e-3, warmup: 2}}
evaluate: {every: 2, examples: 4, metrics: [chrf], best: chrf}
search: {name: beam, size: 4}
"""


def test_every_command_is_understood():
    understood(COMMANDS)


def understood(commands):
    """The command line takes each of them."""
    for program, *words in commands:
        if program != "paddle-tfm":
            continue
        verb, *words = words
        assert verb in VERBS, verb
        command = recipe_command(words[0]) if verb == "run" else group.get_command(None, verb)
        if isinstance(command, click.Group):
            command = command.get_command(None, words.pop(0))
        command.make_context(verb, words[verb == "run" :])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the reader stands: with a corpus, a recipe, and the page's files."""
    monkeypatch.chdir(tmp_path)
    animals = {"dog": "狗", "cat": "猫", "bird": "鸟", "horse": "马", "fish": "鱼", "cow": "牛"}
    adjectives = {"small": "小", "old": "老", "white": "白", "black": "黑", "good": "好"}
    pairs = [(f"a {a} {n}", f"一只{adjectives[a]}{animals[n]}") for a in adjectives for n in animals]
    for name, part in (("train", pairs), ("test", pairs[:6]), ("news", pairs[6:10]), ("other", pairs[1:7])):
        for side, language in enumerate(("en", "zh")):
            Path(f"{name}.{language}").write_text("".join(pair[side] + "\n" for pair in part), "utf-8")
    Path("mine.yaml").write_text(RECIPE, "utf-8")
    Path("terms.tsv").write_text(
        next(text for language, text in BLOCKS if language == "text" and "\t" in text), "utf-8"
    )
    for name, text in FILES.items():
        Path(name).write_text(text, "utf-8")
    return tmp_path


def _run(words):
    """The exit status of a command of paddle-tfm."""
    with pytest.raises(SystemExit) as end:
        main([re.sub(r"^train\.steps=.*", "train.steps=6", word) for word in words])
    return end.value.code


@pytest.mark.pages
def test_every_command_of_the_page_runs(folder):
    assert _run(["run", "mine.yaml"]) == 0
    for _program, *words in COMMANDS:
        assert words[0] == "board" or _run(words) == 0, words  # which waits for a browser


@pytest.mark.pages
def test_every_command_on_fine_tuning_runs(folder):
    assert len(FINE_TUNE) >= 7
    for command in FINE_TUNE:
        assert _run(shlex.split(command)) == 0, command


@pytest.mark.pages
def test_the_server_answers(folder):
    assert _run(["run", "mine.yaml"]) == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "serve.py", "runs/mine/default/seed-1", str(port)], env=os.environ)
    try:
        for _ in range(120):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.5)
        body = json.dumps(["a small dog", "an old cat"]).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}", body, timeout=60) as answer:
            assert len(json.load(answer)) == 2
    finally:
        server.kill()
        server.wait()
