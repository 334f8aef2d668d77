"""Likelihood and prediction do not depend on how examples are batched."""

import numpy as np
import pytest

from paddle_tfm.train.evaluate import likelihood, predict


def test_likelihood_does_not_depend_on_batches(make_run):
    run = make_run()
    run.model.eval()
    examples = run.encoded["valid"]
    small, large = likelihood(run.model, examples, max_tokens=8), likelihood(run.model, examples, max_tokens=4096)
    assert small.negative_log == pytest.approx(large.negative_log, rel=1e-5)
    assert small[1:] == large[1:]
    assert large.tokens == sum(len(example.target) for example in examples)


@pytest.mark.parametrize("search", ["greedy", {"name": "beam", "size": 3}])
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_predictions_do_not_depend_on_neighbours_or_order(make_run, search, norm):
    run = make_run(f"model.norm={norm}")
    run.model.eval()
    search = run.registry.build("search", search)
    examples = run.encoded["test"]
    together = predict(run.model, run.codec, examples, search)
    alone = [predict(run.model, run.codec, [example], search)[0] for example in examples]
    assert [p.hypothesis for p in together] == [p.hypothesis for p in alone]
    np.testing.assert_allclose([p.score for p in together], [p.score for p in alone], rtol=1e-4, atol=1e-4)
    assert [p.source for p in together] == [example.example.source for example in examples]
