"""Ensembles: each step of a search sees the mean of the probabilities of its models, computed here in NumPy."""

import dataclasses

import numpy as np
import paddle
import pytest

import paddle_tfm
from paddle_tfm import UserError, load_run
from paddle_tfm.data.vocabulary import BOS, EOS, PAD
from paddle_tfm.protocols import Example
from paddle_tfm.train.evaluate import log_probs
from paddle_tfm_plugins.search.beam import Beam
from paddle_tfm_plugins.search.greedy import Greedy

pytestmark = pytest.mark.reliability

TEXTS = ["1 2 3", "4", "5 6 1 2 3 4", "2 2"]


def ids(results):
    """What was found, without scores, whose last bits depend on the batch."""
    return [[output.ids for output in several] for several in results]


@pytest.fixture(scope="module")
def runs(trained_run, tmp_path_factory):
    """`trained_run`; another norm and seed; and one whose pieces are others."""
    recipe, out = str(trained_run.folder / "recipe.yaml"), tmp_path_factory.mktemp("ensemble")
    options = {"two": ["seeds=[2]", "model.norm=rms"], "other": ["task.symbols=7", "train.steps=2"]}
    paths = {name: paddle_tfm.run(recipe, more, out=out / name)[0] for name, more in options.items()}
    return {"one": trained_run, **{name: load_run(path) for name, path in paths.items()}}


def mean_log_probs(several, source, output):
    """log of the mean of the models' probabilities, float64 [1 + T, V]: one pass each with the output fed."""
    probabilities = []
    for run in several:
        encoded = run.codec.encode(Example(source, ""))
        with paddle.no_grad():
            memory = run.model.encode(paddle.to_tensor([encoded.source]), paddle.ones([1, len(encoded.source)], "bool"))
            h, _ = run.model.decode(paddle.to_tensor([[BOS, *output]]), run.model.start(memory))
            probabilities.append(np.exp(run.model.head.log_probs(h, memory).numpy()[0].astype(np.float64)))
    mean = np.mean(probabilities, 0)
    mean[:, [PAD, BOS]] = 0
    with np.errstate(divide="ignore"):
        return np.log(mean)


def test_greedy_takes_the_most_probable_token_of_the_mean(runs):
    several = [runs["one"], runs["two"]]
    outputs = runs["one"].hypotheses(TEXTS, Greedy(max_extra=4), decode=runs["one"].ensemble([runs["two"]]))
    for text, (output,) in zip(TEXTS, outputs):
        expected = mean_log_probs(several, text, output.ids)
        tokens = [*output.ids, EOS]
        assert expected[: len(output.ids)].argmax(-1).tolist() == list(output.ids)
        assert output.score == pytest.approx(expected[range(len(tokens)), tokens].sum(), abs=1e-3)
    alone = [ids(run.hypotheses(TEXTS, Greedy(max_extra=4))) for run in several]
    assert ids(outputs) not in alone


def test_a_beam_keeps_its_rows_together_in_any_batch(runs):
    """The score of each output of a beam is that of the mean, whatever rows moved, and `log_probs` gives the same."""
    first, second = runs["one"], runs["two"]
    decode, search = first.ensemble([second]), Beam(size=4, max_extra=4)
    outputs = first.hypotheses(TEXTS, search, nbest=4, decode=decode)
    assert ids(outputs) == ids(first.hypotheses(TEXTS, search, nbest=4, decode=decode, max_tokens=1))
    for text, several in zip(TEXTS, outputs):
        encoded = first.codec.encode(Example(text, ""))
        examples = [encoded._replace(target=[*output.ids, EOS]) for output in several]
        again = log_probs(first.model, examples, others=[second.model])
        for output, score in zip(several, again):
            expected = mean_log_probs([first, second], text, output.ids)
            tokens = [*output.ids, EOS]
            assert output.score == pytest.approx(expected[range(len(tokens)), tokens].sum(), abs=1e-3)
            assert score == pytest.approx(output.score, abs=1e-3)
    same = first.hypotheses(TEXTS, search, nbest=4, decode=first.ensemble([first]))
    assert ids(same) == ids(first.hypotheses(TEXTS, search, nbest=4))


def test_runs_of_other_pieces_are_refused(runs):
    with pytest.raises(UserError, match=r"other/default/seed-1 differs from .*seed-1 in vocabulary; runs of an "):
        runs["one"].ensemble([runs["two"], runs["other"]])


def test_runs_whose_pieces_came_from_files_of_other_places_are_taken_together(runs):
    one = runs["one"]

    def of(file):
        tokenizer = {"source": {"name": "sentencepiece_file", "file": file}, "target": "char"}
        run = dataclasses.replace(one.plan.run, settings=one.settings.model_copy(update={"tokenizer": tokenizer}))
        return dataclasses.replace(one, plan=dataclasses.replace(one.plan, run=run))

    of("here/a.model").ensemble([of("there/a.model")])
    with pytest.raises(UserError, match="in tokenizer"):
        of("here/a.model").ensemble([one])
