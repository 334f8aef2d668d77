"""Products of matrices, and float32 numbers rounded to bfloat16.

The kernels behind `gemm` pack blocks of both factors as they go and depend on no shape, so that nothing is made, kept
or invalidated: a weight may change between two calls. They are as fast as those for one shape (docs/performance.md),
but for bfloat16 on a processor with AMX: there products of many rows with a weight have kernels for the weight's shape
and any number of rows.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from ctypes import c_void_p

import numpy as np

from paddle_tfm.onednn.library import SUCCESS, library
from paddle_tfm.onednn.primitives import (
    ANY_SIZE,
    BF16,
    BIAS,
    DST,
    F32,
    LINEAR,
    SRC,
    WEIGHTS,
    Failed,
    PostOperations,
    Primitive,
    address,
    describe,
    engine,
    kept,
)

LARGEST_PIECE = 20  # an array is rounded in pieces of 2^20, 2^19, … 2^0 numbers, so that few kernels do for all sizes


def gemm(
    a: np.ndarray,
    b: np.ndarray,
    out: np.ndarray,
    transpose_a: bool = False,
    transpose_b: bool = False,
    add: bool = False,
    scale: float = 1.0,
    bias: np.ndarray | None = None,
) -> np.ndarray:
    """out = scale (a b + bias), or out += scale a b with `add`, which takes no bias; a [M, K] ([K, M] with
    `transpose_a`), b [K, N] ([N, K] with `transpose_b`), bias float32 [N], out [M, N], which is returned. Each row is
    dense, and the next may begin later: columns of a wider matrix will do. a and b are float32, or both are bfloat16
    (uint16, as `rounded` returns them); sums and `out` are float32.

    Raises:
        ValueError: a shape or dtype does not fit. Failed: oneDNN could not.
    """
    m, k = a.shape[::-1] if transpose_a else a.shape
    other_k, n = b.shape[::-1] if transpose_b else b.shape
    fits = k == other_k and out.shape == (m, n) and a.dtype == b.dtype and out.dtype == np.float32
    steps = _step(a), _step(b), _step(out)
    if bias is not None:
        fits = fits and not add and bias.shape == (n,) and bias.dtype == np.float32 and bias.flags.c_contiguous
    if not fits or None in steps:
        raise ValueError(
            "a product needs dense matrices [M, K], [K, N] and [M, N] (rows may lie apart), but has "
            f"{a.dtype} {a.shape}"
            f"{' transposed' * transpose_a}, {b.dtype} {b.shape}{' transposed' * transpose_b} and {out.dtype} "
            f"{out.shape}" + (f" with bias {bias.dtype} {bias.shape}" if bias is not None else "")
        )
    if not out.size:
        return out
    kind = "bfloat16" if a.dtype == np.uint16 else "float32"
    addresses = address(a), address(b), address(out)
    if k and bias is not None and _has_kernel_of_its_own(kind, k, transpose_a, steps[0]):
        _of_any_rows(n, k, transpose_b, False, True, scale, *steps).multiply(m, *addresses, address(bias))
        return out
    if bias is not None:
        np.copyto(out, bias if scale == 1.0 else bias * np.float32(scale))
        add = True
    if k:
        multiply(kind, m, n, k, *addresses, transpose_a, transpose_b, add, scale, steps)
    elif not add:
        out[...] = 0.0
    return out


def _step(x: np.ndarray) -> int | None:
    """Numbers from row to row of a matrix; None where its rows are not dense, or overlap."""
    rows, width = x.shape
    if not x.size:
        return max(width, 1)
    if width > 1 and x.strides[1] != x.itemsize:
        return None
    step = x.strides[0] // x.itemsize if rows > 1 else width
    return None if step < width or (rows > 1 and x.strides[0] % x.itemsize) else max(step, 1)


def multiply(
    kind: str,
    m: int,
    n: int,
    k: int,
    a: int,
    b: int,
    out: int,
    transpose_a: bool,
    transpose_b: bool,
    add: bool = False,
    scale: float = 1.0,
    steps: Sequence[int | None] | None = None,
) -> None:
    """`gemm` of matrices of `kind` (float32 | bfloat16) at addresses, for callers who know that they are of these
    sizes: nothing is checked. `steps`: the numbers from row to row of a, b and out; None: they are dense.

    Raises:
        Failed: oneDNN could not.
    """
    of_a, of_b, of_out = steps or (m if transpose_a else k, k if transpose_b else n, n)
    if _has_kernel_of_its_own(kind, k, transpose_a, of_a):
        _of_any_rows(n, k, transpose_b, add, False, scale, of_a, of_b, of_out).multiply(m, a, b, out)
        return
    function = library().dnnl_gemm_bf16bf16f32 if kind == "bfloat16" else library().dnnl_sgemm
    status = function(
        b"T" if transpose_a else b"N", b"T" if transpose_b else b"N", m, n, k,
        scale, a, of_a, b, of_b, 1.0 if add else 0.0, out, of_out,
    )  # fmt: skip
    if status != SUCCESS:
        raise Failed(f"a product of oneDNN returned status {status}")


def _has_kernel_of_its_own(kind: str, k: int, transpose_a: bool, of_a: int | None) -> bool:
    """Whether a product is `_OfAnyRows`: with AMX, 1.2 to 2.5 times as fast as the kernel of all shapes. Not where the
    rows of a lie apart, which that kernel of oneDNN 3.6.2 does not see."""
    return kind == "bfloat16" and not transpose_a and of_a == k and library().has_amx and _any_rows_are_right()


@functools.cache
def _any_rows_are_right() -> bool:
    """Whether `_OfAnyRows` multiplies small whole numbers exactly, as float32 can: asked of another oneDNN too, before
    it is trusted."""
    rng, k, n = np.random.default_rng(0), 37, 23
    bias = rng.integers(-8, 9, n).astype(np.float32)
    for transpose, rows in itertools.product((False, True), (19, 64)):
        a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((rows, k), (n, k) if transpose else (k, n)))
        expected, out = a @ (b.T if transpose else b) + bias, np.zeros((rows, 2 * n), np.float32)
        operands = rounded(a), rounded(b), out[:, 5:], bias
        try:
            kernel = _of_any_rows(n, k, transpose, False, True, 1.0, k, b.shape[1], 2 * n)
            kernel.multiply(rows, *map(address, operands))
        except Failed:
            return False
        if not np.array_equal(out[:, 5 : 5 + n], expected) or np.delete(out, np.s_[5 : 5 + n], axis=1).any():
            return False
    return True


class _OfAnyRows(Primitive):
    """The product of a [rows, K] and b [K, N] in bfloat16 for any number of rows; out is float32."""

    def __init__(
        self,
        n: int,
        k: int,
        transpose_b: bool,
        add: bool,
        bias: bool,
        scale: float,
        of_a: int,
        of_b: int,
        of_out: int,
    ):
        self._shapes, self._rows = ((k, BF16, of_a), (n, F32, of_out)), 1
        b, shift = describe((k, n), BF16, (1, of_b) if transpose_b else (of_b, 1)), describe((1, n))
        (a, out), (one_a, one_out) = self._matrices(ANY_SIZE), self._matrices(1)
        arguments = {SRC: one_a, WEIGHTS: b, DST: one_out} | ({BIAS: shift} if bias else {})
        name = "dnnl_matmul_primitive_desc_create"
        with PostOperations(*[(LINEAR, scale, 0.0)] * (scale != 1.0), *[(1.0,)] * add) as attributes:
            super().__init__(name, engine(), a, b, shift if bias else None, out, attributes, arguments=arguments)

    def _matrices(self, rows: int) -> list[c_void_p]:
        return [describe((rows, width), kind, (step, 1)) for width, kind, step in self._shapes]

    def multiply(self, rows: int, *addresses: int) -> None:
        """`addresses`: of a, b, out, and of the bias if it has one."""
        if rows != self._rows:
            for place, descriptor in zip((0, 2), self._matrices(rows)):
                self.describe(place, descriptor)
            self._rows = rows
        self(*addresses)


def _of_any_rows(*sizes) -> _OfAnyRows:
    return kept(("product of any rows", *sizes), lambda: _OfAnyRows(*sizes))


def rounded(x: np.ndarray) -> np.ndarray:
    """float32 x, dense, as bfloat16 (the nearest, ties to even) in an array of uint16 of its shape."""
    result, done = np.empty(x.shape, np.uint16), 0
    source, target = address(x), address(result)
    while done < x.size:
        exponent = min((x.size - done).bit_length() - 1, LARGEST_PIECE)
        _rounding(1 << exponent)(source + 4 * done, target + 2 * done)
        done += 1 << exponent
    return result


def _rounding(size: int) -> Primitive:
    def make() -> Primitive:
        full, half = describe((size,), F32), describe((size,), BF16)
        return Primitive(
            "dnnl_reorder_primitive_desc_create", full, engine(), half, engine(), None, arguments={SRC: full, DST: half}
        )

    return kept(("rounding", size), make)
