"""Kernels over rows and elements: softmax, layer normalization, and products with a mask, forward and backward.

Their numbers are float32, dense. Each kernel is kept for few numbers of rows: `in_pieces` divides any number of rows by
its digits to the base 16, so that a batch of a new shape needs no new kernel. A row's result does not depend on the
piece that it falls into; sums over rows (the gradients of a scale) are those of the pieces, added in their order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from ctypes import c_void_p
from typing import TypeVar

import numpy as np
from paddle import Tensor

from paddle_tfm import place
from paddle_tfm.kernels.cpu.library import library, why_not
from paddle_tfm.kernels.cpu.primitives import (
    DST,
    LINEAR,
    SRC,
    SRC_1,
    U8,
    PostOperations,
    Primitive,
    address,
    create,
    describe,
    engine,
    kept,
)

Array = TypeVar("Array", Tensor, np.ndarray)

# Arguments, kinds of algorithms, directions and flags, by their numbers in dnnl_types.h.
MEAN, VARIANCE, SCALE, SHIFT, DIFF_SRC, DIFF_DST, DIFF_SCALE, DIFF_SHIFT = 49, 50, 51, 52, 129, 145, 255, 256
FORWARD, BACKWARD = 64, 128
RELU, MUL, GREATER, SOFTMAX = 0x20, 0x1FFF1, 0x1FFF7, 0x30000
USE_SCALE, USE_SHIFT = 2, 4
FIRST_POST_OPERAND = 32768 | SRC_1  # the second operand of the first post-operation


def usable(*tensors: Tensor) -> bool:
    """Whether these kernels take such numbers: float32 on the CPU, and the library is there."""
    return why_not() is None and place.on_cpu(*tensors) and all(str(each.dtype) == "paddle.float32" for each in tensors)


@functools.lru_cache(4096)
def pieces(number: int) -> list[tuple[int, int]]:
    """(first, size) of the pieces of `number` rows, the largest first: for each of its digits to the base 16 that is
    not 0, as many rows as the digit stands for."""
    parts, first, unit = [], 0, 1
    while unit * 16 <= number:
        unit *= 16
    while unit:
        size = (number - first) // unit * unit
        if size:
            parts.append((first, size))
        first, unit = first + size, unit // 16
    return parts


def in_pieces(kernel: Callable[[int], Primitive], number: int, operands: Sequence[tuple[int, int]]) -> None:
    """Apply `kernel(size)` to each piece of `number` rows. Operands: (address, bytes from row to row) each, in the
    order of the kernel's; 0 bytes: the same for all rows."""
    for first, size in pieces(number):
        kernel(size)(*[address + first * stride for address, stride in operands])


def softmax(rows: int, width: int) -> Primitive:
    """Softmax over the last axis of x [rows, width]. Operands: x, destination (may be x)."""

    def make() -> Primitive:
        x = describe((rows, width))
        return Primitive(*_forward_softmax(x), arguments={SRC: x, DST: x})

    return kept(("softmax", rows, width), make)


def softmax_gradient(rows: int, width: int) -> Primitive:
    """p (g − Σ p g) of p = softmax, g its gradient, [rows, width]. Operands: p, g, destination (may be g)."""

    def make() -> Primitive:
        x, name = describe((rows, width)), "dnnl_softmax_backward_primitive_desc_create"
        with _Hint(*_forward_softmax(x)) as hint:
            return Primitive(
                name, engine(), SOFTMAX, x, x, x, 1, hint, None, arguments={DST: x, DIFF_DST: x, DIFF_SRC: x}
            )

    return kept(("softmax gradient", rows, width), make)


def layer_norm(rows: int, width: int, eps: float, flags: int) -> Primitive:
    """Layer normalization of x [rows, width]. Operands: x, y, mean [rows], variance [rows], scale [width] and, with
    `USE_SHIFT` in `flags`, shift [width]."""

    def make() -> Primitive:
        x, row = describe((rows, width)), describe((rows,))
        affine = _affine(describe((width,)), flags, SCALE, SHIFT)
        arguments = {SRC: x, DST: x, MEAN: row, VARIANCE: row, **affine}
        return Primitive(*_forward_norm(x, row, eps, flags), arguments=arguments)

    return kept(("layer norm", rows, width, eps, flags), make)


