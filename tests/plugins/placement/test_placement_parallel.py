"""Parallel sublayers share one norm and one input."""

import numpy as np
import paddle

from paddle_tfm.protocols import LayerSite, Norm, PositionalEncoding, TokenInfo
from paddle_tfm_plugins.placement.parallel import Parallel

SITES = [LayerSite("encoder", name, 0, 1, 1) for name in ("self", "feed_forward")]


class Double(Norm):
    def __init__(self, site, width):
        super().__init__()
        self.weight = self.create_parameter([width])

    def forward(self, x, valid=None, positions=None):
        return x * 2.0


def test_all_sublayers_get_the_same_normed_input():
    placement, seen = Parallel(sites=SITES, norm=Double, d_model=3, dropout=0.0), []
    x = paddle.randn([1, 2, 3])
    here = TokenInfo(PositionalEncoding(), paddle.arange(2).unsqueeze(0), paddle.ones([1, 2], "bool"))

    def sublayer(y):
        seen.append(y)
        return y * len(seen)

    out = placement(x, [sublayer, sublayer], here)
    np.testing.assert_array_equal(seen[0].numpy(), seen[1].numpy())
    np.testing.assert_allclose(out.numpy(), x.numpy() * (1 + 2 + 4), rtol=1e-5)


def test_it_holds_one_norm_only():
    assert list(Parallel(sites=SITES, norm=Double, d_model=3, dropout=0.0).state_dict()) == ["norms.0.weight"]
