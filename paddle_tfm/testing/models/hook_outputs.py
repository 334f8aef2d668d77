"""What the hooks of a positional encoding return for positions that a check names."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.testing.results import ComponentError

WIDTH, HEADS, HEAD_DIM = 16, 2, 8


def position_ids(*positions: int) -> Tensor:
    """int64 [1, T]: the positions of one sentence."""
    return paddle.to_tensor([list(positions)], dtype="int64")


def noise(seed: int, *shape: int) -> Tensor:
    """Standard normal numbers, float32, the same ones for a seed."""
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))


EMBEDDED = noise(3, 1, 1, WIDTH).numpy()[0]
"""The token to whose vector [1, C] `hook_outputs` has positions added."""


def trained(layer: nn.Layer) -> None:
    """Parameters as after some training: not at an initial zero, nor all at one."""
    rng = np.random.default_rng(12)
    for parameter in layer.parameters():
        noise = rng.normal(scale=0.2, size=parameter.shape).astype("float32")
        parameter.set_value(parameter + paddle.to_tensor(noise).astype(parameter.dtype))


def terms(
    encoding: PositionalEncoding,
    x: Tensor,
    q: Tensor,
    k: Tensor,
    weights: Tensor,
    q_positions: Tensor,
    k_positions: Tensor,
) -> dict[str, Tensor]:
    """Hook → what it returns, of those that an encoding uses.

    Raises:
        ComponentError: nothing, though the encoding says that it uses the hook.
    """
    hooks: dict[str, Callable[[], Tensor | None]] = {
        "embed": lambda: encoding.embed(x, q_positions),
        "query": lambda: encoding.query(q, q_positions),
        "key": lambda: encoding.key(k, k_positions),
        "bias": lambda: encoding.bias(q_positions, k_positions),
        "scores": lambda: encoding.scores(q, k, q_positions, k_positions),
        "values": lambda: encoding.values(weights, q_positions, k_positions),
    }
    used = encoding.uses() | ({"query", "key"} if "rotate" in encoding.uses() else set())
    return {hook: checked_term(hook, function()) for hook, function in hooks.items() if hook in used}


def hook_outputs(encoding: PositionalEncoding, q_positions: Tensor, k_positions: Tensor) -> dict[str, np.ndarray]:
    """What each hook of an encoding gives for queries at positions [1, Tq] and keys at [1, Tk], the time axes of each
    result first: what stands at a position must depend on that position alone."""
    queries, keys = q_positions.shape[1], k_positions.shape[1]
    with paddle.no_grad():
        x = paddle.to_tensor(EMBEDDED).expand([1, queries, WIDTH])
        same_q = noise(1, 1, HEADS, 1, HEAD_DIM).expand([1, HEADS, queries, HEAD_DIM])
        same_k = noise(2, 1, HEADS, 1, HEAD_DIM).expand([1, HEADS, keys, HEAD_DIM])
        weights = paddle.full([1, HEADS, queries, keys], 1.0 / keys)
        returned = terms(encoding, x, same_q, same_k, weights, q_positions, k_positions)
    outputs = {}
    for hook, term in returned.items():
        if hook in ("bias", "scores"):  # [B|1, H|1, Tq, Tk] -> [Tq, Tk, H]
            outputs[hook] = np.broadcast_to(term.numpy()[0], (term.shape[1], queries, keys)).transpose(1, 2, 0)
        else:
            outputs[hook] = term.numpy()[0] if hook == "embed" else term.numpy()[0].transpose(1, 0, 2)
    return outputs


def outputs_by_position(encoding: PositionalEncoding, length: int) -> dict[str, np.ndarray]:
    """Hook → what it gives for each of the first positions [length, ·]. All of them tell a position together: the place
    in a segment may be added, say, and the segment be a bias."""
    every = position_ids(*range(length))
    return {hook: output.reshape(length, -1) for hook, output in hook_outputs(encoding, every, every).items()}


def begin_again(encoding: PositionalEncoding, first: range, after: range) -> bool:
    """Whether the positions `after` are to every hook what as many `first` ones are, one by one, in a text that has
    both."""
    both = encoding.remap(position_ids(*first, *after), None)
    rows = [output.reshape(len(first) + len(after), -1) for output in hook_outputs(encoding, both, both).values()]
    whole = np.concatenate(rows, 1) if rows else np.zeros((len(first) + len(after), 1))
    one, other = whole[: len(first)], whole[len(first) :]
    return np.allclose(one, other, atol=1e-6) and not np.allclose(one, one[:1])


def two_alike(rows: dict[str, np.ndarray]) -> tuple[int, int] | None:
    """Two positions to which no hook gives anything different; None: all differ."""
    whole = np.concatenate(list(rows.values()), 1)
    pairs = ((j, i) for i in range(len(whole)) for j in range(i))
    return next(((j, i) for j, i in pairs if np.abs(whole[i] - whole[j]).max() < 1e-5), None)


def accepted_length(encoding: PositionalEncoding, end: int) -> int:
    """How many positions of the first `end` the encoding takes: beyond its length it may refuse."""

    def takes(position: int) -> bool:
        try:
            hook_outputs(encoding, position_ids(0, position), position_ids(0, position))
        except Exception:  # whatever its author raises
            return False
        return True

    taken, refused = 0, end
    if takes(end - 1):
        return end
    while refused - taken > 1:
        middle = (taken + refused) // 2
        taken, refused = (middle, refused) if takes(middle - 1) else (taken, middle)
    return taken


def checked_term(hook: str, term: Tensor | None) -> Tensor:
    """What a hook returns.

    Raises:
        ComponentError: nothing, though the encoding says that it uses the hook.
    """
    if term is None:
        raise ComponentError(f"`{hook}` must return a tensor, for the encoding's `uses()` names it, but returns None")
    return term
