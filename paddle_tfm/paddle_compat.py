"""Every use of Paddle's private API, one function or class each: why, what it was tested with, and what happens
without.

Written for Paddle 3.3. Another Paddle may lack any of these names: then the public way is taken, which is slower or
uses one process, and gives the same numbers. `tests/test_paddle_compat.py` takes the names away one by one, and looks
for private names elsewhere.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm import place
from paddle_tfm.errors import UserError

CPU = paddle.CPUPlace()
_threads = 0  # of `set_num_threads`


def _private(owner: Any, *path: str) -> Any:
    """The private attribute at the end of `path`, or None where this Paddle has none of that name."""
    for name in path:
        owner = getattr(owner, name, None)
    return owner


# ----------------------------------------------------------------------------------------------------------- process


def keep_python_signal_handlers() -> None:
    """Take away Paddle's handler of SIGTERM, which prints a C++ traceback in place of ending quietly.

    Documented, but gone from some builds; without it, an interrupted run prints that traceback.
    """
    if disable := _private(paddle, "disable_signal_handler"):
        disable()


def set_num_threads(number: int) -> None:
    """From now on matrix products of this process take `number` threads.

    There is no public way after the import: `OMP_NUM_THREADS` is read once. Without the private one the number stays as
    it was, which costs speed where several processes share the cores, and changes sums by no more than rounding.
    """
    global _threads
    if set_threads := _private(paddle, "base", "core", "set_num_threads"):
        set_threads(number)
        _threads = number


def num_threads() -> int:
    """What `set_num_threads` was last given; 0 before."""
    return _threads


def tcp_store(host: str, port: int, keeper: bool) -> Any:
    """A connection with the table of keys, Paddle's `TCPStore`, at this address; `keeper`: and the table itself.

    Paddle makes one for each process group, and has no public name for it. Without it several processes cannot train
    one run.

    Raises:
        UserError: this Paddle has none.
    """
    store = _private(paddle, "base", "core", "TCPStore")
    if store is None:
        raise UserError("this Paddle has no TCPStore, by which several processes meet; train with one process")
    return store(host, port, keeper, 0, 900)  # 0: not to wait for other processes; 900 s, which has no effect


def reset_peak_memory() -> None:
    """Begin to measure `peak_memory`, without what an earlier run of this process has left behind."""
    gc.collect()
    if not place.on_cpu():
        paddle.device.cuda.reset_max_memory_allocated()
    elif reset := _private(paddle, "base", "core", "host_memory_stat_reset_peak_value"):
        reset("Allocated", 0)


def peak_memory() -> int | None:
    """Bytes that all tensors of this process held at once at most since `reset_peak_memory`: on a GPU or on the CPU.

    Of a CPU there is no public way; without the private one nobody knows. (The peak of the whole process would be that
    of the runs before, too.)
    """
    if not place.on_cpu():
        return int(paddle.device.cuda.max_memory_allocated())
    peak, reset = (
        _private(paddle, "base", "core", f"host_memory_stat_{name}") for name in ("peak_value", "reset_peak_value")
    )
    return int(peak("Allocated", 0)) if peak and reset else None


def can_move_into() -> bool:
    """Whether `move_into` works with this Paddle; without it nothing is shared among processes."""
    return _private(paddle.Tensor, "_share_buffer_to") is not None


def move_into(parameter: Tensor, array: np.ndarray) -> None:
    """Have `parameter` lie in the memory of `array` from now on, with its values: what is written there by this process
    is seen by all that share the memory. Public functions copy.

    Raises:
        RuntimeError: this Paddle cannot (`can_move_into`).
    """
    if not can_move_into():
        raise RuntimeError(
            f"Paddle {paddle.version.full_version} must have Tensor._share_buffer_to to move a parameter, but has "
            "not; ask `can_move_into` before"
        )
    array[...] = parameter.numpy()
    paddle.utils.dlpack.from_dlpack(array)._share_buffer_to(parameter)


# ---------------------------------------------------------------------------------------------------------- gradients


@lru_cache(maxsize=1)
def anchor() -> Tensor:
    """A leaf that stands first in the list of inputs of a `PyLayer`, and gets no gradient.

    A `PyLayer` with several inputs must return None for those whose gradient nobody asks for, and is not told which.
    But inputs in one list count as one (Paddle 3.3), by what the *first* of them needs: behind this one, the gradients
    of the others may be returned whether they are asked for or not.
    """
    leaf = paddle.zeros([1])
    leaf.stop_gradient = False
    return leaf


# ------------------------------------------------------------------------------------------------------------- layers


def called_plainly(*layers: nn.Layer) -> bool:
    """Whether nobody asked to be called before or after one of these layers, so that their parameters may be used
    without calling them. Without Paddle's private tables of such hooks: no."""
    tables = ("_forward_pre_hooks", "_forward_post_hooks")
    return not any(layer.__dict__.get(table, True) for layer in layers for table in tables)


