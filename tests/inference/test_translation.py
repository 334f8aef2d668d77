"""Texts through a trained run: order, empty lines, prefixes, n-best, numbers."""

import numpy as np
import paddle
import pytest
from recipe_text import TINY_MODEL

import paddle_tfm
from paddle_tfm import UserError, processes
from paddle_tfm.data.batches import collate
from paddle_tfm.data.vocabulary import EOS
from paddle_tfm.inference.translate import Translation
from paddle_tfm.protocols import Example, Hypothesis, Search
from paddle_tfm_plugins.search.beam import Beam
from paddle_tfm_plugins.search.greedy import Greedy
from paddle_tfm_plugins.search.sampling import Sampling

TEXTS = ["1 2 3", "", "4", "5 6 1 2 3 4", "   ", "2 2", "6 5 4 3 2 1"]
OPTIONS = {"max_extra": 4, "min_length": 1}
SEARCHES = [Greedy(**OPTIONS), Beam(size=3, **OPTIONS), Sampling(samples=3, **OPTIONS)]


def ids(results):
    """What was found, without scores, whose last bits depend on the batch."""
    return [[output.ids for output in several] for several in results]


@pytest.mark.parametrize("search", SEARCHES)
def test_there_is_one_output_for_each_text_in_order(trained_run, search):
    outputs = trained_run.translate(TEXTS, search)
    assert len(outputs) == len(TEXTS)
    assert outputs[1] == outputs[4] == ""
    assert all(outputs[i] for i in (0, 2, 3, 5, 6))
    assert outputs == [several[0].text for several in trained_run.hypotheses(TEXTS, search)]
    assert outputs == trained_run.translate(TEXTS, search, max_tokens=1)
    if not isinstance(search, Sampling):  # whose draws depend on a text's number
        assert outputs == [trained_run.translate([text], search)[0] for text in TEXTS]
        assert outputs[::-1] == trained_run.translate(TEXTS[::-1], search)
    assert trained_run.translate([], search) == []
    assert trained_run.translate("4", search) == trained_run.translate(["4"], search)


def test_the_number_of_the_first_text_makes_parts_of_a_whole(trained_run):
    """What a search draws for a text is the same whether its file is read at once or in parts."""
    search = Sampling(samples=2, max_extra=4)
    whole = ids(trained_run.hypotheses(TEXTS, search, nbest=2))
    parts = [ids(trained_run.hypotheses(TEXTS[i : i + 3], search, nbest=2, first=i)) for i in (0, 3, 6)]
    assert [several for part in parts for several in part] == whole
    assert ids(trained_run.hypotheses(TEXTS[3:], search, nbest=2)) != whole[3:]


@pytest.mark.parametrize("search", SEARCHES[1:])
def test_n_best_outputs_come_best_first_with_what_they_are_made_of(trained_run, search):
    results = trained_run.hypotheses(TEXTS, search, nbest=3)
    assert [len(several) for several in results] == [3, 1, 3, 3, 1, 3, 3]
    assert results[1] == results[4] == [Translation("", (), (), 0.0)]
    assert ids(trained_run.hypotheses(TEXTS, search, nbest=2)) == [several[:2] for several in ids(results)]
    for text, several in zip(TEXTS, results):
        for output in several:
            assert list(output.pieces) == trained_run.codec.pieces(output.ids)
            assert output.text == trained_run.codec.text(output.pieces)
            assert output.mean == pytest.approx(output.score / (len(output.pieces) + 1))
            if text.strip():
                assert output.score == pytest.approx(likelihood(trained_run, text, output.ids), abs=1e-3)


def likelihood(run, text, ids):
    """log p(ids, end | text), by one pass with the output fed."""
    encoded = run.codec.encode(Example(text, ""))._replace(target=[*ids, EOS])
    batch = collate([encoded]).tensors()
    with paddle.no_grad():
        h, memory = run.model(batch)
        log_probs = run.model.head.log_probs(h, memory).numpy()[0]
    return sum(log_probs[t, token] for t, token in enumerate([*ids, EOS]))


@pytest.mark.parametrize("search", SEARCHES)
def test_outputs_begin_with_the_prefix(trained_run, search):
    for several in trained_run.hypotheses(["1 2 3", "4", "5 6"], search, nbest=search.nbest, prefix="6  6 "):
        for output in several:
            assert output.pieces[:2] == ("▁6", "▁6")
            assert output.text.startswith("6 6")
    each = trained_run.hypotheses(["1 2 3", "", "4"], search, prefix=["", "5", "3 3 3"])
    assert ids(each[:1]) == ids(trained_run.hypotheses(["1 2 3"], search))
    assert each[1] == [Translation()]
    assert each[2][0].pieces[:3] == ("▁3", "▁3", "▁3")
    assert ids(trained_run.hypotheses(["4"], search, prefix=" ")) == ids(trained_run.hypotheses(["4"], search))


