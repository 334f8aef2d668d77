"""`paddle-tfm translate` with a file beside the lines: translations to score, and a prefix for each line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import paddle
import pytest
from command_line import TINY, call

from paddle_tfm import load_run
from paddle_tfm.cli.translate import lines as cli_lines
from paddle_tfm.data.vocabulary import BOS, EOS

BEAM = ("--search", "{name: beam, size: 2, max_length: 3}")
PADDLE = ("--engine", "paddle")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of `reverse` whose test set lies beside it, sources and targets."""
    out = tmp_path_factory.mktemp("beside")
    done = call("run", "reverse", *TINY, "train.steps=20", "evaluate.every=20", "--out", out / "run")
    assert done.status == 0, done.err
    predictions = (out / "run/default/seed-1/predictions.tsv").read_text("utf-8").splitlines()[1:]
    for column, name in ((1, "sources"), (2, "targets")):
        (out / name).write_text("".join(line.split("\t")[column] + "\n" for line in predictions), "utf-8")
    return out


@pytest.fixture(autouse=True)
def _here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def translate(*arguments, **options):
    done = call("translate", "run", *arguments, **options)
    assert done.status == 0, done.err
    return done.out


def log_probability(run, source, target):
    """log p(target, end | source): a softmax in NumPy over the head's outputs, of one sentence without padding."""
    ids = [*run.codec.target_vocabulary.encode(run.codec.target.tokenize(target)), EOS]
    source = [[*run.codec.source_vocabulary.encode(run.codec.source.tokenize(source)), EOS]]
    with paddle.no_grad():
        memory = run.model.encode(paddle.to_tensor(source), paddle.ones([1, len(source[0])], "bool"))
        h, _ = run.model.decode(paddle.to_tensor([[BOS, *ids[:-1]]]), run.model.start(memory))
        weights = np.exp(run.model.head.log_probs(h, memory).numpy()[0].astype(np.float64))
    return float(np.log(weights / weights.sum(-1, keepdims=True))[range(len(ids)), ids].sum()), len(ids)


def test_the_score_of_a_translation_is_the_sum_of_its_log_probabilities(folder, monkeypatch):
    scores = [float(line) for line in translate("--score", "targets", "--input", "sources").splitlines()]
    run = load_run("run")
    pairs = list(zip(*(Path(name).read_text("utf-8").splitlines() for name in ("sources", "targets"))))
    expected, lengths = zip(*(log_probability(run, *pair) for pair in pairs))
    assert scores == pytest.approx(expected, abs=2e-4)
    loss = json.loads(call("evaluate", "run", "--json").out)["metrics"]["loss"]
    assert -sum(scores) / sum(lengths) == pytest.approx(loss, abs=1e-4)
    monkeypatch.setattr(cli_lines, "CHUNK_LINES", 2)
    assert [float(line) for line in translate("--score", "targets", "--input", "sources").splitlines()] == scores


def test_scores_stand_beside_their_translations_which_may_be_empty_or_unknown():
    Path("given").write_text("1 2\n\nsieben\n", "utf-8")
    done = call("translate", "run", "--score", "given", "--scores", "2 1", "3", "4")
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert [row[0] for row in rows] == ["1 2", "", "sieben"]
    assert [float(score) / float(mean) for _, score, mean in rows] == pytest.approx([3, 1, 2], rel=1e-3)
    assert "1 of 3 target pieces are unknown to the model, and were scored as <unk>" in done.err


def test_each_line_has_a_prefix_of_its_own(monkeypatch):
    monkeypatch.setattr(cli_lines, "CHUNK_LINES", 2)
    Path("prefixes").write_text("3 1\n\n2\n", "utf-8")
    texts, prefixes = ["1 2 3", "4 5", "2"], ["3 1", "", "2"]
    outputs = translate(*PADDLE, "--prefixes", "prefixes", *texts).splitlines()
    assert outputs == [translate(*PADDLE, "--prefix", *pair).rstrip("\n") for pair in zip(prefixes, texts)]
    assert outputs[0].startswith("3 1") and outputs[2].startswith("2")


