"""Heads as wide as the model."""

from paddle_tfm.protocols import Geometry
from paddle_tfm_plugins.attention.full_width_heads import FullWidthHeads


def test_any_number_of_heads_goes_with_any_width():
    shapes = {
        key: tuple(value.shape)
        for key, value in FullWidthHeads(d_model=5, num_heads=3, dropout=0.0, bias=False).state_dict().items()
    }
    assert shapes == {"query.weight": (5, 15), "key.weight": (5, 15), "value.weight": (5, 15), "output.weight": (15, 5)}
    assert FullWidthHeads.geometry(5, 3) == Geometry(3, 3, 5)
