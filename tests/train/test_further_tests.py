"""`evaluate.tests`: further tests of a finished training are what a run with that test of its own would have measured;
other batches change nothing of a correct model, and what they change of a wrong one is seen."""

import json

import pytest

from paddle_tfm.errors import UserError
from paddle_tfm.predictions import read_predictions
from paddle_tfm.runs.changes import changes
from paddle_tfm.runs.logs import read_rows
from paddle_tfm.train.evaluate import Scorer
from paddle_tfm.train.fit import remarks
from paddle_tfm.train.trainer import Interrupted

pytestmark = pytest.mark.reliability

BEYOND = "evaluate.tests.beyond={task: {test_min_length: 6, test_max_length: 7}}"
ALONE, PADDED = "evaluate.tests.alone={batch: 1}", "evaluate.tests.padded={padding: 7}"
SHORTER = "task={name: reverse, symbols: 5, min_length: 2, max_length: 5, train: 120, valid: 20, test: 20}"
LONGER = f"{SHORTER[:-1]}, test_min_length: 6, test_max_length: 7}}"
WIDE = ("model.max_length=14", "train.steps=2", "evaluate.every=2")


def test_other_texts_score_as_they_do_in_a_run_that_is_tested_on_nothing_else(make_trainer):
    trainer = make_trainer(BEYOND, ALONE, PADDED, *WIDE)
    results = trainer.train()
    alone = make_trainer(LONGER, *WIDE, folder="longer").train()
    beyond = results["tests"]["beyond"]
    assert beyond["scores"] == alone["test"] != results["test"]
    assert (beyond["examples"], beyond["data"]) == (20, alone["data"])
    assert results["caveats"]["test@beyond"]["in_training"] == {"texts": 20, "sources": 0, "pairs": 0}
    assert results["valid"] == alone["valid"]
    folder = trainer.run.folder
    (written, theirs) = (
        read_predictions(path) for path in (folder / "predictions@beyond.tsv", folder.parent / "longer/predictions.tsv")
    )
    assert written == theirs and {len(each.source.split()) for each in written} == {6, 7}
    # A correct model in other batches, which differ by rounding alone.
    for name in ("alone", "padded"):
        facts = results["tests"][name]
        assert facts["data"] == results["data"]
        assert facts["changed_outputs"] == 0 and facts["drift"] < 1e-4
        assert facts["scores"] == pytest.approx(results["test"], rel=1e-5)
        hypotheses = [
            [each.hypothesis for each in read_predictions(folder / f)]
            for f in ("predictions.tsv", f"predictions@{name}.tsv")
        ]
        assert hypotheses[0] == hypotheses[1]
    assert json.loads((folder / "results.json").read_text()) == json.loads(json.dumps(results))


OWN = "evaluate.tests.own={split: valid, task: {min_length: 6, max_length: 7, valid: 12}, while_training: true}"


def test_a_validation_set_of_ones_own_is_scored_with_every_evaluation_and_changes_no_training(make_trainer):
    def rows(trainer):
        return read_rows(trainer.run.folder / "metrics.jsonl")

    steps = ("train.steps=4", "evaluate.every=2", "model.max_length=14")
    plain, own = make_trainer(*steps, folder="plain"), make_trainer(OWN, *steps, folder="own")
    plain.train()
    results = own.train()
    evaluations = {row["step"]: row["evaluation"] for row in rows(own) if "evaluation" in row}
    assert list(evaluations) == [2, 4]
    of_best = evaluations[results["best_step"]]
    assert of_best["loss@own"] == results["tests"]["own"]["scores"]["loss"] != of_best["loss"]
    assert results["caveats"]["valid@own"]["reach"]["texts"] == 12
    stripped = [
        {**row, "evaluation": {name: value for name, value in row["evaluation"].items() if "@" not in name}}
        if "evaluation" in row
        else row
        for row in rows(own)
    ]
    assert stripped == rows(plain)


def test_the_best_checkpoint_is_that_of_the_validation_set_that_is_named(make_trainer):
    steps = ("train.steps=4", "evaluate.every=1", "model.max_length=14", "evaluate.best=loss@own")
    trainer = make_trainer(OWN, *steps)
    results = trainer.train()
    logged = read_rows(trainer.run.folder / "metrics.jsonl")
    losses = {row["step"]: row["evaluation"]["loss@own"] for row in logged if "evaluation" in row}
    assert results["best_step"] == min(losses, key=losses.__getitem__)
    # Stopped in the middle and resumed, it is the same to the bit.
    done = []
    stopped = make_trainer(OWN, *steps, folder="stopped", stop=lambda: done.append(1) or len(done) == 6)
    with pytest.raises(Interrupted):
        stopped.train()
    again = make_trainer(OWN, *steps, folder="stopped")
    again.train(resume=True)
    assert read_rows(again.run.folder / "metrics.jsonl") == logged


