"""Encodings where no formula's test comes: numbers of papers and configurations, tables that grow, half precision."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite
from paddle_tfm_plugins.position.cope import CoPE
from paddle_tfm_plugins.position.nope_hybrid import NoPEHybrid
from paddle_tfm_plugins.position.sinusoidal import Sinusoidal
from paddle_tfm_plugins.position.xpos import XPos

DECODER = LayerSite("decoder", "self", 0, 2, 2)


def row(*positions):
    return paddle.to_tensor([positions])


def test_cope_in_half_precision_counts_in_single():
    encoding = CoPE(4, 600, DECODER)
    q = k = paddle.full([1, 1, 600, 4], 3.0, "bfloat16")
    encoding.table.set_value(np.arange(601, dtype="float32")[:, None] * np.ones((1, 4), "float32"))
    scores = encoding.scores(q, k, row(599), row(*range(600))).numpy()[0, 0, -1]
    assert scores[0] == pytest.approx(12 * 600, rel=1e-3)  # bfloat16 would stop counting at 256


def test_llama_4s_layers():
    """`no_rope_layers` of its configuration, interval 4: 1, 1, 1, 0, 1, 1, 1, 0."""
    sites = [LayerSite("decoder", "self", layer, 8, 8) for layer in range(8)]
    assert [int(bool(NoPEHybrid(4, site).uses())) for site in sites] == [1, 1, 1, 0, 1, 1, 1, 0]


def test_the_reach_of_xpos_is_the_documented_one():
    assert XPos(8, DECODER).reach == 15_056
    assert XPos(8, DECODER, scale_base=256.0).reach == 7528
    key = XPos(8, DECODER).key(paddle.to_tensor(np.ones([1, 1, 3, 8])), row(15_056, 15_057, 90_000)).numpy()
    lengths = np.linalg.norm(key.reshape(3, 4, 2), axis=-1)[:, 0] / np.sqrt(2)
    assert 0.99e16 < lengths[0] <= 1e16
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-12)  # turned on, but no longer


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sinusoids_that_are_looked_up_are_those_of_the_formula(dtype):
    """Single positions and several, rising past the table and back, negative ones and such beyond any table."""
    encoding = Sinusoidal(6)
    for positions in (
        [[3]],
        [[0, 1, 2]],
        [[70]],
        [[2], [5]],
        [[200]],
        [[-1]],
        [[0]],
        [[4_095]],
        [[4_096]],
        [[100_003, 1]],
    ):
        angle = np.array(positions)[..., None] / 10000.0 ** (np.array([0, 0, 2, 2, 4, 4]) / 6)
        expected = np.where(np.arange(6) % 2, np.cos(angle), np.sin(angle))
        x = paddle.ones([2, len(positions[0]), 6], dtype)
        y = encoding.embed(x, paddle.to_tensor(positions))
        assert y.dtype == x.dtype
        np.testing.assert_allclose(y.numpy(), 1.0 + np.broadcast_to(expected, y.shape), atol=1e-6)


def test_a_layer_has_numbers_of_its_own_where_the_papers_have_them(registry):
    """T5, KERPLE and FIRE share theirs."""
    ours = [entry for entry in registry if entry.kind == "position" and entry.provider.source == "paddle-tfm"]
    plain = [entry for entry in ours if entry.name not in ("chain", "randomized")]  # which are as what they hold
    in_each_layer = {"cope", "grape_a", "nope_hybrid", "pope", "shaw", "transformer_xl"}
    assert {entry.name for entry in plain if entry.load().per_layer} == in_each_layer
