"""Value residuals inside a model: what the layers of a pass share."""

import numpy as np
import paper_equations as paper
import pytest

HEADS = 2
DEEP = ["model.encoder_layers=3", "model.decoder_layers=3"]
SHIFTED = "{self: {name: value_residual, first: 2.0, own: 0.7}, cross: multihead}"
LEARNED = "{self: {name: value_residual, learned: true}, cross: multihead}"


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
    model, batch = drawn(make_model(*DEEP, f"model.attention={attention}")), make_batch()
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