# ----------------------------------------------------------------------------------------------------------- kernels


def empty(shape: Sequence[int]) -> Tensor:
    """A float32 tensor on the CPU whose numbers are not set, for a kernel to write to.

    The kernel that `paddle.empty` calls, without 15 microseconds of checks before: a small step makes 150 of them.
    Otherwise `paddle.empty`.
    """
    kernel = _private(paddle, "_C_ops", "empty")
    if kernel is None:
        return paddle.empty(shape, "float32")
    return kernel(shape, paddle.float32, CPU)


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x · weight + bias, without gradients.

    The kernel that `F.linear` calls, which looks a flag up before, for 40 microseconds: a step of a search calls it
    forty times. Otherwise `F.linear`.
    """
    kernel = _private(paddle, "_C_ops", "linear")
    return nn.functional.linear(x, weight, bias) if kernel is None else kernel(x, weight, bias)


def sum_of_squares(x: Tensor) -> Tensor:
    """Σ x², [1], in float32.

    The kernel with which Paddle clips gradients: a quarter of the time of a flat product for a small x, and for two
    million numbers exact to 5 · 10⁻⁸ instead of 7 · 10⁻⁶. Otherwise that product.
    """
    kernel = _private(paddle, "_C_ops", "squared_l2_norm")
    if kernel is None:
        flat = x.flatten()
        return paddle.matmul(flat, flat).reshape([1])
    return kernel(x)


def has_lstm() -> bool:
    """Whether `lstm` works with this Paddle; otherwise its caller has to run through the tokens in Python."""
    return _private(paddle, "_C_ops", "rnn") is not None


def lstm(
    x: Tensor, h: Tensor, c: Tensor, weights: Sequence[Tensor], lengths: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """One LSTM layer, read forward: x [T, B, C], h and c [B, W], of which a row's first `lengths` [B] tokens are real →
    outputs [T, B, W], (h, c) behind the last real token. `weights`: [4W, C], [4W, W], [4W], [4W].

    The kernel that `paddle.nn.LSTM` calls. That class has parameters of its own, in a layout that neither our initial
    values nor one tensor for all inputs fit.

    Raises:
        RuntimeError: this Paddle has no such kernel (`has_lstm`).
    """
    if not has_lstm():
        raise RuntimeError(
            f"Paddle {paddle.version.full_version} must have the kernel `rnn`, but has not; ask `has_lstm` before"
        )
    dropout_state = paddle.zeros([0], "uint8")  # of a dropout between layers, of which there is one
    outputs, _, (h, c) = _private(paddle, "_C_ops", "rnn")(
        x, [h.unsqueeze(0), c.unsqueeze(0)], list(weights), lengths, dropout_state,
        0.0, False, x.shape[2], h.shape[1], 1, "LSTM", 0, not paddle.is_grad_enabled(),
    )  # fmt: skip
    return outputs, (h.squeeze(0), c.squeeze(0))


# -------------------------------------------------------------------------------------------------------- optimizers


def has_fused_adam() -> bool:
    """Whether Paddle's Adam can update all parameters in one call; otherwise it takes a call for each."""
    return _private(paddle, "_C_ops", "merged_adam_") is not None


def named_adam(cls: type) -> type:
    """A class decorator: the subclass of `paddle.optimizer.Adam` bears its name.

    Paddle takes all parameters at once in classes of this name only: it compares `__name__`, not the class.
    """
    cls.__name__ = "Adam"
    return cls


def fuse_updates(optimizer: paddle.optimizer.Adam, fused: bool) -> None:
    """Whether the next step takes all parameters in one call. Paddle has a switch for it in the constructor only, and
    then ends with an error where a parameter has no gradient. Both ways keep their moments in the same place."""
    if has_fused_adam():
        optimizer._use_multi_tensor = fused


def create_moments(optimizer: paddle.optimizer.Optimizer, parameters: Sequence[Tensor]) -> None:
    """The moments of `parameters`, taken from what `set_state_dict` was given before; without this, each is taken when
    its parameter next has a gradient, and is missing from `state_dict` until then."""
    if create := _private(optimizer, "_create_accumulators"):
        with paddle.utils.unique_name.guard():  # the names of moments end in _0, as in a step of the trainer
            create(paddle.static.default_main_program().global_block(), list(parameters))
