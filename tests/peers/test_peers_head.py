"""Heads with the weights of PyTorch's own: log-probabilities, losses, label smoothing."""

import numpy as np
import paddle
import pytest
from peer_cases import D_MODEL, VALID, copy, linear

from paddle_tfm.layers import Embedding

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")
functional = torch.nn.functional
WORDS, PAD, SMOOTHING = 23, 0, 0.15
GIVEN = {"d_model": D_MODEL, "vocab_size": WORDS, "pad_id": PAD, "unknown_id": 3}


@pytest.fixture
def tokens(rng):
    """h [3, 7, C] and the words to come, padding among them."""
    return rng.normal(size=(*VALID.shape, D_MODEL)), np.where(VALID, rng.integers(1, WORDS, size=VALID.shape), PAD)


def linear_head(build):
    ours, w = build("head", "linear", **GIVEN)
    return ours, linear(w, "output")


def tied_head(build):
    embedding = Embedding(WORDS, D_MODEL, PAD, 3)
    ours, w = build("head", {"name": "tied", "bias": True}, **GIVEN, embedding=embedding)
    return ours, copy(torch.nn.Linear(D_MODEL, WORDS), {"weight": embedding.weight.numpy(), "bias": w["bias"]})


HEADS = pytest.mark.parametrize("make", [linear_head, tied_head])


@HEADS
def test_losses_and_gradients_are_pytorchs(build, precision, agree, tokens, make):
    ours, theirs = make(build)
    h, target = tokens
    mine, other = precision.ours(h), precision.theirs(h).requires_grad_()
    mine.stop_gradient = False
    losses = ours.loss(mine, paddle.to_tensor(target), None)
    expected = functional.cross_entropy(
        theirs(other).transpose(1, 2), torch.from_numpy(target), ignore_index=PAD, reduction="none"
    )
    agree(losses.detach(), expected)
    losses.sum().backward()
    expected.sum().backward()
    agree(mine.grad, other.grad)


@HEADS
def test_label_smoothing_is_pytorchs_over_all_words_but_padding(build, precision, agree, tokens, make):
    """Ours spreads over all but padding. PyTorch's `label_smoothing` spreads over all, so that it is given the others
    alone, and padding has no probability in ours; then the shares of all words, as probabilities, padding's being 0."""
    ours, theirs = make(build)
    h, target = tokens
    words, real = torch.from_numpy(target), torch.from_numpy(VALID)
    logits = theirs(precision.theirs(h))[real]
    shares = torch.full((WORDS,), SMOOTHING / (WORDS - 1))
    shares[PAD] = 0.0
    shares = (1 - SMOOTHING) * functional.one_hot(words[real], WORDS) + shares
    expected = functional.cross_entropy(logits, shares.to(logits.dtype), reduction="none")
    agree(ours.loss(precision.ours(h), paddle.to_tensor(target), None, SMOOTHING).numpy()[VALID], expected)

    bias = ours.bias if hasattr(ours, "bias") else ours.output.bias
    without = bias.numpy()
    without[PAD] = -200.0
    bias.set_value(without)
    expected = functional.cross_entropy(logits[:, 1:], words[real] - 1, label_smoothing=SMOOTHING, reduction="none")
    agree(ours.loss(precision.ours(h), paddle.to_tensor(target), None, SMOOTHING).numpy()[VALID], expected)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize("cutoffs, factor", [([5], 4), ([5, 11], 2), ([4, 9, 16], 2)])
def test_adaptive_is_pytorchs(build, precision, agree, rng, tokens, cutoffs, factor, bias):
    """PyTorch's clusters have no bias: with one only the short list of ours has, for the comparison."""
    ours, w = build("head", {"name": "adaptive", "cutoffs": cutoffs, "factor": factor, "bias": bias}, **GIVEN)
    for name, parameter in ours.named_parameters():
        if name.startswith("rare") and name.endswith("bias"):
            parameter.set_value(paddle.zeros_like(parameter))
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(D_MODEL, WORDS, cutoffs, div_value=factor, head_bias=bias)
    arrays = {"head.weight": w["output.weight"].T} | ({"head.bias": w["output.bias"]} if bias else {})
    for i in range(len(cutoffs)):
        arrays |= {f"tail.{i}.0.weight": w[f"narrow.{i}.weight"].T, f"tail.{i}.1.weight": w[f"rare.{i}.weight"].T}
    copy(theirs, arrays)
    h, target = tokens
    log_probs, expected = ours.log_probs(precision.ours(h), None), theirs.log_prob(precision.theirs(h).flatten(0, 1))
    agree(log_probs.flatten(0, 1), expected)
    losses = ours.loss(precision.ours(h), paddle.to_tensor(target), None).numpy()[VALID]
    expected = theirs(precision.theirs(h[VALID]), torch.from_numpy(target[VALID]))
    agree(losses, -expected.output)
    agree(np.append(losses.mean(), losses), np.append(expected.loss.detach(), -expected.output.detach()))