def test_what_other_batches_change_of_a_wrong_model_is_seen(make_trainer):
    wrong = "model.norm={encoder: clinic_batch_statistics, decoder: layer}"
    of_valid = "evaluate.tests.of_valid={split: valid, batch: 1}"
    tests = make_trainer(wrong, ALONE, of_valid, PADDED, *WIDE).train()["tests"]
    for name in ("alone", "of_valid"):
        assert tests[name]["changed_outputs"] > 0 and tests[name]["drift"] > 0.1
    # Its statistics leave padding out, so that this changes nothing: the two conditions are apart.
    assert tests["padded"]["changed_outputs"] == 0 and tests["padded"]["drift"] < 1e-4
    wrong = "model.norm={encoder: {name: clinic_batch_statistics, masked: false}, decoder: layer}"
    padded = make_trainer(wrong, PADDED, *WIDE, folder="unmasked").train()["tests"]["padded"]
    assert padded["changed_outputs"] > 0 and padded["drift"] > 0.1


@pytest.mark.parametrize("labels", ["token", "sequence"])
def test_a_model_without_a_decoder_is_padded_where_it_reads(make_trainer, labels):
    task = "task={name: parallel, pairs: [[a b, x y], [b a, y x], [a a, x x]]}"
    task = task if labels == "token" else task.replace("x y", "x").replace("y x", "y").replace("x x", "x")
    shape = ["model.decoder_layers=0", f"model.labels={labels}", "model.norm=layer", "evaluate.metrics=[exact_match]"]
    results = make_trainer(task, *shape, PADDED, ALONE, *WIDE, folder=labels).train()
    for facts in results["tests"].values():
        assert facts["changed_outputs"] == 0 and facts["drift"] < 1e-4


def test_a_run_killed_in_a_further_test_ends_as_one_that_was_not(make_trainer, monkeypatch):
    expected = make_trainer(BEYOND, ALONE, *WIDE, folder="whole").train()
    trainer = make_trainer(BEYOND, ALONE, *WIDE)
    score, scored = Scorer.__call__, []

    def killed_in_the_third(scorer, *arguments, **options):
        if trainer.run.step == 2 and options.get("search") is not None:
            scored.append(options.get("max_rows"))
            if len(scored) == 3:
                raise KeyboardInterrupt
        return score(scorer, *arguments, **options)

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(Scorer, "__call__", killed_in_the_third)
        trainer.train()
    assert scored == [None, None, 1]  # its own test, the longer texts, and one sentence at a time
    folder = trainer.run.folder
    assert not (folder / "results.json").exists() and (folder / "predictions@beyond.tsv").exists()
    again = make_trainer(BEYOND, ALONE, *WIDE)
    results = again.train(resume=True)
    assert {key: results[key] for key in ("test", "valid", "tests", "steps", "tokens")} == {
        key: expected[key] for key in ("test", "valid", "tests", "steps", "tokens")
    }


def test_texts_of_further_tests_are_part_of_the_identity_and_others_of_none(make_run):
    plain, other, batches = make_run(), make_run(BEYOND), make_run(ALONE)
    assert list(plain.fingerprint) == ["train", "valid", "test"] == list(batches.fingerprint)
    assert list(other.fingerprint) == ["train", "valid", "test", "test@beyond"]
    assert "tests" not in plain.recipe["evaluate"]
    assert len({run.identity()["hash"] for run in (plain, other, batches)}) == 3
    then = other.identity()
    now = {**then, "data": {**then["data"], "test@beyond": "0"}}
    assert changes(then, now) == ["data changed (the texts of test@beyond)"]


def test_sources_and_pairs_that_were_trained_on_are_counted_of_every_split(make_run):
    run = make_run(
        "task={name: parallel, pairs: [[a, x], [b, y], [c, z]]}",
        "evaluate.tests.new={task: {pairs: [[a, x], [a, y], [d, x], [b, z], [a, x]]}}",
    )
    trained = [(each.example.source, each.example.target) for each in run.encoded["train"]]
    expected = {}
    for split in ("valid", "test", "test@new"):
        pairs = [(each.example.source, each.example.target) for each in run.encoded[split]]
        sources = sum(source in {known for known, _ in trained} for source, _ in pairs)
        expected[split] = {"texts": len(pairs), "sources": sources, "pairs": sum(pair in trained for pair in pairs)}
    assert run.in_training == expected
    assert expected["test@new"] == {"texts": 5, "sources": 4, "pairs": 2}
    apart = make_run("evaluate.tests.apart={task: {test: 5}}", folder="apart").in_training
    assert {(each["sources"], each["pairs"]) for each in apart.values()} == {(0, 0)}


