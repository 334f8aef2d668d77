"""Any kernel of oneDNN over the numbers of tensors where they lie: descriptors, primitives, and the ones in use.

    rows = describe((n, c))                                    # float32, row by row
    softmax = kept(("softmax", n, c), lambda: Primitive(
        "dnnl_softmax_forward_primitive_desc_create", FORWARD, SOFTMAX, rows, rows, 1, None,
        arguments={SRC: rows, DST: rows}))
    softmax(address(x), address(y))                            # in the order of `arguments`; x and y stay alive here

A function of oneDNN needs its signature in `library.py`. Creating a primitive takes 0.2 to 0.8 ms, in which oneDNN
writes machine code for the shape, and calling it 3 µs: shapes that vary from batch to batch are for kernels that do not
depend on them (`gemm`), or must be cut into pieces of few lengths.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from ctypes import c_void_p

import numpy as np
from paddle import Tensor

from paddle_tfm import paddle_compat
from paddle_tfm.kernels.cpu.library import SUCCESS, library

BF16, F32, U8 = 2, 3, 6  # dnnl_data_type_t
SRC, SRC_1, DST, WEIGHTS, BIAS = 1, 2, 17, 33, 41  # DNNL_ARG_…
LINEAR = 0x26  # dnnl_eltwise_linear: α x + β
CPU, IN_ORDER = 1, 1  # dnnl_cpu, dnnl_stream_in_order
MAX_DIMENSIONS = 12
MAX_PRIMITIVES = 1024  # primitives of a thread that are kept; each holds some 10 to 300 KiB of machine code

_Dimensions = ctypes.c_int64 * MAX_DIMENSIONS


class Failed(RuntimeError):
    """A function of oneDNN did not succeed."""


class _Argument(ctypes.Structure):
    _fields_ = (("index", ctypes.c_int), ("memory", c_void_p))


def create(name: str, *arguments: object) -> c_void_p:
    """The object that function `name` makes, which it writes to its first argument; the others are `arguments`.

    Raises:
        Failed: oneDNN cannot make it.
    """
    made = c_void_p()
    status = getattr(library(), name)(ctypes.byref(made), *arguments)
    if status != SUCCESS:
        raise Failed(f"{name} of oneDNN returned status {status}")
    return made


@functools.cache
def engine() -> c_void_p:
    """The engine of this process: its CPU. It has no threads of its own, and a fork of this process may use it too."""
    return create("dnnl_engine_create", CPU, 0)


@functools.cache
def _stream() -> c_void_p:
    return create("dnnl_stream_create", engine(), IN_ORDER)


@functools.lru_cache(4096)
def _described(shape: tuple[int, ...], kind: int, strides: tuple[int, ...]) -> c_void_p:
    dimensions = _Dimensions(*shape), kind, _Dimensions(*strides)
    return create("dnnl_memory_desc_create_with_strides", len(shape), *dimensions)


def describe(shape: Sequence[int], kind: int = F32, strides: Sequence[int] | None = None) -> c_void_p:
    """The descriptor of an array: its shape, the kind of its numbers, and its strides in numbers (None: dense, the last
    axis fastest)."""
    if strides is None:
        strides = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
    return _described(tuple(shape), kind, tuple(strides))


def address(x: Tensor | np.ndarray) -> int:
    """Where the numbers of x begin. x must be contiguous and outlive the call that gets the address."""
    return x.ctypes.data if isinstance(x, np.ndarray) else x.data_ptr()


class Primitive:
    """A kernel of oneDNN for descriptors that do not change; a call computes it on this process' threads.

    Not for two threads at once: `kept` keeps those of each thread apart.

    Args:
        name: of the function that makes its descriptor; `arguments_of_it` follow the engine.
        arguments: which argument of the kernel (`SRC`, …) → its descriptor, in the order in which a call gets
            addresses.

    Raises:
        Failed: oneDNN has no such kernel.
    """

    def __init__(self, name: str, *arguments_of_it: object, arguments: Mapping[int, c_void_p]):
        description = create(name, *arguments_of_it)
        self._primitive = create("dnnl_primitive_create", description)
        library().dnnl_primitive_desc_destroy(description)
        self._memories = [create("dnnl_memory_create", kind, engine(), None) for kind in arguments.values()]
        self._arguments = (_Argument * len(arguments))()
        for slot, index, memory in zip(self._arguments, arguments, self._memories):
            slot.index, slot.memory = index, memory.value
        self._set, self._execute = library().dnnl_memory_set_data_handle, library().dnnl_primitive_execute

    def __call__(self, *addresses: int) -> None:
        """Compute. `addresses` (of `address`) are those of the arguments, in their order.

        Raises:
            Failed: oneDNN could not, for lack of memory for example.
        """
        for memory, where in zip(self._memories, addresses, strict=True):
            self._set(memory, where)
        status = self._execute(self._primitive, _stream(), len(addresses), self._arguments)
        if status != SUCCESS:
            raise Failed(f"dnnl_primitive_execute of oneDNN returned status {status}")
        library().dnnl_stream_wait(_stream())

    def destroy(self) -> None:
        """Free the kernel; it must not be called afterwards."""
        library().dnnl_primitive_destroy(self._primitive)
        for memory in self._memories:
            library().dnnl_memory_destroy(memory)


class PostOperations:
    """A context: attributes of a kernel whose result goes through operations: (kind, α, β) by element, (kind,
    descriptor) with another operand, (α,) plus α times what the destination held."""

    def __init__(self, *operations: tuple):
        self.attributes, self.chain = create("dnnl_primitive_attr_create"), create("dnnl_post_ops_create")
        for operation in operations:
            if len(operation) == 1:
                library().dnnl_post_ops_append_sum(self.chain, *operation, 0, 0)  # no zero point; the numbers' own kind
            elif len(operation) == 2:
                library().dnnl_post_ops_append_binary(self.chain, *operation)
            else:
                library().dnnl_post_ops_append_eltwise(self.chain, *operation)
        library().dnnl_primitive_attr_set_post_ops(self.attributes, self.chain)

    def __enter__(self) -> c_void_p:
        return self.attributes

    def __exit__(self, *_: object) -> None:
        library().dnnl_post_ops_destroy(self.chain)
        library().dnnl_primitive_attr_destroy(self.attributes)


class _Primitives(threading.local):
    """The primitives of a thread by their keys, the latest used at the end."""

    def __init__(self) -> None:
        self.primitives: OrderedDict[Hashable, Primitive] = OrderedDict()


_OF_THREAD = _Primitives()


def kept(key: Hashable, make: Callable[[], Primitive]) -> Primitive:
    """The primitive of `key` (a name and all that its descriptors depend on), made at the first call. Only the latest
    `MAX_PRIMITIVES` of a thread stay.

    A primitive divides its work among as many threads as there are when it is made. Where their number changes another
    is made, so that sums do not depend on what this process did before.
    """
    primitives, key = _OF_THREAD.primitives, (key, paddle_compat.num_threads())
    primitive = primitives.get(key)
    if primitive is None:
        primitives[key] = primitive = make()
        if len(primitives) > MAX_PRIMITIVES:
            primitives.popitem(last=False)[1].destroy()
    else:
        primitives.move_to_end(key)
    return primitive
