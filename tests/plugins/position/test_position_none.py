import paddle

from paddle_tfm.options import parameters
from paddle_tfm_plugins.position.none import NoPosition


def test_does_nothing_in_any_way():
    encoding, x, positions = NoPosition(), paddle.randn([2, 3, 4]), paddle.arange(3).unsqueeze(0)
    heads = x.unsqueeze(1)
    assert encoding.uses() == frozenset()
    assert encoding.embed(x, positions) is x
    assert encoding.query(heads, positions) is heads and encoding.key(heads, positions) is heads
    assert encoding.bias(positions, positions) is None
    assert encoding.scores(heads, heads, positions, positions) is None
    assert encoding.values(heads, positions, positions) is None
    assert encoding.remap(positions, lambda: None) is positions
    assert parameters(NoPosition) == {} and not list(encoding.parameters())
