"""An attention as CTranslate2 holds it: matrices side by side, [out, in], and how positions enter the scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import paddle

from paddle_tfm.errors import UserError
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import MASKED_SCORE


def matrix(linear: Linear) -> tuple[np.ndarray, np.ndarray]:
    """Weight [out, in] and bias [out], which is zero where there is none."""
    weight = linear.weight.numpy().T
    return weight, np.zeros(len(weight), np.float32) if linear.bias is None else linear.bias.numpy()


class Projections:
    """The four projections of an attention, as (weight [out, in], bias [out]), and numbers beside them.

    Args:
        answer: that of the component's rule.
    """

    def __init__(self, answer: Mapping[str, Any]):
        self.heads, self.kv_heads, self.head_dim = answer["heads"], answer["kv_heads"], answer["head_dim"]
        self.parts = {name: matrix(answer[name]) for name in ("query", "key", "value")}
        identity = np.eye(self.heads * self.head_dim, dtype=np.float32)
        output = answer["output"]
        self.parts["output"] = (identity, np.zeros(len(identity), np.float32)) if output is None else matrix(output)
        self.numbers: dict[str, Any] = {"queries_scale": np.float32(1.0 / math.sqrt(self.head_dim))}

    def normalize(self, gain: float, eps: float, stretch: bool = True) -> None:
        """Make scores `gain` times the cosine of query and key: CTranslate2's RMS norm of a head divides by the root of
        its mean square, so that weights of 1 / sqrt(D) leave the length 1.

        That norm has the model's `eps`. Queries and keys are made 2^k times as long before it, which changes nothing
        but how much eps matters: no more than the 1e-12 of `cosine`. Not with int16, where
        they would share the scale of the values.
        """
        longer = 2.0 ** (stretch and max(0, math.ceil(math.log(eps * self.head_dim / 1.0e-12, 4))))
        for name in ("query", "key"):
            weight, bias = self.parts[name]
            self.parts[name] = weight * np.float32(longer), bias * np.float32(longer)
        gamma = np.full(self.head_dim, 1.0 / math.sqrt(self.head_dim), np.float32)
        self.numbers |= {"q_norm/gamma": gamma, "k_norm/gamma": gamma.copy(), "queries_scale": np.float32(gain)}

    def hide_beyond(self, window: int) -> None:
        """Hide keys more than `window` positions away on either side, where positions stand in the embeddings.

        CTranslate2's encoder has no window. But a head may have one more channel, of which a query holds 1 and a key 0,
        and a learned vector for each distance (its asymmetric relative keys) that holds a very low number there.
        """
        query, query_bias = self._widened("query", self.heads)
        query_bias.reshape(self.heads, -1)[:, -1] = 1.0
        self.parts["query"] = query, query_bias
        for name in ("key", "value"):
            self.parts[name] = self._widened(name, self.kv_heads)
        weight, bias = self.parts["output"]
        columns = np.pad(weight.reshape(len(weight), self.heads, self.head_dim), ((0, 0), (0, 0), (0, 1)))
        self.parts["output"] = columns.reshape(len(weight), -1), bias
        self.head_dim += 1
        vectors = np.zeros((2 * window + 3, self.head_dim), np.float32)
        vectors[[0, -1], -1] = MASKED_SCORE
        reach = np.int32(window + 1)
        self.numbers |= {
            "relative_asymmetric_position_keys": vectors,
            "relative_left_max_position": reach,
            "relative_right_max_position": reach,
        }

    def _widened(self, name: str, heads: int) -> tuple[np.ndarray, np.ndarray]:
        """A projection whose heads have one channel more, which is zero."""
        weight, bias = self.parts[name]
        rows = np.pad(weight.reshape(heads, self.head_dim, -1), ((0, 0), (0, 1), (0, 0)))
        return rows.reshape(-1, weight.shape[1]), np.pad(bias.reshape(heads, -1), ((0, 0), (0, 1))).reshape(-1)

    def scale_output(self, scale: np.ndarray) -> None:
        """Multiply each channel [C] of what the attention adds to the residual."""
        weight, bias = self.parts["output"]
        self.parts["output"] = weight * scale[:, None], bias * scale

    def variables(self, cross: bool) -> dict[str, Any]:
        """CTranslate2's names → arrays and numbers."""
        groups = [["query"], ["key", "value"], ["output"]] if cross else [["query", "key", "value"], ["output"]]
        arrays: dict[str, Any] = {"head_dim": np.int32(self.head_dim), "num_heads_kv": np.int32(self.kv_heads)}
        for i, group in enumerate(groups):
            arrays[f"linear_{i}/weight"] = np.concatenate([self.parts[name][0] for name in group])
            arrays[f"linear_{i}/bias"] = np.concatenate([self.parts[name][1] for name in group])
        return arrays | self.numbers


def distance_table(bias: Callable | None, window: int | None, causal: bool, heads: int, length: int) -> dict[str, Any]:
    """A bias on the scores that depends on the distance alone, as T5's of CTranslate2: a row for each distance below
    `length` and direction, so that none falls into the ranges that it computes with logarithms in float32.

    Args:
        bias: `PositionalEncoding.bias`; None: no bias. window: farther keys are hidden; None: none is.
    """
    positions = paddle.arange(length).unsqueeze(0)
    table = np.zeros((2, length, heads), np.float32)  # behind and ahead of the query, by distance
    if bias is not None:
        with paddle.no_grad():
            behind = bias(positions[:, -1:], positions).numpy()[0, :, 0, ::-1]  # [H|1, L]
            ahead = behind if causal else bias(positions[:, :1], positions).numpy()[0, :, 0]
        table[:] = np.stack([np.broadcast_to(side.T, (length, heads)) for side in (behind, ahead)])
    if window is not None:
        table[:, window + 1 :] += MASKED_SCORE
    table = np.concatenate([table, np.repeat(table[:, -1:], length, 1)], 1)  # [2, 2L, H]: beyond, as the farthest
    rows = table[0] if causal else table.reshape(4 * length, heads)
    return {
        "relative_attention_bias": np.ascontiguousarray(rows),
        "relative_attention_max_distance": np.int32(2 * length),
    }


def position_numbers(answer: Mapping[str, Any], head_dim: int) -> dict[str, Any]:
    """What rotation and relative keys and values (the rule of an encoding) are in each attention."""
    numbers: dict[str, Any] = {}
    if "rotary_base" in answer:
        numbers |= {
            "rotary_dim": np.int32(answer.get("rotary_dim", head_dim)),
            "rotary_interleave": np.int8(1),
            "rotary_base": np.float32(answer["rotary_base"]),
        }
    if "keys" in answer:
        numbers["relative_position_keys"] = answer["keys"]
        if answer["values"] is not None:
            numbers["relative_position_values"] = answer["values"]
    return numbers


def position_table(adds: Callable | None, width: int, length: int) -> np.ndarray:
    """What an encoding adds to the embeddings at each position, [length, C]; zeros for None."""
    empty = paddle.zeros([1, length, width])
    if adds is None:
        return empty.numpy()[0]
    with paddle.no_grad():
        table = adds(empty, paddle.arange(length).unsqueeze(0))
    if table.shape != empty.shape:
        raise UserError("an encoding must add a vector for each position, but gives another shape")
    return table.numpy()[0]