def layer_norm_gradient(rows: int, width: int, eps: float, flags: int) -> Primitive:
    """Its gradients. Operands: x, mean, variance, gradient of y, gradient of x, scale (and shift), their gradients."""

    def make() -> Primitive:
        x, row, name = (
            describe((rows, width)),
            describe((rows,)),
            "dnnl_layer_normalization_backward_primitive_desc_create",
        )
        arguments = {SRC: x, MEAN: row, VARIANCE: row, DIFF_DST: x, DIFF_SRC: x}
        arguments |= _affine(describe((width,)), flags, SCALE, SHIFT)
        arguments |= _affine(describe((width,)), flags, DIFF_SCALE, DIFF_SHIFT)
        with _Hint(*_forward_norm(x, row, eps, flags)) as hint:
            return Primitive(name, engine(), BACKWARD, x, x, x, row, eps, flags, hint, None, arguments=arguments)

    return kept(("layer norm gradient", rows, width, eps, flags), make)


def masked(count: int, factor: float, relu: bool = False) -> Primitive:
    """x · mask · factor, of max(0, x) with `relu`. Operands: x [count], mask uint8 [count], destination (may be x)."""

    def make() -> Primitive:
        x, mask = describe((count,)), describe((count,), U8)
        with PostOperations(*[(RELU, 0.0, 0.0)] * relu, (LINEAR, factor, 0.0)) as attributes:
            name, arguments = "dnnl_binary_primitive_desc_create", {SRC: x, SRC_1: mask, DST: x}
            return Primitive(name, engine(), MUL, x, mask, x, attributes, arguments=arguments)

    return kept(("masked", count, factor, relu), make)


def where_positive(count: int, factor: float) -> Primitive:
    """g · factor where y > 0, elsewhere 0. Operands: y [count], a zero [1], destination (may be g), g [count]."""

    def make() -> Primitive:
        y, one = describe((count,)), describe((1,))
        with PostOperations((MUL, y), (LINEAR, factor, 0.0)) as attributes:
            name, arguments = "dnnl_binary_primitive_desc_create", {SRC: y, SRC_1: one, DST: y, FIRST_POST_OPERAND: y}
            return Primitive(name, engine(), GREATER, y, one, y, attributes, arguments=arguments)

    return kept(("where positive", count, factor), make)


def softmax_in_place(x: Tensor | np.ndarray) -> None:
    """The softmax over the last axis of x, where it lies."""
    width = x.shape[-1]
    operand = address(x), 4 * width
    in_pieces(lambda rows: softmax(rows, width), x.size // width, [operand, operand])


def mask(x: Array, survives: np.ndarray, into: Array, factor: float, relu: bool = False) -> Array:
    """into (may be x) = x · survives · factor, of max(0, x) with `relu`; `survives` is uint8."""
    operands = [(address(x), 4), (address(survives), 1), (address(into), 4)]
    in_pieces(lambda count: masked(count, factor, relu), survives.size, operands)
    return into


def _forward_softmax(x: c_void_p) -> tuple:
    return "dnnl_softmax_forward_primitive_desc_create", engine(), FORWARD, SOFTMAX, x, x, 1, None


def _forward_norm(x: c_void_p, row: c_void_p, eps: float, flags: int) -> tuple:
    return "dnnl_layer_normalization_forward_primitive_desc_create", engine(), FORWARD, x, x, row, eps, flags, None


def _affine(column: c_void_p, flags: int, scale: int, shift: int) -> dict[int, c_void_p]:
    return {scale: column} | ({shift: column} if flags & USE_SHIFT else {})


class _Hint:
    """A context: the descriptor of a forward kernel, which that of its backward is made from."""

    def __init__(self, name: str, *arguments: object):
        self.descriptor = create(name, *arguments)

    def __enter__(self) -> c_void_p:
        return self.descriptor

    def __exit__(self, *_: object) -> None:
        library().dnnl_primitive_desc_destroy(self.descriptor)
