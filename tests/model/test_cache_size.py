"""Bytes of the key/value cache for each token of output, beside formulas, and beside the caches of a real search."""

import numpy as np
import paddle
import pytest

from paddle_tfm import build_model
from paddle_tfm.model.cache_size import cache_bytes

D_MODEL, HEADS, LAYERS = 16, 4, 3
DIMENSIONS = [
    *(f"model.d_model={D_MODEL}", f"model.num_heads={HEADS}", "model.d_ff=24", "model.dropout=0.1"),
    *("model.encoder_layers=1", f"model.decoder_layers={LAYERS}"),
]
FLOAT = 4


def model_of(*overrides):
    return build_model("base", [*DIMENSIONS, *overrides], source_vocabulary=11, target_vocabulary=11, seed=1)


@pytest.mark.parametrize("position", ["sinusoidal", "rotary", "shaw"])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_groups_of_queries_hold_their_share_exactly(kv_heads, position):
    all_heads = cache_bytes(model_of("model.attention=multihead", f"model.position={position}"))
    assert all_heads == 2 * LAYERS * D_MODEL * FLOAT
    grouped = f"model.attention={{name: grouped_query, kv_heads: {kv_heads}}}"
    assert cache_bytes(model_of(grouped, f"model.position={position}")) * HEADS == all_heads * kv_heads


@pytest.mark.parametrize("attention", ["multihead", "{name: grouped_query, kv_heads: 2}", "qk_norm"])
def test_it_is_by_how_much_a_search_grows(attention):
    model = model_of(f"model.attention={attention}")
    model.eval()
    sizes = []
    with paddle.no_grad():
        source = paddle.full([1, 3], 5, "int64")
        state = model.start(model.encode(source, paddle.ones([1, 3], "bool")))
        for _ in range(3):
            _, state = model.decode(paddle.full([1, 1], 5, "int64"), state)
            caches = [layer.self_kv for layer in state.layers]
            sizes.append(sum(part.numpy().nbytes for kv in caches for part in (kv.key, kv.value)))
    assert np.diff(sizes).tolist() == [cache_bytes(model)] * 2


@pytest.mark.parametrize("name", ["linear", "recurrent", "gated_deltanet", "kimi_delta"])
def test_a_state_of_one_size_takes_all_tokens(name):
    assert cache_bytes(model_of(f"model.attention={{decoder: {{self: {name}, cross: multihead}}}}")) == 0


def test_only_a_decoder_has_one_and_asking_changes_nothing():
    shape = ["model.encoder_layers=0", "evaluate.metrics=[perplexity]", "evaluate.best=perplexity"]
    assert cache_bytes(model_of(*shape)) == 2 * LAYERS * D_MODEL * FLOAT
    assert cache_bytes(model_of("model.decoder_layers=0")) is None
    model = model_of("model.norm=clinic_batch_statistics")
    before = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    model.train()
    cache_bytes(model)
    assert model.training
    assert all(np.array_equal(before[name], tensor.numpy()) for name, tensor in model.state_dict().items())
