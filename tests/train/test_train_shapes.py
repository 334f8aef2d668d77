"""Runs of models of one stack: from a recipe to scores, resumed, shared among processes, beside runs with both
stacks."""

import json
import math

import numpy as np
import pytest

import paddle_tfm
from paddle_tfm import UserError
from paddle_tfm.train.divided.shared_step import ShardedStep
from paddle_tfm.train.run import load_run

pytestmark = pytest.mark.reliability

TEXT = "the cat sat on the mat\nand the dog ran after it\n"
SIZES = ["model.d_model=16", "model.num_heads=2", "model.d_ff=24", "model.dropout=0.1", "train.max_tokens=128"]
STEPS = ["train.steps=6", "evaluate.every=3", "train.schedule={name: inverse_sqrt, peak: 1e-2, warmup: 2}"]
DECODER = [
    *SIZES, *STEPS, "model.encoder_layers=0", "model.decoder_layers=1", "model.max_length=16",
    "tokenizer={name: char, exact: true}", "evaluate.metrics=[bits_per_character, perplexity, token_accuracy]",
    "evaluate.best=bits_per_character",
]  # fmt: skip
LABELS = [*SIZES, *STEPS, "model.decoder_layers=0", "model.encoder_layers=1", "tokenizer=space"]
COPY = "task={name: copy, symbols: 5, min_length: 2, max_length: 5, train: 60, valid: 12, test: 12}"
PAIRS = "task={name: parallel, pairs: [[a b, x], [b a, y], [a a, x], [b b, y]]}"


@pytest.fixture
def book(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text(TEXT * 6, "utf-8")
    return "task={name: text, train: book.txt, valid: book.txt, test: book.txt, block: 16, stride: 8}"


def results(folder):
    return json.loads((folder / "results.json").read_text("utf-8"))


def test_a_decoder_alone_from_a_recipe_to_text(book, tmp_path):
    (folder,) = paddle_tfm.run("base", [*DECODER, book], out=tmp_path / "out")
    scores = results(folder)
    bits, loss = scores["test"]["bits_per_character"], scores["test"]["loss"]
    assert bits == pytest.approx(loss / math.log(2)), "of characters without an end, a token is a character"
    assert scores["test"]["loss"] < scores["valid"]["loss"] + 1e-6
    run = paddle_tfm.load_run(folder)
    assert len(run.codec.source_vocabulary) == len(run.codec.target_vocabulary) == 4 + len(set(TEXT))
    assert run.generate("the cat", 30, on_text=print).text
    for ask in (run.translate, run.hypotheses):
        with pytest.raises(UserError, match="decoder-only: it has no source to translate"):
            ask(["x"])


@pytest.mark.parametrize(
    "overrides, metric",
    [([COPY], "token_error_rate"), ([PAIRS, "model.labels=sequence"], "exact_match")],
    ids=["tokens", "sequence"],
)
def test_an_encoder_alone_from_a_recipe_to_labels(tmp_path, overrides, metric):
    (folder,) = paddle_tfm.run(
        "base", [*LABELS, *overrides, "train.steps=60", "evaluate.every=30"], out=tmp_path / "out"
    )
    scores = results(folder)["test"]
    assert scores[metric] == (0.0 if metric == "token_error_rate" else 1.0), "it can be learned by heart"
    assert scores["loss"] == pytest.approx(math.log(scores["perplexity"]))
    run = paddle_tfm.load_run(folder)
    if metric == "exact_match":
        assert run.translate(["a b", "b b", ""]) == ["x", "y", ""]
    else:
        assert run.translate(["1 2 1", "3"]) == ["1 2 1", "3"]
    with pytest.raises(UserError, match="is encoder-only: it reads a source, and continues no text"):
        run.generate("x")


@pytest.mark.parametrize("shape", ["decoder", "tokens"])
def test_gradients_are_shared_among_processes(book, make_trainer, shape, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    trainer = make_trainer(*([*DECODER, book] if shape == "decoder" else [*LABELS, COPY]))
    run, results_by_count = trainer.run, []
    run.model.train()
    batch = next(trainer.stream)
    for processes in (1, 2):
        with trainer.sharded_step(processes) as step:
            assert isinstance(step, ShardedStep) == (processes > 1)
            loss = step.backward(1, [batch]).loss
        results_by_count.append([loss, *(parameter.grad.numpy().copy() for parameter in step.parameters)])
        run.model.clear_gradients()
    for one, two in zip(*results_by_count):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


def test_variants_of_both_shapes_stand_in_one_comparison(tmp_path, monkeypatch):
    """Each encodes the corpus for itself: only the one with a decoder writes an end."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(
        "base: base.yaml\nname: mine\nsummary: shapes\nbaseline: both\nvariants: {both: {}, alone: "
        "{model.decoder_layers: 0}}\nevaluate: {metrics: [exact_match, token_error_rate]}\n"
    )
    both, alone = paddle_tfm.run("mine.yaml", [*SIZES, *STEPS, COPY, "tokenizer=space"], out=tmp_path / "out")
    registry = paddle_tfm.create_registry()
    assert [load_run(folder, registry).codec.closes for folder in (both, alone)] == [True, False]
    tokens = [sum(json.loads(row).get("tokens", 0) for row in (folder / "metrics.jsonl").read_text().splitlines()) for folder in (both, alone)]  # fmt: skip
    assert tokens[0] > tokens[1] > 0


@pytest.mark.parametrize(
    "overrides, sentence",
    [
        ([*DECODER, "tokenizer=space", COPY], "reads no source, but example 1 of the train split has one: '"),
        ([*LABELS, "task={name: parallel, pairs: [[a b, x y], [a, x y]]}"], "as many as source pieces, but example 2 of the train split has 1 source and 2 target pieces: 'a' → 'x y'"),
        ([*LABELS, "model.labels=sequence", "task={name: parallel, pairs: [[a b, x y]]}"], "one for each source, but example 1"),
    ],
)  # fmt: skip
def test_texts_that_do_not_fit_the_shape_are_refused_before_training(tmp_path, overrides, sentence):
    with pytest.raises(UserError, match=sentence):
        paddle_tfm.run("base", overrides, out=tmp_path / "out")


def test_pieces_that_are_drawn_anew_cannot_be_labelled(tmp_path):
    pairs = "task={name: parallel, pairs: [[aaaa bbbb aaaa, x], [bbbb aabb, y]]}"
    tokenizer = "tokenizer={source: {name: sentencepiece, size: 261, sampling: 0.5}, target: space}"
    with pytest.raises(UserError, match="needs the same pieces in every epoch"):
        paddle_tfm.run("base", [*LABELS, "model.labels=sequence", pairs, tokenizer], out=tmp_path / "out")
