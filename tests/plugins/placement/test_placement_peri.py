"""Peri-LN is sandwich with one norm more: on what enters a stack."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Norm, PositionalEncoding, TokenInfo
from paddle_tfm_plugins.placement.peri import Peri
from paddle_tfm_plugins.placement.sandwich import Sandwich


class Add(Norm):
    """x + 1, so that it shows how often a norm stood in the way."""

    def __init__(self, site, width):
        super().__init__()
        self.weight = self.create_parameter([width])
        self.calls = []

    def forward(self, x, valid=None, positions=None):
        self.calls.append((valid, positions))
        return x + 1.0


def make(cls, stack="decoder", layer=0, **options):
    names = ["self", "feed_forward"] if stack == "encoder" else ["self", "cross", "feed_forward"]
    sites = [LayerSite(stack, name, layer, 2, 2) for name in names]
    return cls(sites=sites, norm=Add, d_model=3, dropout=0.0, **options)


def run(placement, sublayer=lambda x: x * 0.0):
    here = TokenInfo(PositionalEncoding(), paddle.arange(2).unsqueeze(0), paddle.ones([1, 2], "bool"))
    return placement(paddle.full([1, 2, 3], 5.0), [sublayer] * len(placement.drops), here), here


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_only_the_first_layer_of_a_stack_normalizes_what_enters_it(stack):
    for layer in range(2):
        peri, sandwich = make(Peri, stack, layer), make(Sandwich, stack, layer)
        more = set(peri.state_dict()) - set(sandwich.state_dict())
        assert more == ({"embedding_norm.weight"} if layer == 0 else set())
        entered = 1.0 if layer == 0 else 0.0  # what the residual stream has gained before the first sublayer
        np.testing.assert_allclose((run(peri)[0] - run(sandwich)[0]).numpy(), entered)


def test_what_enters_is_normalized_once_and_on_the_residual_stream():
    placement, seen = make(Peri), []
    out, here = run(placement, lambda x: seen.append(float(x.max())) or x * 0.0)
    assert seen == [7.0, 8.0, 9.0]  # 5 + n0 + n1, and n2's 1 more for each branch before
    assert (out == 9.0).all()
    ((valid, positions),) = placement.embedding_norm.calls
    assert valid is here.valid and positions is here.positions


def test_the_size_of_the_embeddings_does_not_matter_to_peri_and_does_to_sandwich(make_model, make_batch):
    """2502.02732: what enters the residual stream is normalized, so that it is on the scale of what branches add."""
    batch = make_batch()
    for name, matters in (("peri", False), ("sandwich", True)):
        model = make_model(f"model.placement={name}", "model.position=rotary")
        before, _ = model(batch)
        for embedding in (model.source_embedding, model.target_embedding):
            embedding.weight.set_value(embedding.weight * 30.0)
        after, _ = model(batch)
        assert (float((after - before).abs().max()) > 1e-2) is matters, name
