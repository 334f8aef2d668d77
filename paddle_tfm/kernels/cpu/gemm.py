"""Products of matrices, and float32 numbers rounded to bfloat16.

The kernels behind `gemm` pack blocks of both factors as they go and depend on no shape, so that nothing is made, kept
or invalidated: a weight may change between two calls. They are as fast as those for one shape (docs/performance.md),
but for bfloat16 on a processor with AMX, where products have kernels of few shapes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from paddle_tfm.kernels.cpu.library import PLAIN, ROW_MAJOR, SUCCESS, TRANSPOSED, library
from paddle_tfm.kernels.cpu.primitives import (
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

ROWS = 128  # kernels for a shape have a multiple of so many rows
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
    if k and bias is not None and _by_shape(kind, m, transpose_a):
        _multiply_by_shape((m, n, k), (*addresses, address(bias)), transpose_b, False, scale, steps)
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
    if _by_shape(kind, m, transpose_a):
        _multiply_by_shape((m, n, k), (a, b, out), transpose_b, add, scale, (of_a, of_b, of_out))
        return
    operands = scale, a, of_a, b, of_b, 1.0 if add else 0.0, out, of_out
    if kind == "float32":
        of_factors = [TRANSPOSED if transpose else PLAIN for transpose in (transpose_a, transpose_b)]
        library().cblas_sgemm(ROW_MAJOR, *of_factors, m, n, k, *operands)
        return
    letters = [b"T" if transpose else b"N" for transpose in (transpose_a, transpose_b)]
    status = library().dnnl_gemm_bf16bf16f32(*letters, m, n, k, *operands)
    if status != SUCCESS:
        raise Failed(f"a product of oneDNN returned status {status}")


def _by_shape(kind: str, m: int, transpose_a: bool) -> bool:
    """Whether a product is computed by kernels for its shape: with AMX, where they are 1.2 to 2.5 times as fast. Not
    the gradient of a weight, which gains nothing."""
    if kind == "float32" or transpose_a or m < ROWS or not library().has_amx:
        return False
    return kernels_of_shapes_are_right()


def _multiply_by_shape(
    sizes: tuple[int, int, int],
    operands: Sequence[int],
    transpose_b: bool,
    add: bool,
    scale: float,
    steps: Sequence[int | None],
) -> None:
    """The product of bfloat16 by a kernel for as many rows as there are whole multiples of `ROWS`, and by another for
    the last `ROWS`, some of which are computed twice: a kernel for each number of rows would take 1 ms to make, and
    keep 0.3 MiB. Where `add` must not add twice, the rest is left to the kernel of all shapes. Operands: a, b, out and,
    if there is one, the bias."""
    (m, n, k), (a, b, out, *bias) = sizes, operands
    whole = m // ROWS * ROWS
    _of_shape(whole, n, k, transpose_b, add, bool(bias), scale, steps)(a, b, out, *bias)
    if whole == m:
        return
    first = whole if add else m - ROWS
    of_a, _, of_out = (step or 1 for step in steps)
    last = a + 2 * first * of_a, b, out + 4 * first * of_out
    if add:
        multiply("bfloat16", m - whole, n, k, *last, False, transpose_b, True, scale, steps)
    else:
        _of_shape(ROWS, n, k, transpose_b, False, bool(bias), scale, steps)(*last, *bias)


def _of_shape(
    m: int, n: int, k: int, transpose_b: bool, add: bool, bias: bool, scale: float, steps: Sequence[int | None]
) -> Primitive:
    """`gemm` of bfloat16 for one shape. Operands: a, b, out and, with `bias`, that."""
    of_a, of_b, of_out = (step or 1 for step in steps)

    def make() -> Primitive:
        a, b = describe((m, k), BF16, (of_a, 1)), describe((k, n), BF16, (1, of_b) if transpose_b else (of_b, 1))
        out, row = describe((m, n), F32, (of_out, 1)), describe((1, n))
        name, arguments = "dnnl_matmul_primitive_desc_create", {SRC: a, WEIGHTS: b, DST: out}
        with PostOperations(*[(LINEAR, scale, 0.0)] * (scale != 1.0), *[(1.0,)] * add) as attributes:
            described = name, engine(), a, b, row if bias else None, out, attributes
            return Primitive(*described, arguments=arguments | ({BIAS: row} if bias else {}))

    return kept(("product", m, n, k, transpose_b, add, bias, scale, of_a, of_b, of_out), make)


@functools.cache
def kernels_of_shapes_are_right() -> bool:
    """Whether `_of_shape` multiplies small whole numbers exactly, as float32 can: asked of each oneDNN before it is
    trusted."""
    rng, n = np.random.default_rng(0), 23
    bias = rng.integers(-8, 9, n).astype(np.float32)
    for transpose, add, (rows, k) in itertools.product((False, True), (False, True), ((1, 37), (50, 2048))):
        a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((rows, k), (n, k) if transpose else (k, n)))
        product, out = a @ (b.T if transpose else b), np.ones((rows, 2 * n), np.float32)
        operands = [rounded(a), rounded(b), out[:, 5:], *[bias] * (not add)]
        try:
            kernel = _of_shape(rows, n, k, transpose, add, not add, 0.5, (k, b.shape[1], 2 * n))
            kernel(*map(address, operands))
        except Failed:
            return False
        expected = np.ones_like(out)
        expected[:, 5 : 5 + n] = product / 2 + 1 if add else (product + bias) / 2
        if not np.array_equal(out, expected):
            return False
    return True


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
