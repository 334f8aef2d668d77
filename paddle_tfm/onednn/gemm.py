"""Products of matrices, and float32 numbers rounded to bfloat16.

The kernels behind `gemm` pack blocks of both factors as they go and depend on no shape, so that nothing is made, kept
or invalidated: a weight may change between two calls. They are as fast as those for one shape (docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_tfm.onednn.library import SUCCESS, library
from paddle_tfm.onednn.primitives import BF16, DST, F32, SRC, Failed, Primitive, address, describe, engine, kept

LARGEST_PIECE = 20  # an array is rounded in pieces of 2^20, 2^19, … 2^0 numbers, so that few kernels do for all sizes


def gemm(
    a: np.ndarray,
    b: np.ndarray,
    out: np.ndarray,
    transpose_a: bool = False,
    transpose_b: bool = False,
    add: bool = False,
    scale: float = 1.0,
) -> np.ndarray:
    """out = scale a b, or out += scale a b with `add`; a [M, K] ([K, M] with `transpose_a`), b [K, N] ([N, K] with
    `transpose_b`), out [M, N], which is returned. Each row is dense, and the next may begin later: columns of a wider
    matrix will do. a and b are float32, or both are bfloat16 (uint16, as `rounded` returns them); sums and `out` are
    float32.

    Raises:
        ValueError: a shape or dtype does not fit. Failed: oneDNN could not.
    """
    m, k = a.shape[::-1] if transpose_a else a.shape
    other_k, n = b.shape[::-1] if transpose_b else b.shape
    fits = k == other_k and out.shape == (m, n) and a.dtype == b.dtype and out.dtype == np.float32
    steps = _step(a), _step(b), _step(out)
    if not fits or None in steps:
        raise ValueError(
            "a product needs dense matrices [M, K], [K, N] and [M, N] (rows may lie apart), but has "
            f"{a.dtype} {a.shape}"
            f"{' transposed' * transpose_a}, {b.dtype} {b.shape}{' transposed' * transpose_b} and {out.dtype} "
            f"{out.shape}"
        )
    if not out.size:
        return out
    if not k:
        out[...] = out if add else 0.0
        return out
    kind = "bfloat16" if a.dtype == np.uint16 else "float32"
    addresses = address(a), address(b), address(out)
    multiply(kind, m, n, k, *addresses, transpose_a, transpose_b, add, scale, steps)
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
    function = library().dnnl_gemm_bf16bf16f32 if kind == "bfloat16" else library().dnnl_sgemm
    of_a, of_b, of_out = steps or (m if transpose_a else k, k if transpose_b else n, n)
    status = function(
        b"T" if transpose_a else b"N", b"T" if transpose_b else b"N", m, n, k,
        scale, a, of_a, b, of_b, 1.0 if add else 0.0, out, of_out,
    )  # fmt: skip
    if status != SUCCESS:
        raise Failed(f"a product of oneDNN returned status {status}")


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
