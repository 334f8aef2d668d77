"""Shared heads of keys and values: a small cache, and what encodings are shown."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import KeyValue, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.grouped_query import GroupedQuery

B, T, S, C, H = 2, 3, 5, 8, 4
D = C // H


class EveryWay(PositionalEncoding):
    """Acts in all ways; its term on the scores differs by head, and looks at keys and queries. Remembers how many heads
    it was shown."""

    def __init__(self):
        super().__init__()
        self.shown = {}

    def query(self, q, positions):
        self.shown["query"] = q.shape[1]
        return q * (1.0 + 0.1 * positions.astype(q.dtype)).unsqueeze([1, 3])

    def key(self, k, positions):
        self.shown["key"] = k.shape[1]
        return k * (1.0 - 0.05 * positions.astype(k.dtype)).unsqueeze([1, 3])

    def bias(self, q_positions, k_positions):
        apart = (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).unsqueeze(1)  # [1, 1, Tq, Tk]
        slopes = 0.1 * paddle.arange(1, H + 1).astype("float64").reshape([1, H, 1, 1])
        return apart.astype("float64") * slopes

    def scores(self, q, k, q_positions, k_positions):
        self.shown["scores"] = q.shape[1], k.shape[1]
        each = paddle.arange(1, H + 1).astype(q.dtype).reshape([1, H, 1, 1])
        return paddle.matmul(q.flip([3]), k * each, transpose_y=True)

    def values(self, weights, q_positions, k_positions):
        self.shown["values"] = weights.shape[1]
        gathered = (weights * k_positions.astype(weights.dtype).unsqueeze([1, 2])).sum(-1, keepdim=True)
        return gathered.expand([*weights.shape[:3], D])


def made(kv_heads, seed=0):
    attention, rng = GroupedQuery(C, H, 0.0, kv_heads=kv_heads), np.random.default_rng(seed)
    for parameter in attention.parameters():
        parameter.set_value(paddle.to_tensor(rng.normal(0, 0.7, parameter.shape)).astype(parameter.dtype))
    return attention


def scene(encoding, dtype="float32"):
    rng = np.random.default_rng(1)
    x, source = (paddle.to_tensor(rng.normal(size=(B, n, C))).astype(dtype) for n in (T, S))
    here = TokenInfo(encoding, paddle.arange(2, 2 + T).unsqueeze(0), paddle.ones([B, T], "bool"))
    there = TokenInfo(encoding, paddle.arange(S).unsqueeze(0), paddle.to_tensor([[1] * S, [1, 1, 0, 1, 0]], "bool"))
    return x, source, here, there, Mask(here.positions, there.positions, there.valid, False, encoding)


def run(attention, x, source, here, there, mask, tap):
    return attention(x, attention.project(source, there), here, mask, tap)


def test_what_each_way_of_an_encoding_is_shown():
    encoding = EveryWay()
    run(made(2), *scene(encoding), Tap())
    assert encoding.shown == {"query": H, "key": 2, "scores": (H, H), "values": H}
    assert EveryWay().uses() | {"embed"} == GroupedQuery.supports


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_the_cache_holds_kv_heads_and_no_more(kv_heads):
    attention, here = (
        made(kv_heads),
        TokenInfo(PositionalEncoding(), paddle.arange(5).unsqueeze(0), paddle.ones([B, 5], "bool")),
    )
    kv = attention.project(paddle.randn([B, 5, C]), here)
    kv = kv.extend(attention.project(paddle.randn([B, 5, C]), here)).select(paddle.to_tensor([1, 0, 1]))
    assert type(kv) is KeyValue
    assert tuple(kv.key.shape) == tuple(kv.value.shape) == (3, kv_heads, 10, D)


def test_one_group_is_asked_for_by_default():
    shapes = {name: tuple(value.shape) for name, value in GroupedQuery(C, H, 0.0, bias=False).state_dict().items()}
    assert shapes == {"query.weight": (C, C), "key.weight": (C, D), "value.weight": (C, D), "output.weight": (C, C)}
