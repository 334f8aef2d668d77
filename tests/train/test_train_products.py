"""Training with oneDNN's products: the same run as with Paddle's, divided among processes or not."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from paddle_tfm.kernels.cpu import library, products
from paddle_tfm.runs.changes import changes, rounding
from paddle_tfm.runs.identity import identity

needs_float32 = pytest.mark.skipif(bool(products.why_not("float32")), reason=str(products.why_not("float32")))
needs_bfloat16 = pytest.mark.skipif(bool(library.why_not("bfloat16")), reason=str(library.why_not("bfloat16")))
BFLOAT16 = "train.products=bfloat16"


@needs_bfloat16
def test_in_bfloat16_a_run_learns_as_one_in_float32(make_trainer):
    """Losses of every step, and what the parameters are at the end."""
    runs = {}
    for overrides in ([], [BFLOAT16]):
        trainer = make_trainer("train.steps=40", "evaluate.every=40", *overrides, folder=str(len(overrides)))
        trainer.run.model.train()
        losses = [trainer.step(number, trainer.next_batches()).loss for number in range(1, 41)]
        runs[len(overrides)] = np.array(losses)
        assert all(parameter.dtype == paddle.float32 for parameter in trainer.run.model.parameters())
    assert runs[0][-10:].mean() < 0.8 * runs[0][0], "nothing was learned, so that nothing is compared"
    np.testing.assert_allclose(runs[1], runs[0], rtol=2e-2)
    assert not np.array_equal(runs[1], runs[0])


def test_where_bfloat16_is_not_to_be_had_one_sentence_says_so(make_trainer, monkeypatch):
    reasons = {"bfloat16": "no instructions"}
    monkeypatch.setattr(products, "why_not", reasons.get)
    sentences: list[str] = []
    trainer = make_trainer(BFLOAT16, "train.steps=1", "evaluate.every=1", report=sentences.append)
    assert trainer.step.products == "float32"
    trainer.train()
    assert sum("train.products=bfloat16" in sentence and "no instructions" in sentence for sentence in sentences) == 1


@needs_float32
def test_the_identity_names_who_multiplies(make_run, monkeypatch):
    plan = make_run().plan
    version = ".".join(map(str, library.library().version))
    now = identity(plan, {})
    assert now["products"] == "float32 by MKL"
    plain = {**now, "products": "float32 by Paddle"}
    assert rounding(now, now) == changes(now, now) == changes(plain, now) == []
    assert rounding(plain, now) == [
        "the matrix products of its training steps were in float32 by Paddle and now are in float32 by MKL"
    ]
    elsewhere = {**now, "products": f"bfloat16 by oneDNN {version}"}
    (sentence,) = changes(elsewhere, now)
    assert "were in bfloat16" in sentence
