"""Texts that are continued through an export are those that our own search writes, within the window and beyond it."""

from __future__ import annotations

from functools import partial

import numpy as np
import paddle
import pytest

from paddle_tfm.data.vocabulary import BOS, EOS, UNKNOWN
from paddle_tfm.export.ctranslate2.generator import ExportedGenerator
from paddle_tfm.inference.generate import continue_ids

pytestmark = pytest.mark.reliability

WINDOW = 64  # model.max_length of these models
PROMPTS = [[], [9, 8, 7, 6, 5] * 4, [5, 6] * 31, [5, 6] * 31 + [7], [4, 9, 30] * 40]


@pytest.fixture(params=["sinusoidal", "rotary", "t5"])
def both(request, make_random, write, codec, rules):
    """A model, and its export as a generator; with T5's bias a prompt must be fed token by token. The end and unknown,
    which is impossible, are among the most probable tokens."""
    text = ("evaluate.metrics=[perplexity]", "evaluate.best=perplexity")
    model = make_random("model.encoder_layers=0", f"model.position={request.param}", "model.head=linear", *text)
    np.from_dlpack(model.head.output.bias.detach())[[EOS, UNKNOWN]] += 4.0
    held, folder = write(model)
    assert held.prompt_at_once == (request.param != "t5") and model.max_length == WINDOW
    return model, ExportedGenerator(model, folder, rules.held, codec.target_vocabulary, held.prompt_at_once)


@pytest.fixture
def only_theirs(monkeypatch):
    """Where our own search is called, the test fails."""

    def refuse(*arguments):
        pytest.fail("our own search was asked")

    monkeypatch.setattr("paddle_tfm.export.ctranslate2.generator.continue_ids", refuse)


@pytest.mark.parametrize(("length", "least"), [(5, 0), (110, 0), (110, 80)])
def test_greedy_continues_the_same_within_the_window_and_beyond(both, components, only_theirs, length, least):
    model, theirs = both
    search = components.build("search", {"name": "greedy", "min_length": least}, "")
    lengths = []
    for prompt in PROMPTS:
        reported, expected = [], []
        output = theirs(prompt, length, search, 0, reported.append)
        ours = continue_ids(model, prompt, length, search, 0, expected.append)
        assert output.ids == ours.ids == reported == expected and UNKNOWN not in output.ids
        lengths.append(len(ours.ids))
    assert least <= min(lengths) and (length < 110 or max(lengths) < length or least == length)


@pytest.mark.parametrize("options", [{"name": "greedy", "no_repeat_ngram": 2}, {"name": "beam", "size": 3}])
def test_what_it_cannot_remember_is_left_to_our_search(both, components, options):
    model, theirs = both
    search = components.build("search", {**options, "min_length": 30}, "")
    for prompt, length in (([5, 6, 7], 30), ([5, 6] * 25, 30)):
        output, ours = theirs(prompt, length, search).ids, continue_ids(model, prompt, length, search).ids
        assert output == ours or (options["name"] == "beam" and len(prompt) == 3 and theirs.prompt_at_once)
        assert len(output) == 30


def log_prob(model, prompt, ids):
    """Of these tokens and the end after the prompt, in one pass."""
    text = [BOS, *prompt, *ids]
    with paddle.no_grad():
        h, _ = model.decode(paddle.to_tensor([text]), model.start(None))
        rows = model.head.log_probs(h, None)[0].numpy()
    return sum(float(rows[len(prompt) + i, token]) for i, token in enumerate([*ids, EOS]))


def test_a_beam_writes_what_is_more_probable_than_greedy_does(both, components):
    """It ends by rules of its own, so that its outputs need not be those of our beam."""
    model, theirs = both
    greedy, beam = (
        components.build("search", {**spec, "min_length": 6}, "")
        for spec in ({"name": "greedy"}, {"name": "beam", "size": 4, "alpha": 0.0})
    )
    scores = [
        [log_prob(model, prompt, search(prompt, 8, how).ids) for prompt in ([], [5], [8, 9], [30, 31, 32])]
        for search, how in (
            (partial(continue_ids, model), greedy),
            (theirs, beam),
            (partial(continue_ids, model), beam),
        )
    ]
    means = np.mean(scores, 1)
    assert means[0] < means[1] and abs(means[1] - means[2]) < 0.5
