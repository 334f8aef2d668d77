"""`paddle-tfm translate` of a decoder-only run: continuations of texts, printed token by token; what else such a run is
asked for, and refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_line import call

import paddle_tfm
from paddle_tfm.cli.translate import lines
from paddle_tfm.errors import UserError

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


def continued(run, *arguments, **options):
    done = call("translate", run, "--engine", "paddle", *arguments, **options)
    assert (done.status, done.err) == (0, "")
    return done.out


def refusal(*arguments):
    done = call(*arguments)
    assert (done.status, done.out) == (2, "") and done.err.count("Error:") == 1
    return done.err


def test_a_text_and_what_follows(run):
    out = continued(run, "the cat", "--length", 40)
    assert out.startswith("the cat") and 7 + 40 <= len(out) <= 7 + 41  # with a line break at the end
    assert set(out) <= set(TEXT)
    assert continued(run, "the cat", "--length", 40) == out
    assert continued(run, "the cat", "--length", 40, "--search", "{name: sampling, min_length: 99, seed: 9}") != out
    assert continued(run, "the cat", "--length", 7) == out[:14] + ("" if out[13] == "\n" else "\n")
    assert len(continued(run, "")) in (200, 201)


def test_the_search_may_be_another(run):
    greedy = continued(run, "a", "--search", "{name: greedy, min_length: 1000}", "--length", 30)
    one = "{name: sampling, top_k: 1, seed: 4, min_length: 99}"
    assert continued(run, "a", "--search", one, "--length", 30) == greedy


def test_several_texts_are_parted_and_differ(run, tmp_path):
    one = continued(run, "--length", 12, "a")
    several = continued(run, "--length", 12, "a", "a", "the")
    assert several.startswith(f"{one}\na") and several.count("\n\n") >= 2
    assert several[: 2 * len(one) + 1] != f"{one}\n{one}"
    assert continued(run, "--length", 12, stdin="a\na\nthe\n") == several
    assert continued(run, "--length", 12, "--output", tmp_path / "out.txt", "a", "a", "the") == ""
    assert (tmp_path / "out.txt").read_text("utf-8") == several
    assert continued(run, stdin="") == ""


def test_tokens_are_written_one_by_one(run, monkeypatch):
    parts = []
    monkeypatch.setattr(lines, "echo", lambda text, nl: parts.append(text))
    assert continued(run, "the", "--length", 40) == ""
    assert parts[0].startswith("the") and len("".join(parts)) in (43, 44)
    assert len(parts) > 20, "not all at once"


@pytest.mark.reliability
def test_the_engine_continues_the_same(run):
    """Also beyond the window of 16 tokens; the default search draws, which the engine does not do."""
    pytest.importorskip("ctranslate2", reason="the extra [ctranslate2]")
    command = ("translate", run, "--search", "{name: greedy, min_length: 1000}", "the cat", "--length", 60)
    ours, first, again = (
        call(*command, *options) for options in (("--engine", "paddle"), ("--engine", "ctranslate2"), ("the cat",))
    )
    assert ours.status == first.status == again.status == 0, first.err + again.err
    assert first.out == ours.out and again.out == f"{ours.out}\n{ours.out}"
    assert "exported to " in first.err and again.err == "engine: ctranslate2\n"
    draw = ("translate", run, "a", "--length", 20)
    assert "search 'sampling' has no export rule" in refusal(*draw, "--engine", "ctranslate2")
    own = call(*draw)
    assert own.err.startswith("engine: paddle, as search 'sampling' has no export rule; ") and own.err.count("\n") == 1
    assert own.out == continued(run, "a", "--length", 20)


@pytest.fixture
def translator(trained):
    """A run that reads a source."""
    return trained.folder


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--search", "gready", "a"], "unknown search 'gready'; did you mean 'greedy'"),
        (["--search", "{name: sampling, temperature: -1}", "a"], "`temperature` must be a number above 0"),
        (["theX"], "the model has no piece 'X'"),
        (["--nbest", 2, "a"], "--nbest is of runs that translate, but "),
        (["--attention", "maps", "a"], "--attention is of runs that translate, but "),
        (["--batch-tokens", 9, "a"], "--batch-tokens is of runs that translate, but "),
    ],
)
def test_refusals(run, arguments, sentence, tmp_path):
    assert sentence in refusal("translate", run, *arguments, "--output", tmp_path / "out.txt")
    assert not (tmp_path / "out.txt").exists()


def test_a_run_of_the_other_kind_is_refused(run, translator):
    assert "--search needs a model that reads a source, but " in refusal("evaluate", run, "--search", "greedy")
    refused = refusal("translate", translator, "1 2", "--length", 3)
    assert "--length is of runs that continue a text, but " in refused and "is encoder-decoder; its search" in refused
    assert "Invalid value for '--length'" in call("translate", run, "--length", 0, "a").err
    assert call("translate", translator, "1 2", "--search", "{name: sampling, max_extra: 3}").status == 0


def test_python_refuses_the_other_kind(translator):
    with pytest.raises(UserError, match="is encoder-decoder: it reads a source, and continues no text"):
        paddle_tfm.load_run(translator).generate("1 2")


def test_it_is_scored_as_text(run):
    done = call("evaluate", run, "--buckets", "8,15", "--json")
    assert done.status == 0, done.err
    scores = json.loads(done.out)
    recorded = json.loads((run / "results.json").read_text("utf-8"))["test"]
    assert scores["metrics"] == pytest.approx(recorded) and "predictions" not in scores
    assert scores["buckets"]["by"] == "target"
    assert sum(row["examples"] for row in scores["buckets"]["rows"]) == scores["examples"]
    assert not (run / "predictions-test.tsv").exists()
