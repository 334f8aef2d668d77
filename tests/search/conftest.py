"""Tiny real models whose every output can be written down, and a run that was trained for a moment."""

from __future__ import annotations

import itertools

import numpy as np
import paddle
import pytest
from search_tiny import LONGEST, SOURCES, WORDS, encoded

import paddle_tfm
from paddle_tfm.data.batches import collate
from paddle_tfm.data.vocabulary import BOS, EOS

TINY = [
    "model.d_model=8", "model.num_heads=2", "model.d_ff=8", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.dropout=0.0", "model.max_length=16",
]  # fmt: skip


@pytest.fixture
def tiny_model():
    """A model over 6 target tokens whose distributions are far from even."""

    def make(*overrides, seed=1):
        model = paddle_tfm.build_model("base", [*TINY, *overrides], source_vocabulary=6, target_vocabulary=6, seed=seed)
        for parameter in model.head.parameters():
            parameter.set_value(8.0 * parameter)
        model.eval()
        return model

    return make


@pytest.fixture
def examples():
    """Three sources of different lengths: batched, the shorter ones are padded."""
    return [encoded(source) for source in SOURCES]


@pytest.fixture
def every_output():
    """every_output(model, source): all outputs of at most LONGEST tokens → their log-probability, the end counted. One
    pass with the outputs fed, none of the searches' code."""

    def find(model, example):
        outputs = [ids for length in range(LONGEST + 1) for ids in itertools.product(WORDS, repeat=length)]
        scores = {}
        for length, several in itertools.groupby(outputs, key=len):
            rows = list(several)
            batch = collate([example] * len(rows)).tensors()
            inputs = paddle.to_tensor([[BOS, *ids] for ids in rows], dtype="int64").reshape([len(rows), length + 1])
            with paddle.no_grad():
                memory = model.encode(batch.source, batch.source_valid, batch.copy_ids)
                h, _ = model.decode(inputs, model.start(memory))
                log_probs = model.head.log_probs(h, memory).numpy().astype(np.float64)
            for row, ids in zip(log_probs, rows):
                scores[ids] = sum(row[t, token] for t, token in enumerate((*ids, EOS)))
        return scores

    return find
