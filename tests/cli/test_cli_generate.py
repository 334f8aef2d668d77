"""`paddle-tfm generate`: continuations of a text, printed token by token; what else a decoder-only run is asked for, and
refuses."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import TINY, call

TEXT = "the cat sat on the mat\nand the dog ran after it\n"
DECODER = (
    *(
        "task={name: text, train: book.txt, valid: book.txt, test: book.txt, block: 16, stride: 8}",
        "train.max_tokens=128",
    ),
    *("tokenizer={name: char, exact: true}", "model.encoder_layers=0", "model.decoder_layers=1", "model.max_length=16"),
    *("model.d_model=16", "model.num_heads=2", "model.d_ff=16", "train.steps=20", "evaluate.every=20"),
    *(
        "evaluate.metrics=[perplexity, bits_per_character]",
        "evaluate.best=perplexity",
        "search={name: sampling, min_length: 1000}",
    ),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A decoder-only run, after 20 steps."""
    here, before = tmp_path_factory.mktemp("generating"), Path.cwd()
    (here / "book.txt").write_text(TEXT * 8, "utf-8")
    os.chdir(here)
    try:
        done = call("run", "base", *DECODER, "--out", here / "out")
    finally:
        os.chdir(before)
    assert done.status == 0, done.err
    return here / "out" / "default" / "seed-1"


@pytest.fixture(autouse=True)
def _here(run, monkeypatch):
    monkeypatch.chdir(run.parents[2])


def generate(run, *arguments):
    done = call("generate", run, *arguments)
    assert (done.status, done.err) == (0, "")
    return done.out


def refusal(*arguments):
    done = call(*arguments)
    assert done.status == 2 and done.err.count("Error:") == 1
    return done.err


def test_the_prompt_and_what_follows(run):
    out = generate(run, "--prompt", "the cat", "--length", 40)
    assert out.startswith("the cat") and 7 + 40 <= len(out) <= 7 + 41  # with a line break at the end
    assert set(out) <= set(TEXT)
    assert generate(run, "--prompt", "the cat", "--length", 40) == out
    assert generate(run, "--prompt", "the cat", "--length", 40, "--seed", 9) != out
    assert generate(run, "--prompt", "the cat", "--length", 7) == out[:14] + ("" if out[13] == "\n" else "\n")


def test_nothing_but_a_prompt_is_needed_for_none(run):
    assert len(generate(run)) in (200, 201)


def test_options_of_the_search(run):
    greedy = generate(run, "--search", "{name: greedy, min_length: 1000}", "--length", 30)
    assert generate(run, "--top-k", 1, "--length", 30) == greedy
    assert generate(run, "--temperature", "1e-6", "--length", 30) == greedy
    assert generate(run, "--top-p", "1e-9", "--length", 30) == greedy
    assert (
        generate(run, "--search", "{name: sampling, top_k: 1, seed: 4, min_length: 99}", "--seed", 5, "--length", 30)
        == greedy
    )


def test_several_texts_are_parted_and_differ(run):
    one = generate(run, "--length", 12, "--prompt", "a")
    several = generate(run, "--length", 12, "--prompt", "a", "--count", 3)
    assert several.startswith(one.removesuffix("\n"))
    assert several.count("\n\n") >= 2 and several != 3 * f"{one}\n"


def test_tokens_come_one_by_one_on_a_terminal(run):
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "paddle_tfm", "generate", str(run), "--prompt", "the", "--length", "400"]
    process = subprocess.Popen(command, stdout=slave, stderr=subprocess.PIPE)
    os.close(slave)
    parts = []
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:
            break
        parts.append((time.perf_counter(), part))
        if not part:
            break
    assert process.wait() == 0, process.stderr.read()
    text = b"".join(part for _, part in parts).decode().replace("\r\n", "\n")
    assert text.startswith("the") and len(text) in (403, 404)
    assert len(parts) > 20, "not all at once"
    os.close(master)


def test_the_engine_continues_the_same(run):
    """Also beyond the window of 16 tokens; the default search draws, which the engine does not do."""
    pytest.importorskip("ctranslate2", reason="the extra [ctranslate2]")
    command = ("generate", run, "--search", "{name: greedy, min_length: 1000}", "--prompt", "the cat", "--length", 60)
    ours, first, again = (
        call(*command, *options) for options in ((), ("--engine", "ctranslate2"), ("--engine", "auto", "--count", 2))
    )
    assert ours.status == first.status == again.status == 0, first.err + again.err
    assert first.out == ours.out and again.out == f"{ours.out}\n{ours.out}"
    assert first.err.startswith("exported to ") and again.err == "engine: ctranslate2\n"
    draw = ("generate", run, "--length", 20)
    assert "search 'sampling' draws its tokens at random" in refusal(*draw, "--engine", "ctranslate2")
    own = call(*draw, "--engine", "auto")
    assert (
        own.err == "engine: paddle_tfm, as search 'sampling' draws its tokens at random, and CTranslate2 draws others\n"
    )
    assert own.out == generate(run, "--length", 20)
    assert "draws its tokens" in refusal(*draw, "--engine", "ctranslate2", "--temperature", "0.5")


def test_refusals(run, tmp_path):
    assert "the search 'greedy' has no such option" in refusal("generate", run, "--search", "greedy", "--top-k", 3)
    assert "unknown search 'gready'; did you mean 'greedy'" in refusal("generate", run, "--search", "gready")
    assert "`temperature` must be a number above 0" in refusal("generate", run, "--temperature", "-1")
    assert "the model has no piece 'X'" in refusal("generate", run, "--prompt", "theX")
    assert "no run is here" in refusal("generate", tmp_path / "nowhere")
    assert "--length" in call("generate", run, "--length", 0).err
    assert "use `paddle-tfm generate" in refusal("translate", run, "the cat")
    assert "--search needs a model that reads a source, but " in refusal("evaluate", run, "--search", "greedy")
    out = tmp_path / "out"
    done = call("run", "reverse", *TINY, "--out", out)
    assert done.status == 0, done.err
    assert "is encoder-decoder: it reads a source; use `paddle-tfm translate" in refusal("generate", out)


def test_it_is_scored_as_text(run, tmp_path):
    done = call("evaluate", run, "--buckets", "8,15", "--json", tmp_path / "scores.json")
    assert done.status == 0, done.err
    scores = json.loads((tmp_path / "scores.json").read_text("utf-8"))
    recorded = json.loads((run / "results.json").read_text("utf-8"))["test"]
    assert scores["metrics"] == pytest.approx(recorded) and "predictions" not in scores
    assert scores["buckets"]["by"] == "target"
    assert sum(row["examples"] for row in scores["buckets"]["rows"]) == scores["examples"]
    assert not (run / "predictions-test.tsv").exists()
