"""Beginning with the weights of another run, and going on beyond the end of one."""

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from small_runs import TINY

from paddle_tfm import load_recipe
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.sections.carried import Carried
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare
from paddle_tfm.data.codec import Codec
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.runs import checkpoint
from paddle_tfm.runs.carried import Start
from paddle_tfm.runs.changes import facts, gaps
from paddle_tfm.runs.logs import read_rows
from paddle_tfm.sweep.check import check
from paddle_tfm.sweep.sweep import Sweep
from paddle_tfm.train.run import load_run

pytestmark = pytest.mark.reliability

CONSTANT = "train.schedule={name: constant, learning_rate: 3e-3}"


def weights(folder, which="last"):
    return checkpoint.load_arrays(folder / "checkpoints" / which)


def same(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.fixture
def sweep(registry, tmp_path):
    said = []

    def train(*overrides, folder="sweep", resume=False):
        recipe = load_recipe("base", [*TINY, *overrides])
        return Sweep(recipe, registry, tmp_path / folder, resume=resume, report=said.append).run()

    train.said = said
    return train


# ------------------------------------------------------------------------------------------------------- more steps


def test_a_finished_run_goes_on_to_the_same_bits(sweep):
    (whole,) = sweep(CONSTANT, "train.steps=16", folder="whole")
    sweep(CONSTANT, "train.steps=8")
    (parts,) = sweep(CONSTANT, "train.steps=16", resume=True)
    assert "default/seed-1 is finished after 8 steps, and continues to 16" in sweep.said
    for which in ("last", "best"):
        same(weights(whole, which), weights(parts, which))
    optimizers = [checkpoint.load_arrays(each / "checkpoints" / "last", "optimizer") for each in (whole, parts)]
    same(*optimizers)
    one, other = (json.loads((each / "results.json").read_text()) for each in (whole, parts))
    assert one["test"] == other["test"] and one["steps"] == other["steps"] == 16
    identities = [json.loads((each / "identity.json").read_text()) for each in (whole, parts)]
    assert identities[0]["recipe"] == identities[1]["recipe"] and identities[0]["hash"] != identities[1]["hash"]
    assert [each["steps"] for each in other["continued"]] == [8]
    differing = gaps(*(({}, facts(identity)) for identity in identities))
    assert [(gap.what, gap.other) for gap in differing] == [("steps after which it was continued", "8")]
    (again,) = sweep(CONSTANT, "train.steps=24", resume=True)
    assert [each["steps"] for each in json.loads((again / "identity.json").read_text())["continued"]] == [8, 16]
    with pytest.raises(UserError, match=r"train\.steps was 24 and is 16"):
        sweep(CONSTANT, "train.steps=16", resume=True)


def test_a_schedule_is_stretched_or_restated(sweep):
    cosine, steps = "train.schedule={name: cosine, peak: 3e-3, warmup: 2}", ("train.steps=8", "train.steps=16")
    sweep(cosine, steps[0])
    (run,) = sweep(cosine, steps[1], resume=True)
    assert "its schedule depends on the length: the steps so far had the rates of 8 steps" in sweep.said[-3:].__str__()
    rates = [row["learning_rate"] for row in read_rows(run / "metrics.jsonl") if "loss" in row]
    (whole,) = sweep(cosine, steps[1], folder="whole")
    of_whole = [row["learning_rate"] for row in read_rows(whole / "metrics.jsonl") if "loss" in row]
    assert rates[8:] == of_whole[8:] and rates[4:8] != of_whole[4:8]
    (run,) = sweep(CONSTANT, "train.steps=20", resume=True)
    assert read_rows(run / "metrics.jsonl")[-2]["learning_rate"] == pytest.approx(3e-3)
    with pytest.raises(UserError, match=r"train\.max_tokens was 128 and is 64"):
        sweep(CONSTANT, "train.steps=30", "train.max_tokens=64", resume=True)


def test_weights_that_were_averaged_are_not_waited_for(sweep):
    average = (CONSTANT, "train.average=2", "evaluate.every=2")
    sweep(*average, "train.steps=4")
    (run,) = sweep(*average, "train.steps=10", resume=True)
    assert json.loads((run / "results.json").read_text())["averaged"]["steps"] == [8, 10]


# ------------------------------------------------------------------------------------------------- from another run


@pytest.fixture(scope="module")
def trained(registry, tmp_path_factory):
    """A run of eight steps. Tests get copies."""
    folder = tmp_path_factory.mktemp("source") / "sweep"
    (run,) = Sweep(load_recipe("base", [*TINY, "train.steps=8"]), registry, folder).run()
    return run


@pytest.fixture
def source(trained, tmp_path):
    return Path(shutil.copytree(trained, tmp_path / "source"))


def test_it_begins_with_the_weights_and_pieces_of_the_other_run(source, make_trainer):
    """Beside the weights set by hand, as a listener could: to the bit."""
    said = []
    short = ("train.steps=4", "evaluate.every=4")
    trainer = make_trainer(f"train.from={source}", *short, folder="fine", report=said.append)
    by_hand = make_trainer(*short, folder="by-hand")
    checkpoint.load_model(source / "checkpoints" / "best", by_hand.run.model)
    results = [each.train() for each in (trainer, by_hand)]
    same(weights(trainer.run.folder), weights(by_hand.run.folder))
    assert results[0]["valid"] == results[1]["valid"]
    began = results[0]["start"]
    assert began["carried"] == began["numbers"] and not began["drawn"] and not began["left_out"]
    assert any("100.0% of" in sentence and "carried over" in sentence for sentence in said)
    nothing = make_trainer(*short, folder="nothing")
    assert nothing.train()["valid"]["loss"] > results[0]["valid"]["loss"]


def test_it_resumes_to_the_bit_when_the_other_run_is_gone(source, make_trainer, train_in_parts):
    settings = (
        f"train.from={source}",
        "train.freeze=['encoder.*']",
        "train.rate_factors={'head.*': 2}",
        "train.ema=0.9",
        "train.steps=6",
        "evaluate.every=3",
    )
    whole = make_trainer(*settings, folder="whole")
    whole.train()
    parts = make_trainer(*settings, folder="parts", stop=lambda: True)
    with pytest.raises(Exception, match="default"):
        parts.train()
    shutil.rmtree(source)
    trainer, _results = train_in_parts(*settings, stops=[4])
    same(weights(whole.run.folder), weights(trainer.run.folder))
    same(weights(whole.run.folder, "best"), weights(trainer.run.folder, "best"))
    identities = [json.loads((each.run.folder / "identity.json").read_text()) for each in (whole, trainer)]
    assert identities[0]["hash"] == identities[1]["hash"]
    assert load_run(trainer.run.folder, trainer.run.plan.registry).translate(["1 2 3"])


def test_the_identity_knows_the_weights(source, make_run, make_trainer):
    one = make_run(f"train.from={source}", folder="one").identity()
    shutil.rmtree(source)
    make_trainer("train.steps=1", "seeds=[2]", folder="source").train()
    assert make_run(f"train.from={source}", folder="two").identity()["hash"] != one["hash"]


def test_a_transplant_carries_what_has_a_place_and_lists_the_rest(source, make_trainer):
    said = []
    few = ("train.steps=1", "evaluate.every=1")
    trainer = make_trainer(f"train.from={source}", "model.norm=rms", *few, folder="rms", report=said.append)
    before, after = weights(source, "best"), trainer.run.model.state_dict()
    began = trainer.run.history["start"]
    biases = {name for name in before if "norm" in name and name.endswith(".bias")}
    assert set(began["left_out"]) == biases and not began["drawn"]
    same(
        {name: array for name, array in before.items() if name not in biases}, {k: v.numpy() for k, v in after.items()}
    )
    assert began["settings"] == ["model.norm was layer and is rms"]
    assert Start(**began).lost == sum(before[name].size for name in biases) / sum(x.size for x in before.values())
    trainer.train()
    assert any("encoder.layers.*.placement.norms.*.bias [16] × 2" in sentence for sentence in said), "\n".join(said)


def test_a_control_draws_a_share_of_the_weights_again(source, make_run):
    """The places are random; there the run has the values with which it would have begun by itself."""
    begin, share = f"train.from={source}", 0.2
    run = make_run(begin, f"train.redraw={share}", folder="control")
    before, fresh = weights(source, "best"), make_run(folder="fresh").model.state_dict()
    again = 0
    for name, tensor in run.model.state_dict().items():
        differs = tensor.numpy() != before[name]
        np.testing.assert_array_equal(tensor.numpy()[differs], fresh[name].numpy()[differs], err_msg=name)
        again += differs.sum()
    number = run.history["start"]["redrawn"]
    assert number == round(share * sum(array.size for array in before.values()))
    assert 0.98 * number <= again <= number  # a gain of a norm that is 1 again may be what it was
    again, other = (
        make_run(begin, f"train.redraw={share}", folder="b"),
        make_run(begin, f"train.redraw={share}", "seeds=[2]", folder="c"),
    )
    one, two, three = (each.model.state_dict()["source_embedding.weight"].numpy() for each in (run, again, other))
    np.testing.assert_array_equal(one, two)
    assert (one != three).any()


def test_a_placement_that_calibrates_leaves_the_weights_as_they_were(source, make_trainer):
    trainer = make_trainer(f"train.from={source}", "model.placement=admin", "train.steps=1", folder="admin")
    began = trainer.run.history["start"]
    trainer._start(resume=False)
    after, before = trainer.run.model.state_dict(), weights(source, "best")
    for name, tensor in after.items():
        if name not in began["drawn"]:
            np.testing.assert_array_equal(tensor.numpy(), before[name], err_msg=name)


# ------------------------------------------------------------------------------------------------------- vocabulary


WORDS = "task={name: parallel, train: [%s.a, %s.b], valid: 4, test: 4}"


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    """Two corpora with some words in common."""
    monkeypatch.chdir(tmp_path)
    for name, words in (("old", "one two three four five"), ("new", "three four five six seven")):
        rng = np.random.default_rng(1)
        texts = [" ".join(rng.choice(words.split(), 4)) for _ in range(60)]
        for side in "ab":
            (tmp_path / f"{name}.{side}").write_text(
                "".join(f"{text.upper() if side == 'b' else text}\n" for text in texts)
            )
    return tmp_path


def settings(name):
    return WORDS % (name, name)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("vocabulary", ["extend", "replace"])
def test_rows_go_with_their_pieces(corpora, make_trainer, vocabulary, tied):
    shape = ["model.head=tied"] if tied else []
    trainer = make_trainer(settings("old"), "train.steps=1", *shape, folder="source")
    trainer.train()
    old, folder = trainer.run.codec, trainer.run.folder
    run = make_trainer(
        settings("new"), f"train.from={folder}", f"train.vocabulary={vocabulary}", *shape, folder="new"
    ).run
    before, after = weights(folder, "best"), {name: each.numpy() for name, each in run.model.state_dict().items()}
    expected = {"kept": 3, "added": 2, "removed": 2 if vocabulary == "replace" else 0}
    expected["kept"] += 2 * (vocabulary == "extend")
    assert run.history["start"]["pieces"] == {"source": expected, "target": expected}
    assert not run.history["start"]["drawn"]
    for side, axes in (("source", {"source_embedding.weight": 0}), ("target", {"target_embedding.weight": 0})):
        ours, theirs = (getattr(codec, f"{side}_vocabulary") for codec in (run.codec, old))
        if side == "target":
            axes |= {"head.output.weight": 1, "head.output.bias": 0} if not tied else {}
        for name, axis in axes.items():
            for piece, row in ours.ids.items():
                was = theirs.ids.get(piece, 3)  # a whole word is one piece, of which nothing was known
                np.testing.assert_array_equal(after[name].take(row, axis), before[name].take(was, axis), err_msg=piece)
    if vocabulary == "extend":
        assert run.codec.source_vocabulary.pieces[: len(old.source_vocabulary)] == old.source_vocabulary.pieces


def test_new_pieces_of_words_begin_as_the_mean_of_their_old_ones(corpora, make_trainer):
    for name, words in (("old", "low lower lowest new newer"), ("new", "low wide wider widest newest")):
        several = itertools.permutations(words.split(), 4)
        for side in "ab":
            (corpora / f"{name}.{side}").write_text("".join(f"{' '.join(each)}\n" for each in several))
            several = itertools.permutations(words.split(), 4)
    pieces = "tokenizer={name: sentencepiece, size: %d, byte_fallback: false}"
    for model in ("unigram", "bpe"):
        tokenizer = (pieces % 14).replace("}", f", model: {model}}}")
        trainer = make_trainer(
            settings("old"), tokenizer, "train.steps=1", "model.max_length=40", folder=f"source-{model}"
        )
        trainer.train()
        more = (f"train.from={trainer.run.folder}", "train.vocabulary=extend")
        run = make_trainer(settings("new"), tokenizer, *more, "model.max_length=40", folder=f"new-{model}").run
        before, after = weights(trainer.run.folder, "best"), run.model.state_dict()
        old, new = trainer.run.codec, run.codec
        added = [piece for piece in new.source_vocabulary.ids if piece not in old.source_vocabulary.ids]
        several = 0
        for piece in added:
            cut = old.source.tokenize(piece.replace("▁", " "))
            ids = [old.source_vocabulary.ids[each] for each in cut if each in old.source_vocabulary.ids] or [3]
            several += len(ids) > 1
            mean = before["source_embedding.weight"][ids].mean(0)
            row = after["source_embedding.weight"].numpy()[new.source_vocabulary.ids[piece]]
            np.testing.assert_allclose(row, mean, rtol=1e-6, err_msg=piece)
        assert several, added
        text = "low widest"
        assert new.source.detokenize(new.source.tokenize(text)) == text
        assert len(new.source.tokenize("widest")) < len(old.source.tokenize("widest"))
        run.codec.save(corpora / f"codec-{model}")
        assert Codec.load(run.plan, corpora / f"codec-{model}").vocabulary_hash() == new.vocabulary_hash()


# -------------------------------------------------------------------------------------------------------- bad input


def refused(registry, *overrides, heads=True):
    with pytest.raises(RecipeError) as caught:
        check(load_recipe("base", [*TINY, *overrides]), registry, heads=heads)
    return str(caught.value)


def test_what_cannot_be_begun_with_is_refused_before_the_training(source, registry, tmp_path, sweep):
    begin = f"train.from={source}"
    assert "no run is here" in refused(registry, f"train.from={tmp_path / 'none'}")
    for setting, sentence in [
        ("model.encoder_layers=0", "a run of another kind"),
        ("model.d_model=32", "have another shape there: encoder."),
        ("tokenizer=char", "tokenizer was word and is char, but the weights of"),
        ("vocabulary.symbols=['<x>']", "vocabulary.symbols was [] and is [<x>]"),
    ]:
        more = ["evaluate.metrics=[perplexity]", "evaluate.best=perplexity", "task=copy"] if "layers" in setting else []
        text = refused(registry, begin, setting, *more)
        assert sentence in text and ("train.from" in text or setting.split("=")[0] in text), text
    assert "says what becomes of the pieces of another run" in refused(registry, "train.vocabulary=extend")
    assert "says how many weights of another run are drawn again" in refused(registry, "train.redraw=0.1")
    with pytest.raises(RecipeError, match="no run is here"):
        sweep(f"train.from={tmp_path / 'none'}")
    shutil.rmtree(source / "checkpoints")
    assert "no such checkpoint" in refused(registry, begin)


def test_texts_of_other_pieces_are_refused(source, make_run):
    with pytest.raises(UserError, match="of the pieces of the training texts are none of"):
        make_run("task={name: copy, symbols: 40, min_length: 2, max_length: 5, train: 50}", f"train.from={source}")


def test_the_same_weights_for_all_variants_and_seeds(source, sweep, registry):
    runs = sweep(f"train.from={source}", "model.norm=layer,rms", "seeds=[1, 2]", "train.steps=1")
    began = [json.loads((run / "results.json").read_text())["start"] for run in runs]
    assert len(began) == 4 and len({each["weights"] for each in began}) == 1
    assert [bool(each["left_out"]) for each in began] == [False, True, False, True]
    folder = runs[0].parent.parent
    facts = Facts(compare(collect([folder]), "base", folder, "exact_match", "layer"), registry)
    (table,) = Carried().tables(facts).values()
    page = {row["variant"]: {each.heading: each.cell(row) for each in table.columns} for row in table.rows}
    assert page["layer"]["carried over"] == "100.0%" and not page["layer"]["left out"]
    assert "decoder.layers.*.placement.norms.*.bias [16] × 3" in page["rms"]["left out"]