def test_an_ensemble_of_a_run_with_itself_changes_nothing():
    texts, other = ["1 2 3", "", "4 5"], ("--ensemble", "run")
    assert translate(*other, *texts) == translate(*PADDLE, *texts)
    Path("given").write_text("1 2\n\n3\n", "utf-8")
    scores = ("--score", "given", *texts)
    assert translate(*other, *scores) == translate(*scores)


def test_outputs_hold_the_words_that_terms_require():
    Path("terms").write_text("2\t7 7\n3 4\t9\n", "utf-8")
    beam = ("--search", "{name: beam, size: 4}")
    texts = ["1 2 3 4", "2", "1", "", "3 44"]
    outputs = translate("--terms", "terms", *beam, *texts).splitlines()
    assert all("7 7" in output for output in outputs[:2]) and " 9" in outputs[0]
    assert outputs[2:] == translate(*PADDLE, *beam, *texts).splitlines()[2:]
    done = call("translate", "run", "--terms", "terms", *beam, "1")
    assert (done.status, "--terms: no line holds any of the terms" in done.err) == (0, True)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--score", "two", "1"], "two: has more lines than came in (1), but needs one for each of them"),
        (["--score", "two", "1", "2", "3"], "two: has only 2 lines, but needs one for each line that comes in"),
        (["--prefixes", "two", "1", "2", "3"], "two: has only 2 lines"),
        (["--score", "two", "--output", "two", "1", "2"], "--output two: that is the input; name another file"),
        (["--score", "none", "1"], "none: no such file (looked in "),
        (["--score", "latin", "1"], "latin, line 1: not UTF-8"),
        (["--prefixes", "run", "1"], "run: cannot be read: [Errno 21] Is a directory"),
        (["--prefixes", "two", "--prefix", "1", "1", "2"], "--prefix is one for all lines, --prefixes one for each"),
        (["--score", "two", "--nbest", "2", "1", "2"], "--score scores translations that are given, and searches for none; "
         "leave --nbest out"),
        (["--terms", "none", *BEAM, "1"], "none: no such file"),
        (["--terms", "two", *BEAM, "1"], "two, line 1: must be a source term, a TAB and the target words that it requires, but is '1'"),
        (["--terms", "empty", *BEAM, "1"], "empty, line 2: must be a source term, a TAB and the target words"),
        (["--terms", "twice", *BEAM, "1"], "twice, line 2: '1' requires '3', but '2' before"),
        (["--terms", "long.tsv", *BEAM, "1"], "required '2 2 2 2' and the prefix have 4 pieces, but an output of this line has at most 3"),
        (["--terms", "unknown", *BEAM, "1"], "required 'zwei': the model has no piece '▁zwei'"),
        (["--terms", "unknown", "1"], "search Greedy places no required words; `paddle-tfm ls components search` says which does"),
        (["--ensemble", "none", "1"], "none: no run is here"),
        (["--ensemble", "run", "--engine", "ctranslate2", "1"], "--ensemble is computed by Paddle; leave --engine "),
        (["--prefixes", "long", "1"], "prefix '1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1  …' has 300 pieces, but an output has at most "),
    ],
)  # fmt: skip
def test_what_the_user_can_mend_is_one_sentence(arguments, message):
    Path("two").write_text("1\n2\n", "utf-8")
    Path("long").write_text("1 " * 300 + "\n", "utf-8")
    for name, lines in {
        "empty": "1\t2\n\t3\n",
        "twice": "1\t2\n1\t3\n",
        "long.tsv": "1\t2 2 2 2",
        "unknown": "1\tzwei",
    }.items():
        Path(name).write_text(lines, "utf-8")
    Path("latin").write_bytes(b"\xe4\n")
    done = call("translate", "run", *arguments)
    assert done.status == 2 and "Traceback" not in done.err
    assert f"Error: {message}" in done.err.replace("\n    ", " "), done.err