def test_texts_alone_are_counted_as_texts(make_run, tmp_path):
    (tmp_path / "book.txt").write_text("a b c d e f g h i j k l m n o p\n" * 4, "utf-8")
    book = str(tmp_path / "book.txt")
    task = f"task={{name: text, train: {book}, valid: {book}, test: {book}, block: 8, stride: 4}}"
    run = make_run(task, "model.encoder_layers=0", "evaluate.metrics=[perplexity]", "evaluate.best=perplexity")
    number = len(run.encoded["test"])
    assert run.in_training == {split: {"texts": number, "sources": number} for split in ("valid", "test")}


# ------------------------------------------------------------------------------------------- lengths: the case K09

LONG = "task: {test_min_length: 7, test_max_length: 9, test: 40}"  # pieces, of which an output has 6 at most
SHORT = "model.max_length=7"


def test_a_test_whose_references_cannot_be_reached_is_refused(make_run):
    with pytest.raises(UserError) as refused:
        make_run(f"evaluate.tests.long={{{LONG}}}", SHORT)
    assert str(refused.value) == (
        "test@long: 40 of 40 references have more than 6 pieces (model.max_length − 1), up to 9; raise "
        "model.max_length, or set evaluate.tests.long.max_length if its encodings know positions beyond"
    )
    with pytest.raises(UserError, match=r"^test: 15 of 20 references have more than 4 pieces .*; raise model\.max_len"):
        make_run("model.max_length=5", SHORTER.replace("test: 20", "test: 20, test_min_length: 4, test_max_length: 7"))
    make_run(f"evaluate.tests.long={{{LONG}}}", SHORT, "evaluate.metrics=[perplexity]", "evaluate.best=loss")
    # A search can be changed after the training: said, and no more.
    run = make_run(f"evaluate.tests.long={{{LONG}}}", "search={name: greedy, max_length: 6}", *WIDE)
    assert remarks(run.plan, run.encoded) == [
        "test@long: 40 of 40 references have more than the search's limit, up to 9; raise the search's max_ratio, "
        "max_extra or max_length"
    ]


def test_outputs_that_were_cut_are_counted_and_longer_ones_may_be_asked_for(make_trainer):
    some = LONG.replace("test_min_length: 7", "test_min_length: 4")
    tests = f"evaluate.tests={{long: {{{some}}}, far: {{max_length: 12, {LONG}}}}}"
    said = []
    trainer = make_trainer(tests, SHORT, "model.position=rotary", report=said.append)
    results = trainer.train()
    assert trainer.run.model.max_length == 7  # as it was
    for name, most in (("long", 6), ("far", 11)):
        rows = read_predictions(trainer.run.folder / f"predictions@{name}.tsv")
        written = [len(row.hypothesis.split()) for row in rows]  # `reverse` has a piece a word
        references = [len(row.reference.split()) for row in rows]
        reach = results["caveats"][f"test@{name}"]["reach"]
        assert max(written) <= most
        cut = sum(number == most and row.hypothesis != row.reference for number, row in zip(written, rows))
        assert (reach["cut"], reach["most"], reach["texts"]) == (cut, most, 40)
        assert reach["beyond"] == sum(number > most for number in references)
        assert any(f"test@{name}: {cut} of 40 outputs were cut at {most} pieces" in text for text in said) == (cut > 0)
    assert results["caveats"]["test@far"]["reach"]["beyond"] == 0 < results["caveats"]["test@long"]["reach"]["beyond"]
    assert max(len(row.hypothesis.split()) for row in read_predictions(trainer.run.folder / "predictions@far.tsv")) > 6


def test_a_further_test_needs_texts(make_run):
    pairs = "task={name: parallel, train: t.tsv, valid: t.tsv}"
    run = make_run()
    (run.folder.parent / "t.tsv").write_text("a\tb\nb\ta\n", "utf-8")
    pairs = pairs.replace("t.tsv", str(run.folder.parent / "t.tsv"))
    with pytest.raises(UserError, match=r"evaluate\.tests\.alone is of the test split, but task 'parallel' has none"):
        make_run(pairs, ALONE)
    assert list(make_run(pairs, "evaluate.tests.alone={split: valid, batch: 1}").encoded) == ["train", "valid", "test"]


def test_padding_that_does_not_fit_is_refused_before_training(make_run):
    with pytest.raises(
        UserError, match=r"evaluate\.tests\.padded: 7 columns of padding and texts of up to 6 tokens.*=10; use 4 "
    ):
        make_run(PADDED)
    with pytest.raises(UserError, match=r"texts of 8 tokens leave no room for padding within model\.max_length=8"):
        make_run(
            "evaluate.tests.one={padding: 1, task: {test_min_length: 7, test_max_length: 7}}", "model.max_length=8"
        )
    make_run("evaluate.tests.fits={padding: 4}")
