"""Scores compare with the corpus' own text, not with what a tokenizer makes of it; texts fall into buckets by
length."""

import pytest
import sacrebleu

from paddle_tfm.predictions import read_predictions, write_predictions
from paddle_tfm.protocols import Example, Likelihood, Metric, Prediction
from paddle_tfm.search.decoding import decode_all
from paddle_tfm.train.evaluate import predict, score, signatures, text_metrics
from paddle_tfm.train.fit import remarks
from paddle_tfm_plugins.metric.bleu import Bleu
from paddle_tfm_plugins.metric.chrf import Chrf
from paddle_tfm_plugins.metric.exact_match import ExactMatch
from paddle_tfm_plugins.metric.perplexity import Perplexity
from paddle_tfm_plugins.metric.token_error_rate import TokenErrorRate


def test_the_reference_is_the_corpus_own_text(make_run, tmp_path):
    run = make_run("tokenizer={name: word, lowercase: true}")
    target = " Zwei\u00a0 ▁Männer\t2 "
    examples = run.codec.encode_all([Example("1  2", target)])
    (output,) = predict(run.model, run.codec, examples, run.search())
    assert output.source == "1  2"
    assert output.reference == "Zwei ▁Männer 2"  # the tokenizer would write: zwei _männer 2
    assert output.reference_pieces == tuple(run.codec.target.tokenize(target))
    assert run.codec.text(output.reference_pieces) == "zwei _männer 2"


def test_a_tokenizer_that_cannot_write_the_reference_is_never_right(make_run, tmp_path):
    run = make_run("tokenizer={name: word, lowercase: true}")
    written = predict(run.model, run.codec, run.codec.encode_all([Example("1 2", "x")]), run.search())[0].hypothesis
    for target, right in ((f"  {written} ", 1.0), (f"{written} A", 0.0)):
        output = predict(run.model, run.codec, run.codec.encode_all([Example("1 2", target)]), run.search())
        assert ExactMatch().compute(output, Likelihood(0.0, 0, 0)) == right
    capital = [Prediction("", "Zwei Hunde", "zwei hunde", ("▁zwei", "▁hunde"), ("▁zwei", "▁hunde"))]
    assert ExactMatch().compute(capital, Likelihood(0.0, 0, 0)) == 0
    assert TokenErrorRate().compute(capital, Likelihood(0.0, 0, 0)) == 0  # pieces are the tokenizer's form


def test_the_hypothesis_is_kept_as_it_is_scored(make_run, tmp_path):
    run = make_run("tokenizer=char")
    examples = run.encoded["test"]
    output = predict(run.model, run.codec, examples, run.search())
    raw = [run.codec.text(run.codec.pieces(each[0].ids)) for each in decode_all(run.model, examples, run.search())]
    assert [each.hypothesis for each in output] == [" ".join(text.split()) for text in raw]
    write_predictions(tmp_path / "p.tsv", output)
    rows = [line.split("\t") for line in (tmp_path / "p.tsv").read_text("utf-8").splitlines()[1:]]
    assert [row[3] for row in rows] == [each.hypothesis for each in output]
    assert [row[0] == "yes" for row in rows] == [each.hypothesis == each.reference for each in output]


def test_several_references_and_pairs_that_are_left_out(make_trainer, tmp_path):
    pairs = [(f"{i} {j}", f"{j} {i}") for i in range(9) for j in range(9)]
    texts = "".join(f"{source}\t{target}\t{source} {source}\n" for source, target in pairs)
    (tmp_path / "t.tsv").write_text(f"{texts}a\t\t\n", "utf-8")
    task = f"name: parallel, train: {tmp_path}/t.tsv, valid: 10, drop_empty: true"
    trainer = make_trainer(
        f"task={{{task}, test: {{files: {tmp_path}/t.tsv, columns: [0, 1, 2]}}}}",
        f"evaluate={{tests: {{one: {{task: {{test: {tmp_path}/t.tsv}}}}}}, metrics: [chrf, exact_match, perplexity], best: chrf}}",
    )  # fmt: skip
    results = trainer.train()
    rows = read_predictions(trainer.run.folder / "predictions.tsv")
    assert [(row.source, *row.references) for row in rows] == [(a, b, f"{a} {a}") for a, b in pairs]
    outputs, references = [row.hypothesis for row in rows], [*zip(*(row.references for row in rows))]
    assert results["test"]["chrf"] == sacrebleu.corpus_chrf(outputs, references).score > 0
    assert results["tests"]["one"]["scores"]["chrf"] == sacrebleu.corpus_chrf(outputs, references[:1]).score
    assert results["test"]["perplexity"] == results["tests"]["one"]["scores"]["perplexity"]
    others = {
        "exact_match": "nrefs:2",
        "perplexity": "nrefs:1-of-2",
        "exact_match@one": "nrefs:1",
        "perplexity@one": "nrefs:1",
    }
    chrf = {"chrf": Chrf().signature(2), "chrf@one": Chrf().signature(1)}
    assert results["signatures"] == {**others, **chrf}
    assert results["dropped"] == {"task.drop_empty=true": 1, "evaluate.tests.one.task.drop_empty=true": 1}
    assert [each for each in remarks(trainer.run.plan, trainer.run.encoded) if "references" in each][:1] == [
        "test has 2 references for each source; loss and perplexity take the first alone"
    ]


def test_texts_alone_have_no_loss():
    metrics = {"bleu": Bleu(), "perplexity": Perplexity(), "token_error_rate": TokenErrorRate()}
    assert list(text_metrics(metrics)) == ["bleu"]
    pairs = [Prediction("", "a b c d", "a b c d")]
    assert score(text_metrics(metrics), pairs, None) == {"bleu": pytest.approx(100)}
    assert list(score(metrics, [pairs[0]._replace(reference_pieces=("a",))], Likelihood(1.0, 1, 2))) == [
        "loss",
        *metrics,
    ]
    assert signatures(metrics, 1) == {"bleu": Bleu().signature()}


def test_a_metric_may_write_compute_alone():
    class Longest(Metric):
        """Longest output."""

        def compute(self, predictions, likelihood):
            return max(len(each.hypothesis) for each in predictions)

    metrics = {"longest": Longest()}
    assert score(text_metrics(metrics), [Prediction("", "", "abc"), Prediction("", "", "a")], None) == {"longest": 3.0}
    assert signatures(metrics, 1) == {} and signatures(metrics, 2) == {"longest": "nrefs:1-of-2"}
