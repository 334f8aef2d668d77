"""Value residuals inside a model: what the layers of a pass share, at once and step by step, and where it ends."""

import numpy as np
import paddle
import paper_equations as paper
import pytest

from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, TokenInfo

HEADS = 2
DEEP = ["model.encoder_layers=3", "model.decoder_layers=3"]
SHIFTED = "{self: {name: value_residual, first: 2.0, own: 0.7}, cross: multihead}"
LEARNED = "{self: {name: value_residual, learned: true}, cross: multihead}"
POSITIONS = ["model.position=sinusoidal", "model.position=rotary", "model.position=shaw"]  # shaw: one for each layer


def drawn(model):
    """With random numbers, also for λ."""
    rng = np.random.default_rng(3)
    for parameter in model.parameters():
        parameter.set_value(rng.normal(0, 0.4, parameter.shape).astype("float32"))
    return model


def watched(stack):
    """Layer → part → what it gives in each call: queries, keys and values of the self-attentions, and their heads."""
    seen = [{"query": [], "key": [], "value": [], "heads": []} for _ in stack.layers]
    for layer, parts in zip(stack.layers, seen):
        for name in ("query", "key", "value"):
            part = getattr(layer.self_attention, name)
            part.register_forward_post_hook(lambda _, __, y, to=parts[name]: to.append(y.numpy()))
        layer.self_attention.output.register_forward_pre_hook(lambda _, x, to=parts["heads"]: to.append(x[0].numpy()))
    return seen


def lambdas(layer):
    weights = layer.self_attention.weights
    return layer.self_attention.mix if weights is None else weights.numpy()


def heads_of(q, k, v, allowed):
    """softmax(Q Kᵀ / √D) V of each head, side by side [B, T, H · D]."""
    out = [
        [paper.scaled_dot_product_attention(*parts, allowed[b]) for parts in zip(*(np.split(t[b], HEADS, -1) for t in (q, k, v)))]
        for b in range(len(q))
    ]  # fmt: skip
    return np.stack([np.concatenate(heads, -1) for heads in out])


@pytest.mark.parametrize("attention", [SHIFTED, LEARNED], ids=["fixed", "learned"])
def test_values_are_mixed_with_the_first_layers(make_model, make_batch, attention):
    """2410.17897: V'_n = λ_1 V_1 + λ_2 V_n, with V_1 those of the same stack, in one pass of training."""
    model, batch = drawn(make_model(*DEEP, f"model.attention={attention}", POSITIONS[0])), make_batch()
    of_encoder, of_decoder = watched(model.encoder), watched(model.decoder)
    model(batch)
    for stack, seen, valid, causal in (
        (model.encoder, of_encoder, batch.source_valid.numpy(), False),
        (model.decoder, of_decoder, batch.target_valid.numpy(), True),
    ):
        allowed = paper.visible(valid, valid.shape[1], causal)
        for number, (layer, parts) in enumerate(zip(stack.layers, seen)):
            q, k, v, heads = (np.concatenate(parts[name], 1) for name in ("query", "key", "value", "heads"))
            if number:
                first, own = lambdas(layer)
                v = first * seen[0]["value"][0] + own * v
            np.testing.assert_allclose(heads[valid], heads_of(q, k, v, allowed)[valid], rtol=1e-4, atol=1e-4)
        assert stack.layers[0].self_attention.weights is None


@pytest.mark.parametrize("chunk", [1, 4, 6])
@pytest.mark.parametrize("position", POSITIONS)
def test_caches_hold_mixed_values(make_model, make_batch, position, chunk):
    """Of a text in parts, each a pass, as beams go on with it: every layer's cache has what one pass over all has."""
    model, batch = (
        drawn(make_model(*DEEP, f"model.attention={SHIFTED}", position)),
        make_batch(target_lengths=(6, 6, 6)),
    )
    seen, target = watched(model.decoder), batch.target_in
    rows = paddle.to_tensor([2, 0, 1])
    state = model.start(model.encode(batch.source, batch.source_valid))
    for begin in range(0, 6, chunk):
        _, state = model.decode(target[:, begin : begin + chunk], state)
    own = [np.concatenate(parts["value"], 1) for parts in seen]
    for number, kv in enumerate(layer.self_kv for layer in state.select(rows).layers):
        expected = own[0] if number == 0 else 2.0 * own[0] + 0.7 * own[number]
        value = kv.value.transpose([0, 2, 1, 3]).flatten(2).numpy()  # [B, H, T, D] -> [B, T, H · D]
        np.testing.assert_allclose(value, expected[rows.numpy()], rtol=1e-5, atol=1e-5)


def test_a_pass_of_a_stack_has_a_mapping_of_its_own(make_model):
    """Its layers share it, also where each has an encoding of its own; two passes, and two calls by hand, share none."""
    model = make_model(*DEEP, POSITIONS[2])
    positions = paddle.arange(4).unsqueeze(0)
    valid, encodings = paddle.ones([1, 4], "bool"), model.decoder.encodings
    mask = Mask(positions, positions, valid, True, encodings[0])
    one, other = (model.decoder.contexts(encodings, positions, valid, mask) for _ in range(2))
    assert len({id(context.info.encoding) for context in one}) == 3
    assert len({id(context.info.shared) for context in one}) == 1 and one[0].info.shared == {}
    by_hand = [TokenInfo(PositionalEncoding(), positions, valid) for _ in range(2)]
    apart = [one[0].info, other[0].info, *by_hand]
    assert len({id(info.shared) for info in apart}) == len(apart)


def test_a_layer_by_itself_mixes_its_own_values(registry, rng):
    """As the checks of a component call it, without the layers below."""
    attention = registry.build(
        "attention", {"name": "value_residual", "first": 2.0, "own": 0.7}, "attention",
        d_model=8, num_heads=HEADS, dropout=0.0, site=LayerSite("encoder", "self", 1, 2, 2),
    )  # fmt: skip
    x = paddle.to_tensor(rng.normal(size=(1, 3, 8)).astype("float32"))
    info = TokenInfo(PositionalEncoding(), paddle.arange(3).unsqueeze(0), paddle.ones([1, 3], "bool"))
    value = attention.project(x, info).value.transpose([0, 2, 1, 3]).flatten(2)
    np.testing.assert_allclose(value.numpy(), 2.7 * attention.value(x).numpy(), rtol=1e-5)