@pytest.mark.parametrize("tokenizer", ["char", "mixed", "{name: sentencepiece, size: 270}"])
def test_a_prefix_is_cut_like_a_whole_output(tmp_path, tokenizer):
    """The output's pieces begin with those of the prefix alone, its text with the prefix; white space at its ends is
    nothing."""
    overrides = [
        "task={name: reverse, symbols: 30, min_length: 1, max_length: 6, train: 60, valid: 4, test: 4}",
        *TINY_MODEL,
        f"tokenizer={tokenizer}", "train.steps=2", "evaluate.every=2",
    ]  # fmt: skip
    run = paddle_tfm.load_run(paddle_tfm.run("base", overrides, out=tmp_path / "out")[0])
    beginning = tuple(run.codec.target.tokenize("12 3"))
    for (output,) in run.hypotheses(["1 2", "30"], Greedy(max_extra=3), prefix="  12  3 "):
        assert output.pieces[: len(beginning)] == beginning
        assert output.text.startswith("12 3")


def test_a_pointer_head_begins_with_a_word_of_the_source(tmp_path):
    """A prefix may hold a word that the vocabulary lacks where the source has it and the head copies."""
    overrides = [
        "task={name: reverse, symbols: 6, min_length: 1, max_length: 6, train: 60, valid: 4, test: 4}",
        *TINY_MODEL,
        "model.head=pointer", "train.steps=2", "evaluate.every=2",
    ]  # fmt: skip
    run = paddle_tfm.load_run(paddle_tfm.run("base", overrides, out=tmp_path / "pointer")[0])
    (output,) = run.hypotheses(["1 zwei 3"], prefix="zwei")[0]
    assert output.text.split()[0] == "zwei"
    with pytest.raises(UserError, match="prefix 'drei': the model has no piece '▁drei'"):
        run.hypotheses(["1 zwei 3"], prefix="drei")


def test_progress_counts_every_text(trained_run):
    counts = []
    trained_run.translate(TEXTS, Greedy(), max_tokens=8, progress=counts.append)
    assert sum(counts) == len(TEXTS) and len(counts) > 2


def test_what_cannot_be_done_is_one_sentence(trained_run):
    with pytest.raises(UserError, match=r"prefix '1 zwei 77': the model has no piece '▁zwei', '▁77'$"):
        trained_run.hypotheses(["1"], prefix="1 zwei 77")
    with pytest.raises(UserError, match=r"has 32 pieces, but an output has at most 31 \(model.max_length\)"):
        trained_run.hypotheses(["1"], prefix="1 " * 32)
    assert len(trained_run.hypotheses(["1"], prefix="1 " * 31)[0][0].ids) == 31
    with pytest.raises(UserError, match="3 outputs of each text are required, but the search gives at most 2"):
        trained_run.hypotheses(["1"], Beam(size=2), nbest=3)


def test_a_search_of_ones_own_gives_as_many_as_it_says(trained_run):
    class Two(Search):
        nbest = 2

        def run(self, decoding):
            return [[Hypothesis([4], -1.0), Hypothesis([], -2.0), Hypothesis([5], -3.0)] for _ in decoding.max_lengths]

    (results,) = trained_run.hypotheses(["1"], Two(), nbest=2)
    assert [output.score for output in results] == [-1.0, -2.0]
    np.testing.assert_allclose([output.mean for output in results], [-0.5, -2.0])
    with pytest.raises(UserError, match="at most 2"):
        trained_run.hypotheses(["1"], Two(), nbest=3)


@pytest.mark.parametrize("search", SEARCHES)
def test_processes_that_share_the_work_write_what_one_writes(trained_run, monkeypatch, search):
    """Texts in batches of other sizes, decoded side by side and put back in order, and what a search draws."""
    texts = [" ".join(map(str, row)) for row in np.random.default_rng(1).integers(1, 7, (40, 6)).tolist()]
    counts, results = [], {}
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        monkeypatch.setattr(processes, "MIN_BATCH_TOKENS", 8)
        results[threads] = trained_run.hypotheses(texts, search, max_tokens=100, progress=counts.append)
    assert ids(results["3"]) == ids(results["1"])
    for one, other in zip(results["1"], results["3"]):
        assert other[0].score == pytest.approx(one[0].score, abs=1e-4)
    assert sum(counts) == 2 * len(texts)
