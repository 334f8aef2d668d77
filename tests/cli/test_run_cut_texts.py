"""Texts that come cut by subword-nmt: what is scored and written is of joined text, as sacreBLEU says of it; what looks
cut and is not joined is said (the case K10)."""

from __future__ import annotations

import json
import random
import re

import pytest
import sacrebleu
from command_line import call

from paddle_tfm.caveats import looks_cut
from paddle_tfm.files import read_json
from paddle_tfm.predictions import read_predictions

RECIPE = """
base: base.yaml
name: cut
task: {name: parallel, train: [s, t], valid: [s, t], test: [s, t]}
tokenizer: {name: space, separator: "@@"}
model: {d_model: 16, num_heads: 2, d_ff: 16, encoder_layers: 1, decoder_layers: 1, max_length: 40}
train: {steps: 6, max_tokens: 256}
evaluate: {every: 6, metrics: [bleu, exact_match, perplexity], best: bleu}
"""
RUN = "runs/default/seed-1"


def joined(text):
    return re.sub(r"(@@ )|(@@ ?$)", "", text)


def cut(draw, words):
    """A sentence whose words are cut at random places."""
    text = " ".join(draw.choice(words) for _ in range(draw.randint(4, 9)))
    return re.sub(r"(?<=\w)(?=\w)", lambda _: "@@ " if draw.random() < 0.4 else "", text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files, the recipe and its run."""
    folder, draw = tmp_path_factory.mktemp("cut"), random.Random(1)
    sides = {name: [cut(draw, words.split()) for _ in range(40)] for name, words in
             {"s": "ein hund und die katze laufen heute", "t": "the dog and a cat are running today"}.items()}  # fmt: skip
    swapped = [" ".join(sorted(text.split())) for text in sides["t"]]  # other pieces, other words
    for name, lines in {**sides, "hyp": [*sides["t"][:20], *swapped[20:]]}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (folder / "cut.yaml").write_text(RECIPE, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = call("run", "cut.yaml", "--out", "runs")
        assert (done.status, "seems to have cut" in done.err) == (0, False), done.err
    return folder


@pytest.fixture(autouse=True)
def _there(folder, monkeypatch):
    monkeypatch.chdir(folder)


def bleu(hypotheses, references):
    return pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).score)


def test_scores_and_predictions_are_of_joined_text(folder):
    references = [joined(line) for line in (folder / "t").read_text("utf-8").splitlines()]
    rows = read_predictions(folder / RUN / "predictions.tsv")
    assert [row.reference for row in rows] == references
    assert not any("@@" in row.hypothesis for row in rows)
    scores = read_json(folder / RUN / "results.json")["test"]
    assert scores["bleu"] == bleu([row.hypothesis for row in rows], references)


def test_outputs_of_another_system_are_joined_too(folder):
    hypotheses, references = (
        [joined(line) for line in (folder / name).read_text("utf-8").splitlines()] for name in ("hyp", "t")
    )
    scores = json.loads(call("evaluate", RUN, "--hypotheses", "hyp", "--json").out)["metrics"]
    assert scores["bleu"] == bleu(hypotheses, references)
    assert scores["exact_match"] == sum(map(str.__eq__, hypotheses, references)) / 40
    pieces = ([(folder / name).read_text("utf-8").splitlines()] for name in ("hyp", "t"))
    of_pieces = sacrebleu.corpus_bleu(*(lines if i else lines[0] for i, lines in enumerate(pieces))).score
    assert abs(of_pieces - scores["bleu"]) > 1


def test_a_translation_is_joined(folder):
    line = (folder / "s").read_text("utf-8").splitlines()[0]
    assert "@@" in line and "@@" not in call("translate", RUN, line).out


def test_what_looks_cut_and_is_not_joined_is_said():
    done = call("check", "cut.yaml", "tokenizer=space")
    assert done.status == 0
    assert (
        "40 of the first 40 targets of train hold “@@ ”: subword-nmt seems to have cut them, and scores and" in done.out
    )
    assert "`tokenizer: {name: space, separator: '@@'}` joins them" in done.out
    assert "seems to have cut" not in call("check", "cut.yaml").out


@pytest.mark.parametrize(
    "text, program",
    [
        ("he@@ llo world", "subword-nmt"),
        ("▁he llo ▁world", "SentencePiece"),
        ("he ##llo world", "WordPiece"),
        *[(text, "") for text in ("a@@b at me@@", "## a heading", "C# and ## b", "he llo", "", "- ▁ -")],
    ],
)
def test_marks_of_pieces(text, program):
    said = looks_cut([text] * 10)
    assert [program in sentence for sentence in said] == ([True] if program else [])
    assert looks_cut([text] * 2 + ["whole words"] * 8) == []
