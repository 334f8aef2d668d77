"""Multi-head attention of the newest token of one sentence, a step of a search, over arrays."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from paddle import Tensor

from paddle_tfm.protocols import KeyValue, Mask, PositionalEncoding, TokenInfo
from paddle_tfm.single_row import affine, tensor

if TYPE_CHECKING:
    from paddle_tfm_plugins.attention.multihead import MultiHead


class Arrays(KeyValue):
    """Keys and values [B, H, S, D] as arrays, which are tensors for those who ask."""

    def __init__(self, *arrays: np.ndarray):
        self.__dict__["arrays"] = arrays

    @cached_property
    def _tensors(self) -> list[Tensor]:
        return [tensor(each) for each in self.__dict__["arrays"]]

    @property
    def key(self) -> Tensor:
        return self._tensors[0]

    @property
    def value(self) -> Tensor:
        return self._tensors[1]

    def replaced(self, key: Tensor, value: Tensor) -> KeyValue:
        return Arrays(*[np.from_dlpack(each.detach()) for each in (key, value)])

    def extend(self, new: KeyValue) -> KeyValue:
        if type(new) is not Arrays:
            return super().extend(new)
        pairs = zip(self.__dict__["arrays"], new.__dict__["arrays"])
        return Arrays(*[np.concatenate(pair, 2) for pair in pairs])


def project(attention: MultiHead, x: np.ndarray, info: TokenInfo) -> KeyValue:
    """Keys and values [1, H, 1, D] of x [1, 1, C]."""
    shape = 1, attention.num_heads, 1, -1
    key = affine(attention.key, x).reshape(shape)
    if type(info.encoding).key is not PositionalEncoding.key:
        key = info.encoding.key(tensor(key), info.positions).numpy()
    return Arrays(key, affine(attention.value, x).reshape(shape))


def attend(attention: MultiHead, x: np.ndarray, kv: KeyValue, info: TokenInfo, mask: Mask) -> np.ndarray:
    """The output [1, 1, C] of `attention` for x of that shape."""
    query = affine(attention.query, x).reshape(1, attention.num_heads, 1, -1)
    if type(info.encoding).query is not PositionalEncoding.query:
        query = info.encoding.query(tensor(query), info.positions).numpy()
    query *= query.shape[3] ** -0.5
    key, value = _arrays(kv)
    weights = np.matmul(query, key.swapaxes(2, 3))  # [1, H, 1, S]
    if not mask.is_zero:
        weights += np.from_dlpack(mask.dense("float32").detach())
    weights -= np.maximum.reduce(weights, 3, keepdims=True)
    np.exp(weights, weights)
    context = np.matmul(weights, value)  # [1, H, 1, D]
    context /= np.add.reduce(weights, 3, keepdims=True)
    return affine(attention.output, context).reshape(x.shape)


def _arrays(kv: KeyValue) -> tuple[np.ndarray, ...]:
    """Keys and values, where they lie."""
    known = kv.__dict__.get("arrays")
    if known is None:
        known = kv.__dict__["arrays"] = tuple(np.from_dlpack(each.detach()) for each in (kv.key, kv.value))
    return known
