import paddle

from paddle_tfm.options import parameters
from paddle_tfm_plugins.norm.none import NoNorm


def test_identity_without_parameters_or_options():
    x = paddle.randn([2, 3, 4])
    norm = NoNorm()
    assert norm(x) is x
    assert not list(norm.parameters())
    assert parameters(NoNorm) == {}
